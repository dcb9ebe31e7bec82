"""How every demo begins: two small jobs, then two large ones of their kind that nobody expects to be large.

Unaware of what else is built, and of where the files are written.

A compiler takes its memory as its core allows, on a busy machine over half a minute, and what it is expected to take
depends on which of its kind ended first. These jobs come before all others, and take theirs in two seconds of CPU time:
so on any machine a person soon sees what stoker is for. The small ones show what their kind seems to need; therefore
the large ones start side by side, and soon need more than there is.
"""

from __future__ import annotations

import shlex
import sys

from stoker.demo.ninjafile import NinjaFile, escape
from stoker.demo.sizing import DemoPlan

SMALL_MIB, SMALL_SECONDS = 8, 0.05

WORK = '''\
"""One job: CPU time, and memory that rises to a peak and falls again, as a compiler's does.

python work.py OUTPUT SECONDS MIB [INPUT...]: CPU seconds, so that a job that is held ages no more than a real one.
"""

import hashlib
import sys
import time
from pathlib import Path

MIB = 2**20
QUIET, PEAK, FALL = 0.15, 0.95, 0.97
"""Shares of the job's life: it holds nothing before the first, and rises until the second; in the end a third stays."""


def wanted(share: float, peak: int) -> int:
    """MiB to hold after this share of the job's life.

    It rises ever more slowly: when one of two is stopped, the other needs little more, and no job is killed for it.
    """
    if share >= FALL:
        return peak // 3
    missing = (PEAK - min(max(share, QUIET), PEAK)) / (PEAK - QUIET)
    return int(peak * (1 - missing**2))


def main() -> None:
    output, seconds, peak, *inputs = sys.argv[1:]
    digest = hashlib.sha256("".join([output, *inputs]).encode()).digest()
    blocks: list[bytes] = []
    while (share := time.process_time() / max(0.05, float(seconds))) < 1.0:
        target = wanted(share, int(peak))
        del blocks[target:]
        if len(blocks) < target:
            blocks.append(digest * (MIB // len(digest)))  # every page is written: the memory is real
        for _ in range(200):
            digest = hashlib.sha256(digest).digest()
    if "--fail" in inputs:
        sys.exit(f"{Path(output).stem}.cpp:1:1: error: this one is wrong on purpose")
    Path(output).parent.mkdir(parents=True, exist_ok=True)
    Path(output).write_text("".join(inputs) + "\\n")


main()
'''


def add_opening(ninja: NinjaFile, plan: DemoPlan) -> tuple[str, list[str]]:
    """Add the rule `work` and the opening's jobs; return the output of the last small one, and of the large ones."""
    python = escape(shlex.quote(sys.executable))
    ninja.rule("work", f"{python} work.py $out $seconds $mib $in $flags", "Working on $out")

    def job(n: int, seconds: float, mib: int, *needs: str) -> str:
        return ninja.edge(
            f"data/coal_{n:02}.txt", "work", implicit=["work.py", *needs], seconds=f"{seconds:.3f}", mib=str(mib)
        )

    # One after the other: what the first one took is known before the large ones start, if not what the second took.
    small = job(1, SMALL_SECONDS, SMALL_MIB, job(0, SMALL_SECONDS, SMALL_MIB))
    return small, [job(n, plan.opening_seconds, plan.opening_mib, small) for n in (2, 3)]
