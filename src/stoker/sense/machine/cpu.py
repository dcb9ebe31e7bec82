"""How busy the machine's cores are, and how many of them a process may use.

Unaware of cgroups except for the quota that it is given.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from stoker.sense.proc.processes import PROC
from stoker.sense.proc.procfs import read_all

_CORE = re.compile(rb"^cpu\d+ (.*)", re.MULTILINE)


class CpuUse(NamedTuple):
    """Percent (0..100): of the whole machine, and of each core."""

    percent: float
    cores: tuple[int, ...]


class CpuReader:
    """Measures how busy each core was between two reads."""

    def __init__(self, proc_root: Path = PROC) -> None:
        self._stat = f"{proc_root}/stat"
        self._before: list[tuple[int, int]] = []

    def read(self) -> CpuUse | None:
        """Return the usage since the last call (0 at first), None if the kernel does not report it."""
        try:
            now = [_busy_and_total(ticks) for ticks in _CORE.findall(read_all(self._stat) or b"")]
        except ValueError:
            return None
        if not now:
            return None
        before = self._before if len(self._before) == len(now) else now
        self._before = now
        passed = [(busy - then[0], total - then[1]) for then, (busy, total) in zip(before, now, strict=True)]
        whole = (sum(busy for busy, _ in passed), sum(total for _, total in passed))
        return CpuUse(round(_share(*whole), 1), tuple(round(_share(*core)) for core in passed))


def _busy_and_total(ticks: bytes) -> tuple[int, int]:
    """Add up the clock ticks of one core (proc_stat(5)): idle and iowait are not busy; user time includes guests'."""
    times = [int(text) for text in ticks.split()[:8]]
    total = sum(times)
    return total - sum(times[3:5]), total


def _share(busy: float, total: float) -> float:
    return min(100.0, max(0.0, 100.0 * busy / total)) if total > 0 else 0.0


def cpu_available(pid: int, quota: float | None) -> float:
    """Return how many cores a process may use: by its affinity, and its cgroups' quota (in cores) if there is one."""
    try:
        cores = float(len(os.sched_getaffinity(pid)))
    except OSError:
        cores = float(os.cpu_count() or 1)
    return cores if quota is None else min(cores, quota)
