"""Measures builds next to a thrashing neighbour, with and without stoker. See bench/README.md.

    python -m bench.neighbour [--pairs 20] [--jobs 8] [--seconds 1] [--json FILE] [--write]

The neighbour reads more mapped pages than fit into a control group of 80 MiB, so that the machine's PSI says that
tasks stall on memory while most of the memory is free. Each pair builds the same twice, bare ninja and ninja under
stoker taking turns to be first, both at two jobs at once. Nothing may be killed, and nothing frozen, for a neighbour.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from bench.figures import add_arguments, load, machine, publish, spread, table
from bench.overhead import Bench, Run, varied
from support.thrash import Thrasher, machine_stalls

LEVEL = 2
VARY = 0.5
MIB = 150
"""What each job comes to hold: nothing on any machine that has room for two of them."""


def main() -> None:
    """Measure and publish."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=8, help="of one build")
    parser.add_argument("--seconds", type=float, default=1.0, help="CPU seconds of a job, half of that more or less")
    add_arguments(parser)
    args = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="stoker-neighbour-"))
    before = load()
    try:
        pairs, stalls = measure(root, args.pairs, args.jobs, args.seconds)
    finally:
        shutil.rmtree(root)
    ratio = spread([governed.build / bare.build for bare, governed in pairs])
    frozen, shed = sum(g.frozen for _, g in pairs), sum(g.shed for _, g in pairs)
    row = [
        str(len(pairs)),
        f"{args.jobs} of {args.seconds:g} s",
        spread(stalls).text(0) if stalls else "no PSI",
        f"{spread([bare.build for bare, _ in pairs]).median:.1f}",
        ratio.text(3),
        str(frozen),
        str(shed),
    ]
    head = ["pairs", "jobs", "machine stalled, %", "bare ninja, s", "under stoker, × bare", "frozen", "killed"]
    text = f"{machine()}; load before: {before:.1f}.\n\n{table(head, [row])}\n"
    figures: list[dict[str, Any]] = [{"bare": asdict(bare), "governed": asdict(governed)} for bare, governed in pairs]
    summary = {"ratio": ratio, "frozen": frozen, "shed": shed}
    publish("neighbour", figures, text, out=args.json, write=args.write, summary=summary)


def measure(root: Path, count: int, jobs: int, seconds: float) -> tuple[Sequence[tuple[Run, Run]], list[float]]:
    """Pairs of (bare, governed), and how far the machine stalled after each."""
    bench = Bench(root, [replace(job, mib=MIB) for job in varied(jobs, seconds, VARY)], LEVEL)
    pairs: list[tuple[Run, Run]] = []
    stalls: list[float] = []
    with Thrasher(root):
        for number in range(count):
            if number % 2:
                governed, bare = bench.governed(), bench.bare()
            else:
                bare, governed = bench.bare(), bench.governed()
            pairs.append((bare, governed))
            if (stall := machine_stalls()) is not None:
                stalls.append(stall)
            stops = f"{governed.frozen} frozen, {governed.shed} killed"
            print(f"{bare.build:.2f} s, × {governed.build / bare.build:.3f}, {stops}; stalled {stall} %", flush=True)
    return pairs, stalls


if __name__ == "__main__":
    main()
