"""Measures what sending real compilations elsewhere would cost: the share that stays here, and the bytes on the wire.

    python -m bench.fleet_costs [--flags "-O2 -I..."] [--json FILE] SOURCE ...

Each source is compiled in one piece, and in the two steps of sccache-dist, distcc and icecream: preprocessing here,
compiling the result there. CPU seconds (user and system) are compared, which a busy machine stretches equally. Sources
that do not compile with these flags are skipped. See docs/fleet.md.
"""

from __future__ import annotations

import argparse
import json
import resource
import shlex
import subprocess
import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

LIMIT_SECONDS = 900


class Sent(NamedTuple):
    """One source: CPU seconds whole, preprocessed and compiled from that; bytes as they are and packed by zlib 1."""

    source: str
    whole: float
    preprocess: float
    rest: float
    plain: int
    packed: int
    object: int
    object_packed: int


def cpu_of(words: Sequence[str]) -> float | None:
    """CPU seconds of a command and its children; None where it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        done = subprocess.run(words, capture_output=True, timeout=LIMIT_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return None
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime if done.returncode == 0 else None


def measure(source: str, flags: Sequence[str], folder: Path) -> Sent | None:
    """Compile it in one piece and in two; None where it does not compile."""
    ii, o = folder / "a.ii", folder / "a.o"
    preprocess = cpu_of(["g++", *flags, "-E", source, "-o", str(ii)])
    if preprocess is None:
        return None
    whole = cpu_of(["g++", *flags, "-c", source, "-o", str(o)])
    rest = cpu_of(["g++", *flags, "-c", str(ii), "-o", str(o)])
    if whole is None or rest is None:
        return None
    text, code = ii.read_bytes(), o.read_bytes()
    sizes = (len(text), len(zlib.compress(text, 1)), len(code), len(zlib.compress(code, 1)))
    return Sent(Path(source).name, whole, preprocess, rest, *sizes)


def summary(found: Sequence[Sent]) -> dict[str, float]:
    """What all of them together come to, for each CPU second of compiling."""
    whole = sum(s.whole for s in found)
    return {
        "sources": len(found),
        "seconds": round(whole, 1),
        "here": round(sum(s.preprocess for s in found) / whole, 4),
        "preprocess_and_rest": round(sum(s.preprocess + s.rest for s in found) / whole, 4),
        "sent": round(sum(s.packed for s in found) / whole),
        "sent_plain": round(sum(s.plain for s in found) / whole),
        "received": round(sum(s.object_packed for s in found) / whole),
        "received_plain": round(sum(s.object for s in found) / whole),
    }


def main() -> None:
    """Measure and print a line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="+", metavar="SOURCE")
    parser.add_argument("--flags", default="-O2", type=shlex.split, help="for g++ (default: -O2)")
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    found: list[Sent] = []
    with tempfile.TemporaryDirectory() as folder:
        for source in args.sources:
            sent = measure(source, args.flags, Path(folder))
            if sent is not None:
                found.append(sent)
                share = sent.preprocess / sent.whole
                sizes = (
                    f"{sent.packed / 1e6:.2f} of {sent.plain / 1e6:.1f} MB out, {sent.object_packed / 1e6:.2f} MB in"
                )
                print(f"{sent.source:36} {sent.whole:7.2f} s  {share:5.1%} here  {sizes}", flush=True)
    if not found:
        raise SystemExit("none of these sources compiles with these flags")
    print(json.dumps(summary(found)))
    if args.json is not None:
        args.json.write_text(json.dumps({"summary": summary(found), "sources": [s._asdict() for s in found]}, indent=1))


if __name__ == "__main__":
    main()
