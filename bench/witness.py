"""Compares stoker with the best schedule found by a search that knows everything. See bench/README.md.

    python -m bench.witness [--builds vllm ...] [--machines 32x64 ...] [--rounds 20000] [--keep] [--json FILE] [--write]

With `--keep` the best schedules found are put into bench/witnesses.json, if they are better than those there. Each was
replayed on the simulated machine, within the budget and the cores. Nothing is timed.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from bench.figures import add_arguments, publish, table
from stoker.simulate.drivers import reserve_of
from stoker.simulate.oracle import Prediction
from stoker.simulate.runner import Result, simulate
from stoker.simulate.simulated_machine import lower_bound
from stoker.simulate.synthetic import BUILDS
from stoker.simulate.trace import TraceJob

GIB = 2**30
KEPT = Path(__file__).with_name("witnesses.json")
SLOTS = {"flash-attn": 1.0, "vllm": 1.0, "pytorch": 0.25}
"""Seconds into which the time of each build is cut by the search: where jobs are shorter, finer."""

LARGE, LARGE_ROUNDS = 1000, 40
"""A build of so many jobs is searched for fewer rounds: each takes longer."""

MACHINES = ("32x64", "64x128", "128x256")
"""Cores and GiB of the machines in the table."""

PREDICTIONS: tuple[Prediction, ...] = ("exact", "noisy", "absent")
HEAD = ["build", "memory, cores", "bound, s", "of curves, s", "best known, s", "exact", "noisy", "first build"]


@dataclass(frozen=True, slots=True)
class Witness:
    """The best schedule that is known of a build on a machine. Seconds.

    `bound` is `lower_bound`, `curves` the one of linear programming; `starts` counts slots of `slot` seconds, empty for
    a large build.
    """

    build: str
    cores: int
    gib: int
    bound: float
    curves: float
    best: float
    slot: float
    starts: tuple[int, ...] = ()


@cache
def kept() -> dict[tuple[str, int, int], Witness]:
    """Return what is known, by build, cores and GiB."""
    data: list[dict[str, Any]] = json.loads(KEPT.read_text()) if KEPT.exists() else []
    found = [Witness(**{**record, "starts": tuple(record["starts"])}) for record in data]
    return {(w.build, w.cores, w.gib): w for w in found}


def best_known(build: str, cores: int, gib: int) -> float | None:
    """Return the seconds of the best schedule that is known; None if nobody has looked for one."""
    witness = kept().get((build, cores, gib))
    return None if witness is None else witness.best


def look(build: str, cores: int, gib: int, rounds: int) -> Witness:
    """Search a schedule and a bound; what is known already is kept where it is better."""
    # Here, since scipy is needed to look and not to read.
    from bench.witness_bound import curve_bound
    from bench.witness_search import followed, search

    jobs, budget, slot = jobs_of(build), budget_of(gib), SLOTS[build]
    large, before = len(jobs) >= LARGE, kept().get((build, cores, gib))
    starts = search(jobs, cores, budget, slot, min(rounds, LARGE_ROUNDS) if large else rounds)
    best, bound = followed(jobs, cores, budget, starts), lower_bound(jobs, cores, budget)
    curves = before.curves if before else curve_bound(jobs, cores, budget, best)
    if before is not None and before.best <= best:
        return before
    numbers = () if large else tuple(round(start / slot) for start in starts)
    return Witness(build, cores, gib, round(bound, 2), round(curves, 2), round(best, 2), slot, numbers)


def jobs_of(build: str) -> Sequence[TraceJob]:
    """Return the jobs; schedules are the same for every order in which a scheduler offers them."""
    return tuple(BUILDS[build](order="row", seed=1))


def budget_of(gib: int) -> float:
    """Return the bytes that a schedule may hold: what promises may take on such a machine."""
    return gib * GIB - reserve_of(gib * GIB)


def main() -> None:
    """Look, simulate and publish."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--builds", nargs="+", choices=sorted(SLOTS), default=list(SLOTS))
    parser.add_argument("--machines", nargs="+", default=MACHINES, metavar="CORESxGIB")
    parser.add_argument(
        "--rounds", type=int, default=0, help="attempts to shorten a schedule (default: take those kept)"
    )
    parser.add_argument("--keep", action="store_true", help="put what is found into bench/witnesses.json")
    add_arguments(parser)
    args = parser.parse_args()
    figures, rows = [], []
    for build in args.builds:
        for cores, gib in (map(int, words.split("x")) for words in args.machines):
            known = kept().get((build, cores, gib))
            witness = known if known and not args.rounds else look(build, cores, gib, args.rounds)
            if args.keep:
                _keep(witness)
            results = [simulate(jobs_of(build), cores, gib * GIB, "stoker", kind) for kind in PREDICTIONS]
            figures.append({**asdict(witness), "results": [asdict(result) for result in results]})
            rows.append(row(witness, results))
            print(*rows[-1], flush=True)
    kills = sum(result["kills"] for figure in figures for result in figure["results"])
    text = f"{table(HEAD, rows)}\n\n{3 * len(rows)} runs of stoker, {kills} kills.\n"
    publish("witness", figures, text, out=args.json, write=args.write, summary={"kills": kills})


def row(witness: Witness, results: Sequence[Result]) -> list[str]:
    """Return one line of the table: seconds, and stoker's over the bound and over the best known."""
    ratios = [f"{r.ratio:.2f} · {r.makespan / witness.best:.2f}" for r in results]
    seconds = (f"{value:,.0f}" for value in (witness.bound, witness.curves, witness.best))
    return [witness.build, f"{witness.gib} GiB, {witness.cores}", *seconds, *ratios]


def _keep(witness: Witness) -> None:
    kept()[witness.build, witness.cores, witness.gib] = witness
    lines = [json.dumps(asdict(w), separators=(",", ":")) for _, w in sorted(kept().items())]
    KEPT.write_text("[\n" + ",\n".join(lines) + "\n]\n")


if __name__ == "__main__":
    main()
