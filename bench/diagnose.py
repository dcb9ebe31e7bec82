"""Measures the CPU seconds that `stoker diagnose` takes for a large log. See bench/README.md.

    python -m bench.diagnose [--rounds 3] [--quick] [--json FILE] [--write]

Each log is the output of a verbose build of the size of PyTorch's with the error at the end, so all of it is read.
Target: 500 MB in at most 10 s of CPU time.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.figures import add_arguments, machine, publish, spread, table

MEGABYTES = 500
QUICK_MEGABYTES = 50
LIMIT = 10.0
"""Seconds of CPU that 500 MB may take."""

KINDS = {
    "lines": "ninja's lines, warnings, and what configure scripts did not find",
    "commands": "whole compiler commands",
    "docker": "the same behind docker's numbers",
}
ERROR = b"a.cpp:1:10: fatal error: mpi.h: No such file or directory\n"

Found = dict[str, float | str]


def some_lines(kind: str) -> Iterator[bytes]:
    """Yield some MB of a log."""
    rand = random.Random(1)
    for number in range(40_000):
        step = b"[%d/40000] " % number
        flags = b" ".join(b"-I/src/pytorch/third_party/lib%d/include" % rand.randrange(99) for _ in range(20))
        lines = (
            step + b"Building CXX object aten/src/ATen/CMakeFiles/torch_cpu.dir/native/cpu/kernel_%d.cpp.o\n" % number,
            b"/src/pytorch/aten/x_%d.h:12:12: warning: unused variable 'foo' [-Wunused-variable]\n" % number,
            b"-- Looking for include file sys_%d.h - not found\n" % number,
            step + b"/usr/bin/c++ -DHAVE_MALLOC " + flags + b" -Wno-error=pedantic -fno-exceptions -c x.cpp -o x.o\n",
        )
        if kind == "commands":
            yield lines[3]
        else:
            chosen = rand.choices(lines[:3], (6, 2, 1))[0]
            yield (b"#12 %d.45 " % number if kind == "docker" else b"") + chosen


def measure(kind: str, megabytes: int) -> Found:
    """One run of the program on one log."""
    with tempfile.TemporaryDirectory(prefix="stoker-diagnose-") as folder:
        log, piece = Path(folder) / "build.log", b"".join(some_lines(kind))
        with log.open("wb") as file:
            for _ in range(-(-megabytes * 1_000_000 // len(piece))):
                file.write(piece)
            file.write(ERROR)
        size = log.stat().st_size
        words = [sys.executable, "-m", "stoker", "diagnose", "--json", str(log)]
        process = subprocess.Popen(words, stdout=subprocess.PIPE)
        assert process.stdout is not None
        found = json.load(process.stdout)
        _, _, usage = os.wait4(process.pid, 0)
        assert found["matches"][0]["rule"] == "header-of-package", found
    return {
        "kind": kind,
        "megabytes": size / 1e6,
        "seconds": usage.ru_utime + usage.ru_stime,
    }


def main() -> int:
    """Measure and publish. Exits with 1 where the promise is broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one round with 50 MB")
    add_arguments(parser)
    args = parser.parse_args()
    megabytes = QUICK_MEGABYTES if args.quick else MEGABYTES
    found = [measure(kind, megabytes) for _ in range(1 if args.quick else args.rounds) for kind in KINDS]
    seconds = {kind: spread([float(f["seconds"]) for f in found if f["kind"] == kind]) for kind in KINDS}
    rows = [[kind, what, seconds[kind].text()] for kind, what in KINDS.items()]
    text = f"{machine()}, logs of {megabytes} MB.\n\n{table(['log', 'holds', 's of CPU'], rows)}\n"
    publish("diagnose", found, text, out=args.json, write=args.write, summary=seconds)
    return int(any(s.median > LIMIT * megabytes / MEGABYTES for s in seconds.values()))


if __name__ == "__main__":
    sys.exit(main())
