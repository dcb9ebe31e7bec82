"""Measures one build in a memory group: its duration and result, the kernel's kills, the memory it held.

Does not know what is compared with what.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from support.memory_group import MIB, MemoryGroup
from support.program import Stoker

LOOK_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Run:
    """`held_peak` in bytes without file cache; `held_time` in byte seconds.

    `cpu` and `idle` are core seconds of the whole machine, used and left unused. Where cores are lent the same work
    takes more or less of them from minute to minute.
    """

    seconds: float
    status: int
    kills: int
    held_peak: int
    held_time: float
    cpu: float
    idle: float

    @property
    def ok(self) -> bool:
        """The build got through."""
        return self.status == 0


def run_in_group(command: Sequence[str], limit_mib: int, env: Mapping[str, str] | None = None) -> Run:
    """Run it to its end with at most that much memory."""
    with MemoryGroup(limit_mib * MIB) as group, tempfile.TemporaryFile() as output:
        before, begin = _core_seconds(), time.monotonic()
        process = subprocess.Popen(group.wrap(command), stdout=output, stderr=output, env=env)
        peak, area, last = 0, 0.0, begin
        while process.poll() is None:
            time.sleep(LOOK_SECONDS)
            held, now = group.held, time.monotonic()
            peak, area, last = max(peak, held), area + held * (now - last), now
        seconds = time.monotonic() - begin
        used, idle = (after - b for after, b in zip(_core_seconds(), before, strict=True))
        return Run(seconds, process.returncode, group.kills, peak, area, used, idle)


def _core_seconds() -> tuple[float, float]:
    """Seconds that all cores together have been used and idle since boot; see proc(5) for the fields of /proc/stat."""
    first = Path("/proc/stat").read_text().splitlines()[0]
    user, nice, system, idle, waiting, irq, softirq, *_ = map(int, first.split()[1:])
    tick = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + irq + softirq) / tick, (idle + waiting) / tick


class Home:
    """A stoker with files of its own: what it learns in one build it knows in the next one here."""

    def __init__(self, root: Path) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="home-", dir=root))
        self._stoker = Stoker(self._folder)

    def run(self, command: Sequence[str], limit_mib: int) -> Run:
        """The build under `stoker run`, seen from the shell that waits for it."""
        return run_in_group(self._stoker.argv("run", "--plain", "--", *command), limit_mib, self._stoker.env)

    def close(self) -> None:
        """Leave nothing behind."""
        self._stoker.end_all()
        shutil.rmtree(self._stoker.runtime, ignore_errors=True)
        shutil.rmtree(self._folder, ignore_errors=True)


def longest_job(folder: Path) -> float:
    """Seconds from start to end of the longest edge that `.ninja_log` tells of."""
    lines = (folder / ".ninja_log").read_text().splitlines()[1:]
    return max(int(end) - int(start) for start, end, *_ in (line.split("\t") for line in lines)) / 1000


def cores() -> int:
    """Cores that may be used."""
    return len(os.sched_getaffinity(0))
