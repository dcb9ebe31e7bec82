"""Simulates the start order of stoker and of both kinds of ninja on graphs of real projects. See bench/README.md.

    python -m bench.pace [--builds pytorch ...] [--cores 16 ...] [--json FILE] [--write]

The builds are those of bench/builds, with the CPU seconds that each job really took, where memory is plenty. Nothing is
timed, so any machine gives the same, however busy.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from typing import Any

from bench.eta_builds import RECORDED
from bench.figures import add_arguments, publish, spread, table
from bench.witness_graph import shortest
from stoker.decide.memory.curves import Point
from stoker.simulate.runner import Result, simulate
from stoker.simulate.trace import TraceJob

PLENTY = 2**40
JOB_BYTES = 2**20
LEAST_SECONDS = 0.001
SMALL_CORES, LARGE_CORES = (2, 8, 16), (16, 32, 64)
LARGE = 2000
"""A build of so many edges is one for large machines."""

ROUNDS = 20
"""Attempts to shorten the best known schedule."""

WAYS = ["best known", "ninja to 1.11", "from 1.12", "stoker, first build", "stoker, noisy history"]
HEAD = ["build", "edges", "cores", *WAYS]


def main() -> None:
    """Simulate and publish."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = sorted(file.name.partition(".")[0] for file in RECORDED.glob("*.json.gz"))
    parser.add_argument("--builds", nargs="+", choices=names, default=names)
    parser.add_argument("--cores", nargs="+", type=int, help="(default: 2, 8 and 16, for a large build 16, 32 and 64)")
    add_arguments(parser)
    args = parser.parse_args()
    figures, rows = [], []
    for name in args.builds:
        jobs = recorded(name)
        for cores in args.cores or (LARGE_CORES if len(jobs) >= LARGE else SMALL_CORES):
            results = run(jobs, cores)
            best = shortest(jobs, cores, ROUNDS)
            told = {key: asdict(r) for key, r in results.items()}
            figures.append({"build": name, "cores": cores, "best": best, **told})
            ratios = (best / results["history"].bound, *(r.ratio for r in results.values()))
            rows.append([name, str(len(jobs)), str(cores), *(f"{ratio:.3f}" for ratio in ratios)])
            print(*rows[-1], flush=True)
    won = [f["history"]["makespan"] / f["manifest"]["makespan"] for f in figures]
    text = f"Stoker with a noisy history over ninja to 1.11: {spread(won).text(3)}.\n\n{table(HEAD, rows)}\n"
    publish("pace", figures, text, out=args.json, write=args.write, summary={"history over manifest": spread(won)})


def run(jobs: Sequence[TraceJob], cores: int) -> dict[str, Result]:
    """The same build under each, in the order of the table."""
    return {
        "manifest": simulate(jobs, cores, PLENTY, f"fixed:{cores}"),
        "edges": simulate(jobs, cores, PLENTY, f"longest:{cores}"),
        "first": simulate(jobs, cores, PLENTY, "stoker", "absent"),
        "history": simulate(jobs, cores, PLENTY, "stoker", "noisy"),
    }


def recorded(name: str) -> list[TraceJob]:
    """A recorded build as a trace: what is waited for stands before what waits, else the manifest's order."""
    data: Mapping[str, Any] = json.loads(gzip.decompress((RECORDED / f"{name}.json.gz").read_bytes()))
    groups, deps = [edge[2] for edge in data["edges"]], data["deps"]
    outputs: dict[int, list[str]] = {}
    for edge in data["edges"]:
        outputs.setdefault(edge[2], []).append(edge[0])

    @cache
    def depth(group: int) -> int:
        return max((depth(before) + 1 for before in deps[group]), default=0)

    @cache
    def before(group: int) -> tuple[str, ...]:
        """What a group waits for; a group without edges joins others."""
        found = [outputs.get(g) or before(g) for g in deps[group]]
        return tuple(dict.fromkeys(output for some in found for output in some))

    order = sorted(range(len(groups)), key=lambda number: (depth(groups[number]), number))
    return [_job(data["edges"][number], before(groups[number])) for number in order]


def _job(edge: Sequence[Any], deps: tuple[str, ...]) -> TraceJob:
    output, tool, _group, _size, _first, seconds = edge
    points = Point(0.0, JOB_BYTES), Point(max(LEAST_SECONDS, seconds), JOB_BYTES)
    return TraceJob(output, tool, points, deps=deps)


if __name__ == "__main__":
    main()
