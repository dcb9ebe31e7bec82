"""The demo where there is no compiler: the same shape of build, its jobs Python that takes real memory and CPU time.

Unaware of where the files are written.
"""

from __future__ import annotations

import shlex
import sys

from stoker.demo.ninjafile import NinjaFile, escape
from stoker.demo.sizing import PYTHON_LIGHT_SHARE, DemoPlan

_OTHER_MIB = 8

_WORK = '''\
"""One job: CPU time, and memory that rises to a peak and falls again, as a compiler's does.

python work.py OUTPUT SECONDS MIB [INPUT...]: CPU seconds, so that a job that is held ages no more than a real one.
"""

import hashlib
import sys
import time
from pathlib import Path

MIB = 2**20
RISE, FALL = 0.4, 0.6
"""The peak lies between these shares of the job's life; after it a third stays."""


def wanted(share: float, peak: int) -> int:
    """MiB to hold after this share of the job's life."""
    if share < RISE:
        return int(peak * share / RISE)
    return peak if share < FALL else peak // 3


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


def python_project(plan: DemoPlan, *, fail: bool) -> dict[str, str]:
    """Return the project's files by name."""
    ninja = NinjaFile()
    python = escape(shlex.quote(sys.executable))
    ninja.rule("work", f"{python} work.py $out $seconds $mib $in $flags", "Working on $out")

    def job(
        output: str, inputs: list[str], mib: int = _OTHER_MIB, share: float = PYTHON_LIGHT_SHARE, flags: str = ""
    ) -> str:
        seconds = f"{share * plan.seconds_each:.3f}"
        return ninja.edge(output, "work", inputs, implicit=["work.py"], seconds=seconds, mib=str(mib), flags=flags)

    generated = [job(f"gen/kernel_{n:02}.txt", []) for n in range(plan.medium)]
    kernels = [
        job(f"obj/kernel_{n:02}.o", [generated[n % len(generated)]], mib, 1.0) for n, mib in enumerate(plan.heavy)
    ]
    light = [job(f"obj/grate_{n:02}.o", []) for n in range(plan.light)]
    grate = job("lib/libgrate.a", light)
    check = job("obj/check_gauge.o", [grate], flags="--fail" if fail else "")
    program = job("bin/furnace", [job("lib/libkernel.a", kernels), check, grate])
    return {"work.py": _WORK, "build.ninja": ninja.text(job("selftest.txt", [program]))}
