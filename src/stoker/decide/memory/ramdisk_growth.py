"""Estimates from this build's measurements how much a RAM disk may still grow, so that memory is kept free for it.

Pure: the time is an argument. What the disk holds already is missing from the available memory, and counted there.
"""

from __future__ import annotations

from dataclasses import dataclass

from stoker.model.samples import RamDisk

FIRST_SHARE = 0.5
"""Share of its size that a RAM disk is assumed to need before anything is known: the size is an upper limit, and
compilers seldom all write at the same moment."""

LEARNT_SECONDS = 60.0
"""Seconds with running jobs after which only measurements count: several generations of most compilers."""

MARGIN = 1.5
"""A RAM disk is expected to hold this multiple of its observed maximum: the heaviest jobs may be still to come."""

STEP_SECONDS = 5.0
"""The longest time between two ticks that counts as observed: a machine may sleep."""


@dataclass(frozen=True, slots=True)
class SeenRamDisk:
    """What a RAM disk holds (`used`), its limit (`size`), its observed maximum (`most`), and in how many `seconds` with
    running jobs.

    `rise` is its growth in bytes per second between the last two ticks; `at` is the time of the last one. Everything is
    0 if there is none.
    """

    size: float = 0.0
    used: float = 0.0
    most: float = 0.0
    seconds: float = 0.0
    rise: float = 0.0
    at: float = 0.0

    @property
    def expected(self) -> float:
        """Bytes that it is expected to hold at most: based less and less on its size, more and more on measurements."""
        unknown = max(0.0, 1 - self.seconds / LEARNT_SECONDS)
        return min(self.size, max(MARGIN * self.most, FIRST_SHARE * self.size * unknown))

    @property
    def growth(self) -> float:
        """Bytes to keep free for it beyond what it holds."""
        return max(0.0, self.expected - self.used)

    def after(self, disk: RamDisk | None, now: float, *, busy: bool) -> SeenRamDisk:
        """Return what is known after `disk` was read at time `now`; `busy`: jobs are running."""
        if disk is None:
            return SeenRamDisk()
        if not self.size:
            return SeenRamDisk(disk.size, disk.used, disk.used, at=now)
        passed = max(0.0, now - self.at)
        seconds = self.seconds + (min(passed, STEP_SECONDS) if busy else 0.0)
        rise = max(0.0, disk.used - self.used) / passed if passed else 0.0
        return SeenRamDisk(disk.size, disk.used, max(self.most, disk.used), seconds, rise, now)


NO_RAMDISK = SeenRamDisk()
