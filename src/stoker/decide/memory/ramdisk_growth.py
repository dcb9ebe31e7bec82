"""How much a RAM disk may still grow, which memory must be left free for: by what this build has shown of it.

Pure: the clock is an argument. What it holds already is missing from the memory that is available, and counted there.
"""

from __future__ import annotations

from dataclasses import dataclass

from stoker.model.samples import RamDisk

FIRST_SHARE = 0.5
"""Share of its size that a RAM disk is taken to need before anything is known: the size is the most that somebody
would allow, and compilers seldom write all at the same moment."""

LEARNT_SECONDS = 60.0
"""Seconds with jobs at work after which only what was seen counts: several generations of most compilers."""

MARGIN = 1.5
"""A RAM disk is expected to hold so many times the most that it was seen to hold: the heaviest jobs may be to come."""

STEP_SECONDS = 5.0
"""The longest time between two ticks that counts as time seen: a machine may sleep."""


@dataclass(frozen=True, slots=True)
class SeenRamDisk:
    """What a RAM disk holds and may hold, and the most it was seen to hold, in how many seconds with jobs at work.

    `rise` is the bytes by which it grew in a second, between the last two ticks; `at` is the clock at the last one.
    All of it is 0 where there is none.
    """

    size: float = 0.0
    used: float = 0.0
    most: float = 0.0
    seconds: float = 0.0
    rise: float = 0.0
    at: float = 0.0

    @property
    def expected(self) -> float:
        """Bytes that it is expected to hold at most: less and less by its size, more and more by what was seen."""
        unknown = max(0.0, 1 - self.seconds / LEARNT_SECONDS)
        return min(self.size, max(MARGIN * self.most, FIRST_SHARE * self.size * unknown))

    @property
    def growth(self) -> float:
        """Bytes to keep free for it beyond what it holds."""
        return max(0.0, self.expected - self.used)

    def after(self, disk: RamDisk | None, now: float, *, busy: bool) -> SeenRamDisk:
        """Return what is known once `disk` was read at the time `now`; `busy`: jobs are at work."""
        if disk is None:
            return SeenRamDisk()
        if not self.size:
            return SeenRamDisk(disk.size, disk.used, disk.used, at=now)
        passed = max(0.0, now - self.at)
        seconds = self.seconds + (min(passed, STEP_SECONDS) if busy else 0.0)
        rise = max(0.0, disk.used - self.used) / passed if passed else 0.0
        return SeenRamDisk(disk.size, disk.used, max(self.most, disk.used), seconds, rise, now)


NO_RAMDISK = SeenRamDisk()
