"""How busy the machine's cores are, and how many of them a process may use.

Unaware of cgroups but for the quota it is given.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from stoker.sense.proc.processes import PROC
from stoker.sense.proc.procfs import read_all

_MAX_STAT = 256 * 1024
"""The cpu lines are the first of /proc/stat; the interrupt line behind them may be long."""


class CpuUse(NamedTuple):
    """Percent (0..100): of the whole machine, and of each core."""

    percent: float
    cores: tuple[int, ...]


class CpuReader:
    """Turns the ticks of /proc/stat into shares of the time between two reads."""

    def __init__(self, proc_root: Path = PROC) -> None:
        self._path = f"{proc_root}/stat"
        self._before: dict[bytes, tuple[int, int]] = {}

    def read(self) -> CpuUse | None:
        """The use since the last call (0 at the first), None if /proc/stat cannot be read."""
        data = read_all(self._path, _MAX_STAT)
        ticks = parse_cpu_lines(data) if data else {}
        if b"cpu" not in ticks:
            return None
        shares = {name: _share(self._before.get(name), now) for name, now in ticks.items()}
        self._before = ticks
        total = shares.pop(b"cpu")
        return CpuUse(round(total, 1), tuple(round(share) for share in shares.values()))


def parse_cpu_lines(data: bytes) -> dict[bytes, tuple[int, int]]:
    """Busy and total ticks of "cpu" and of each "cpuN" (proc(5)); guest time is inside user time already."""
    ticks: dict[bytes, tuple[int, int]] = {}
    for line in data.splitlines():
        if not line.startswith(b"cpu"):
            break
        name, *fields = line.split()
        try:
            numbers = [int(f) for f in fields[:8]]
        except ValueError:
            continue
        if len(numbers) < 4:
            continue
        total = sum(numbers)
        ticks[name] = (total - sum(numbers[3:5]), total)
    return ticks


def _share(before: tuple[int, int] | None, now: tuple[int, int]) -> float:
    if before is None or now[1] <= before[1]:
        return 0.0
    return min(100.0, max(0.0, 100.0 * (now[0] - before[0]) / (now[1] - before[1])))


def cpu_available(pid: int, quota: float | None) -> float:
    """Cores that a process may use: its affinity, and its cgroups' quota (in cores) if there is one."""
    try:
        cores = float(len(os.sched_getaffinity(pid)))
    except OSError:
        cores = float(os.cpu_count() or 1)
    return cores if quota is None else min(cores, quota)
