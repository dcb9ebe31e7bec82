"""Finds a compiler's time trace next to an object: clang -ftime-trace, nvcc -fdevice-time-trace.

Unaware of its contents. A file may be anything: it is read up to a bound, and ignored if it is older than its job.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

from stoker.config.regular import open_regular

MAX_BYTES = 64 * 2**20
"""The largest file that is read; nvcc 13 writes half a MiB for a kernel of three lines."""

CLOCK_SLACK = 2.0
"""Seconds by which a file system's clock may be behind."""


def compiler_trace(directory: str, output: str, began: float) -> object | None:
    """Return the decoded trace of the job that made `output` and began then (Unix time); None if there is none."""
    for path in _candidates(Path(directory, output)):
        try:
            with open_regular(path) as file:
                state = os.fstat(file.fileno())
                if state.st_size > MAX_BYTES or state.st_mtime < began - CLOCK_SLACK:
                    continue
                found: object = json.loads(file.read(MAX_BYTES + 1))
        except (OSError, ValueError, RecursionError):
            continue
        return found
    return None


def _candidates(made: Path) -> Iterator[Path]:
    """Where nvcc puts it (k.cu.o.json), and clang (a.cpp.json of a.cpp.o)."""
    yield made.with_name(made.name + ".json")
    yield made.with_suffix(".json")
