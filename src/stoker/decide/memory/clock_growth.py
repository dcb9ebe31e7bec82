"""Measures how fast a job's memory would grow by the clock if it never waited for a core. Pure; knows no curve.

Growth per CPU second says what a job could add in a second that it computes without a break. A job that sleeps, or
waits for a disk, does not do that; one that waits for a core would.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

TaskTimes = Mapping[int, tuple[float, float]]
"""Seconds that each thread has been on a core, and has waited for one, by its number."""

LEAST_SECONDS = 0.2
"""Minimum time between two looks that are compared: a little less than between the ticks while memory is short."""

MOST_SECONDS = 2.0
"""After a longer gap the looks begin again: its average would hide what the job did in any one second."""

KNOWN_SECONDS = 1.0
"""For how long a job must have been looked at: by chance it may sleep, or read a file, during the first look."""

KEPT_SECONDS = 3.0
"""The fastest look of so many seconds counts: a job that has just slept may compute again at any moment."""


@dataclass(slots=True)
class ClockGrowth:
    """`rate` is in bytes per second of the clock: infinite while it is unknown."""

    rate: float = math.inf
    _since: float = 0.0
    _at: float = -math.inf
    _rss: float = 0.0
    _times: TaskTimes = field(default_factory=dict)
    _looks: list[tuple[float, float]] = field(default_factory=list)

    def note(self, clock: float, rss: float, times: TaskTimes | None) -> None:
        """Note that the job holds `rss` bytes, and what its threads have done; None: the kernel does not say."""
        passed = clock - self._at
        if passed < LEAST_SECONDS:
            return
        if times is None or passed > MOST_SECONDS:
            self.forget()
            if times is None:
                return
            self._since = clock
        else:
            self._looks = [look for look in self._looks if clock - look[0] < KEPT_SECONDS]
            self._looks.append((clock, self._rate(passed, rss, times)))
            known = clock - self._since >= KNOWN_SECONDS
            self.rate = max(rate for _, rate in self._looks) if known else math.inf
        self._at, self._rss, self._times = clock, rss, times

    def forget(self) -> None:
        """Note that nothing is known any more: the job was stopped, or was not looked at."""
        self.rate, self._at = math.inf, -math.inf
        self._looks.clear()

    def _rate(self, passed: float, rss: float, times: TaskTimes) -> float:
        added = rss - self._rss
        if not self._times.keys() <= times.keys():  # what an ended thread did since the last look is not known
            return math.inf
        if added <= 0:
            return 0.0
        before = [self._times.get(thread, (0.0, 0.0)) for thread in times]
        worked = sum(on for on, _ in times.values()) - sum(on for on, _ in before)
        waited = sum(waits for _, waits in times.values()) - sum(waits for _, waits in before)
        return added / passed * (worked + waited) / worked if worked > 0 else math.inf
