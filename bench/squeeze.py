"""Measures builds short of memory: stoker, every fixed -j, ninja -l and kill-and-restart. See bench/README.md.

    python -m bench.squeeze [--shape mixed ...] [--rounds 3] [--levels 6] [--json FILE] [--write]

Real g++ (and, with `--shape kernels`, nvcc) in a control group whose limit kills builds at high levels. Each round runs
every way once, in another order, on a clean folder; a way that dies in any round has not survived. Ratios are taken
within a round, so that a temporarily busy machine affects both sides.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.figures import README, Spread, add_arguments, draw, fill, load, machine, publish, spread, table
from bench.squeezed import Home, Run, cores, longest_job, run_in_group
from stoker.report.svg import Axis, Bar, bars
from support.heavy import Unit, clean, heavy_only, kernels, mixed, uniform, write_heavy_ninja
from support.memory_group import MIB
from support.program import PYPI_NINJA

FIRST, AGAIN = "stoker, first time", "stoker, again"


@dataclass(frozen=True, slots=True)
class Shape:
    """A project and the memory that it gets."""

    units: list[Unit]
    limit_mib: int
    about: str


SHAPES = {
    "mixed": Shape(mixed(6, 36, mib=700, seconds=5.0), 1150, "6 sources of 700 MiB in a row among 36 of 70 MiB"),
    "heavy": Shape(
        heavy_only((300, 800, 500, 700, 900, 300, 400, 900, 500, 700)), 1350, "10 sources of 300 to 900 MiB"
    ),
    "uniform": Shape(uniform(96), 1150, "96 sources of 110 MiB"),
    "kernels": Shape(kernels((800, 300, 600, 800, 400, 700, 500, 800)), 1350, "8 CUDA kernels of 300 to 800 MiB"),
}

Way = Callable[[], Run]


def ways(folder: Path, limit_mib: int, levels: int, home: Home) -> dict[str, Way]:
    """Everything that is compared, by name. The second build in `home` knows what the first has learnt."""
    ninja = [PYPI_NINJA, "-C", str(folder)]

    def fixed(*words: str) -> Way:
        return lambda: run_in_group([*ninja, *words], limit_mib)

    result: dict[str, Way] = {FIRST: lambda: home.run(ninja, limit_mib), AGAIN: lambda: home.run(ninja, limit_mib)}
    result |= {f"ninja -j{n}": fixed(f"-j{n}") for n in range(1, levels + 1)}
    result[f"ninja -j{2 * levels} -l{cores()}"] = fixed(f"-j{2 * levels}", f"-l{cores()}")
    restart = [sys.executable, "-m", "bench.kill_and_restart", str(limit_mib * MIB), str(2 * levels), "--", *ninja]
    result["kill-and-restart"] = lambda: run_in_group(restart, limit_mib)
    return result


def in_turn(names: Sequence[str], chance: random.Random) -> list[str]:
    """Another order each time, but what is learnt is learnt before it is used."""
    order = chance.sample(names, len(names))
    first, second = sorted((order.index(FIRST), order.index(AGAIN)))
    order[first], order[second] = FIRST, AGAIN
    return order


def rounds(shape: Shape, count: int, levels: int, root: Path) -> tuple[dict[str, list[Run]], float]:
    """Every way's runs, and the longest job's seconds when it ran alone."""
    folder = write_heavy_ninja(root / "project", shape.units)
    found: dict[str, list[Run]] = {}
    longest = 0.0
    chance = random.Random(1)
    for _ in range(count):
        home = Home(root)
        ways_of = ways(folder, shape.limit_mib, levels, home)
        for name in in_turn(list(ways_of), chance):
            clean(folder)
            run = ways_of[name]()
            found.setdefault(name, []).append(run)
            print(f"  {name}: {run.seconds:.1f} s, status {run.status}, {run.kills} kills", flush=True)
            if name == "ninja -j1" and run.ok:
                longest = longest_job(folder)
        home.close()
    return found, longest


def bound(alone: Sequence[Run], longest: float, limit_mib: int) -> float:
    """What nothing can beat: the longest job, CPU time over cores, or memory times time over the limit (seconds)."""
    best = min(alone, key=lambda run: run.held_time)
    return max(longest, best.cpu / cores(), best.held_time / (limit_mib * MIB))


def compare(found: dict[str, list[Run]], name: str, against: str) -> Spread | None:
    """How many times as long `name` took as `against`, round by round."""
    if not all(run.ok for run in (*found[name], *found[against])):
        return None
    return spread([a.seconds / b.seconds for a, b in zip(found[name], found[against], strict=True)])


def best_fixed(found: dict[str, list[Run]]) -> str:
    """The fixed level that survived every round and was fastest, known by hindsight."""
    alive = [n for n in found if n.startswith("ninja -j") and all(run.ok for run in found[n])]
    return min(alive, key=lambda n: spread([run.seconds for run in found[n]]).median)


def measure(name: str, args: argparse.Namespace) -> dict[str, Any]:
    """One shape."""
    shape = SHAPES[name]
    root = Path(tempfile.mkdtemp(prefix="stoker-squeeze-"))
    print(f"{name}: {shape.about}, {shape.limit_mib} MiB", flush=True)
    try:
        found, longest = rounds(shape, args.rounds, args.levels, root)
    finally:
        shutil.rmtree(root)
    return {
        "shape": name,
        "about": shape.about,
        "limit_mib": shape.limit_mib,
        "bound": bound(found["ninja -j1"], longest, shape.limit_mib),
        "best_fixed": best_fixed(found),
        "ratios": {n: compare(found, n, best_fixed(found)) for n in (FIRST, AGAIN)},
        "runs": {n: [asdict(run) for run in runs] for n, runs in found.items()},
    }


def text_of(result: dict[str, Any], where: str) -> str:
    """One shape's plot and table."""
    rows = []
    for name, runs in result["runs"].items():
        seconds = spread([run["seconds"] for run in runs])
        died = sum(run["status"] != 0 for run in runs)
        peak = max(run["held_peak"] for run in runs) // MIB
        kills = sum(run["kills"] for run in runs)
        share = "" if died else f"{seconds.median / result['bound']:.2f}"
        end = f"died {died} of {len(runs)}" if died else seconds.text(1)
        used = "" if died else spread([run["cpu"] for run in runs]).text(0)
        idle = "" if died else spread([100 * run["idle"] / (run["cpu"] + run["idle"]) for run in runs]).text(0)
        rows.append([name, end, share, str(kills), str(peak), used, idle])
    head = ["", "makespan, s", "× bound", "kernel kills", "peak, MiB", "CPU, s", "cores idle, %"]
    ratios = "; ".join(
        f"{name}: {'died' if ratio is None else ratio.text()}" for name, ratio in result["ratios"].items()
    )
    plot = f"squeeze-{result['shape']}"
    return (
        f"![{plot}](plots/{plot}.svg)\n\n"
        f"**{result['shape']}**: {result['about']}, with {result['limit_mib']} MiB; bound {result['bound']:.1f} s\n\n"
        f"{table(head, rows)}\n\nAgainst the best fixed way that survived ({result['best_fixed']}): {ratios}."
        f"\n\n{where}"
    )


