"""The policy on paper, against its rivals and the lower bound: JSON and Markdown in a folder of your choice.

    python bench/simulate.py --out /tmp/figures            about ten minutes on one core
    python bench/simulate.py --out /tmp/figures --seeds 1 --builds flash-attn

"at worst" is the worst of all seeds and of both orders (heavy jobs scattered, and in a row).
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import get_args

from stoker.simulate.expectation import PREDICTIONS
from stoker.simulate.run import Result, best_fixed, simulate
from stoker.simulate.synthetic import BUILDS, Order

GIB = 2**30
MACHINES = ((16, 32), (32, 64), (64, 128))
"""Cores and GiB."""

TARGETS = {"pytorch": 1.10, "flash-attn": 1.40, "vllm": 1.40}
"""Makespan over the bound that noisy history must not exceed."""


@dataclass(frozen=True)
class Run:
    """One simulated build."""

    build: str
    order: str
    seed: int
    cores: int
    gib: int
    predictions: str
    seconds: float
    result: Result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--builds", nargs="*", choices=sorted(TARGETS), default=sorted(TARGETS))
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    runs = [r for build in args.builds for r in _build(build, args.seeds)]
    lines = [json.dumps({**asdict(r), **asdict(r.result), "result": None}) for r in runs]
    (args.out / "simulate.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    table = "\n".join(_markdown(runs, args.builds))
    (args.out / "simulate.md").write_text(table + "\n", encoding="utf-8")
    print(table)


def _build(build: str, seeds: int) -> Iterable[Run]:
    for seed in range(1, seeds + 1):
        for order in get_args(Order):
            jobs = BUILDS[build](order=order, seed=seed)
            for cores, gib in MACHINES:
                ram = gib * GIB
                for predictions in PREDICTIONS:
                    start = time.perf_counter()
                    result = simulate(jobs, cores, ram, "stoker", predictions, seed)
                    yield Run(build, order, seed, cores, gib, predictions, time.perf_counter() - start, result)
                rivals = [simulate(jobs, cores, ram, p) for p in (f"fixed:{cores}", "kill-and-restart", "psi")]
                best = best_fixed(jobs, cores, ram)
                for result in [*rivals, *([best] if best else [])]:
                    name = "best fixed" if result is best else result.policy.partition(":")[0]
                    yield Run(build, order, seed, cores, gib, name, 0.0, result)
        print(f"{build}: seed {seed} of {seeds}", flush=True)


def _markdown(runs: list[Run], builds: Iterable[str]) -> Iterable[str]:
    """Worst makespans as multiples of the bound; kills in brackets where there were any."""
    rivals = ("best fixed", "fixed", "kill-and-restart", "psi")
    head = ("build", "cores/GiB", "exact", "noisy", "no history", "best -j by hindsight", "-j cores", *rivals[2:])
    yield "| " + " | ".join(head) + " |"
    yield "|---" * len(head) + "|"
    for build in builds:
        for cores, gib in MACHINES:
            cells = [
                _worst([r for r in runs if (r.build, r.cores, r.predictions) == (build, cores, kind)])
                for kind in (*PREDICTIONS, *rivals)
            ]
            yield f"| {build} | {cores}/{gib} | " + " | ".join(cells) + " |"
    own = [r for r in runs if r.predictions in PREDICTIONS]
    kills = sum(r.result.kills for r in own)
    noisy = [r for r in own if r.predictions == "noisy"]
    missed = [r for r in noisy if r.result.ratio > TARGETS[r.build]]
    asked = sorted(r.seconds / r.result.asked for r in own)
    yield ""
    yield (
        f"stoker: {len(own)} runs, {kills} kills, at most {max(r.result.peak / r.gib / GIB for r in own):.1%} of the "
        f"memory in use; noisy history above its target in {len(missed)} of {len(noisy)} runs; a look takes "
        f"{1000 * asked[len(asked) // 2]:.1f} ms (median of the runs), {1000 * asked[-1]:.1f} ms in the slowest run."
    )


def _worst(runs: list[Run]) -> str:
    if not runs:
        return "none survives"
    kills = sum(r.result.kills for r in runs)
    return f"{max(r.result.ratio for r in runs):.2f}" + (f" ({kills} kills)" if kills else "")


if __name__ == "__main__":
    main()
