"""Simulates builds short of memory: stoker and its rivals, 32 to 128 GiB, 16 to 128 cores. See bench/README.md.

    python -m bench.simulate [--builds pytorch ...] [--ram 32 ...] [--cores 16 ...] [--jobs N] [--runs FILE] [--write]

Nothing is timed, so every machine gives the same result, however busy. `--runs FILE` keeps each finished run and does
not repeat it, so that the bench can be interrupted and continued. Kernels are drawn from measured memory curves.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, get_args

from bench.figures import add_arguments, publish
from bench.simulated import TARGETED, TARGETS, missed, plots_of, summary_of, text_of
from stoker.simulate.oracle import PREDICTIONS, Prediction
from stoker.simulate.runner import FIXED_LEVELS, simulate
from stoker.simulate.synthetic import BUILDS, Order

GIB = 2**30


class Task(NamedTuple):
    """One build to simulate; a `policy` of stoker's is followed by what it knows: `stoker noisy`."""

    build: str
    order: Order
    seed: int
    cores: int
    gib: int
    policy: str
    most: int | None = None
    """How many of the build's jobs are simulated, the first ones; None for all."""


@dataclass(frozen=True)
class Grid:
    """What is to be simulated."""

    builds: Sequence[str]
    orders: Sequence[Order]
    seeds: int
    machines: Sequence[tuple[int, int]]
    """Cores and GiB of each. Orders after the first, the hardest, are for those alone that targets are stated for."""

    most: int | None = None
    """As a task's."""

    def tasks(self) -> Iterator[Task]:
        """Those that decide whether a target is met come first."""
        own = [f"stoker {kind}" for kind in sorted(PREDICTIONS, key=lambda kind: kind != "noisy")]
        for seed in range(1, self.seeds + 1):
            for order in self.orders:
                for policies in (own[:1], ["rivals"], own[1:]):
                    for build in self.builds:
                        yield from self._tasks(build, order, seed, policies)

    def _tasks(self, build: str, order: Order, seed: int, policies: list[str]) -> Iterator[Task]:
        machines = self.machines if order == self.orders[0] else [m for m in self.machines if m in TARGETED]
        for cores, gib in machines:
            for policy in rivals(cores) if policies == ["rivals"] else policies:
                yield Task(build, order, seed, cores, gib, policy, self.most)


def rivals(cores: int) -> list[str]:
    """Every fixed level that a person might try, and what else people use."""
    levels = [n for n in FIXED_LEVELS if n < cores] + [cores]
    return [*(f"fixed:{n}" for n in levels), f"load:{cores}", "kill-and-restart", "psi"]


def run(task: Task) -> dict[str, Any]:
    """One simulated build as a line of JSON."""
    jobs = BUILDS[task.build](order=task.order, seed=task.seed)[: task.most]
    policy, _, known = task.policy.partition(" ")
    begin = time.process_time()
    prediction: Prediction = next((kind for kind in PREDICTIONS if kind == known), "noisy")
    result = simulate(jobs, task.cores, task.gib * GIB, policy, prediction, task.seed)
    took = round(time.process_time() - begin, 2)
    return {
        **task._asdict(),
        "jobs": len(jobs),
        "cpu_seconds": took,
        "result": {**asdict(result), "policy": task.policy},
    }


def runs(tasks: Sequence[Task], kept: Path | None, workers: int) -> list[dict[str, Any]]:
    """All of them, those among `kept` unless they are there already."""
    known = {_task(r): r for r in map(json.loads, kept.read_text().splitlines())} if kept and kept.exists() else {}
    left = [task for task in tasks if task not in known]
    print(f"{len(tasks)} runs, {len(left)} of them to make", flush=True)
    for number, record in enumerate(_made(left, workers), 1):
        known[_task(record)] = record
        if kept is not None:
            with kept.open("a") as file:
                file.write(json.dumps(record) + "\n")
        if record["policy"].startswith("stoker"):
            name = f"{record['build']}, {record['cores']} cores, {record['gib']} GiB, {record['policy']}"
            print(f"{number} of {len(left)}: {name}: {record['result']['ratio']:.2f} × bound", flush=True)
    return [known[task] for task in tasks]


def _made(tasks: Iterable[Task], workers: int) -> Iterator[dict[str, Any]]:
    if workers == 1:
        yield from map(run, tasks)
        return
    with multiprocessing.Pool(workers) as pool:
        yield from pool.imap_unordered(run, tasks)


def _task(record: dict[str, Any]) -> Task:
    return Task(**{name: record[name] for name in Task._fields if name in record})


def main() -> int:
    """Simulate and publish; 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--builds", nargs="*", choices=sorted(TARGETS), default=list(TARGETS))
    parser.add_argument("--orders", nargs="*", choices=get_args(Order), default=["row", "scattered"])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--cores", nargs="*", type=int, default=[16, 32, 64, 128])
    parser.add_argument("--ram", nargs="*", type=int, default=[32, 64, 128], help="GiB")
    parser.add_argument("--jobs", type=int, metavar="N", help="only the first N jobs of each build: to try the bench")
    parser.add_argument("--targeted", action="store_true", help="only the machines for which targets are stated")
    parser.add_argument("--runs", type=Path, metavar="FILE", help="JSON lines: one for each run, kept as it ends")
    parser.add_argument("--workers", type=int, default=1)
    add_arguments(parser)
    args = parser.parse_args()
    machines = sorted(TARGETED) if args.targeted else [(cores, gib) for gib in args.ram for cores in args.cores]
    grid = Grid(args.builds, args.orders, args.seeds, machines, args.jobs)
    found = runs(list(grid.tasks()), args.runs, args.workers)
    figures = [r["result"] | {k: v for k, v in r.items() if k != "result"} for r in found]
    publish(
        "simulate",
        figures,
        text_of(figures),
        out=args.json,
        write=args.write,
        summary=summary_of(figures),
        plots=plots_of(figures),
    )
    return int(bool(missed(figures)))


if __name__ == "__main__":
    raise SystemExit(main())