def plots_of(results: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Every way's makespan over the bound, shape by shape."""
    axis = Axis("makespan over the lower bound, with spread", mark=1.0)
    return {f"squeeze-{r['shape']}": bars(f"Real builds: {r['about']}", ["makespan"], _bars(r), axis) for r in results}


def _bars(result: dict[str, Any]) -> dict[str, list[Bar]]:
    found = {}
    for name, runs in result["runs"].items():
        died = sum(run["status"] != 0 for run in runs)
        over = spread([run["seconds"] / result["bound"] for run in runs])
        found[name] = [Bar(None, note=f"died {died} of {len(runs)}") if died else Bar(*over)]
    return found


def main() -> None:
    """Measure and publish."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--shape", action="append", choices=SHAPES, help="which (default: all but kernels)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--levels", type=int, default=6, help="fixed levels from 1 to this")
    add_arguments(parser)
    args = parser.parse_args()
    before = load()
    results = [measure(name, args) for name in args.shape or ("mixed", "heavy", "uniform")]
    where = f"{machine()}; load before: {before:.1f}; {args.rounds} rounds."
    texts = {f"squeeze-{result['shape']}": text_of(result, where) for result in results}
    summary = {r["shape"]: {"against": r["best_fixed"], **r["ratios"]} for r in results}
    plots = plots_of(results)
    # Each shape has a place of its own on the page: one that was measured alone leaves the others as they are.
    text = "\n\n".join(f"<!-- {name} -->\n{text}\n<!-- /{name} -->" for name, text in texts.items())
    publish("squeeze", results, text, out=args.json, write=False, summary=summary)
    if args.json:
        draw(plots, args.json.parent)
    if args.write:
        draw(plots, README.parent)
        for name, text in texts.items():
            fill(README, name, text)


if __name__ == "__main__":
    main()
