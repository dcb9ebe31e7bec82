"""Measures how fast a job's memory grows from one sample to the next. Pure; knows no curve and no decision."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from stoker.decide.memory.clock_growth import ClockGrowth

LEAST_SPAN = 0.4
"""Minimum CPU seconds between two samples that are compared: compilers take memory in steps, especially in their first
tenths of a second, and samples closer together would show a single step."""


@dataclass(slots=True)
class GrowthRate:
    """`rise` is in bytes per CPU second, 0 while the job does not grow. `stale`: the job was stopped after the
    measurement, which therefore describes its past and not what it does now. `by_clock` is its growth if it never
    waited for a core, as far as that is looked at."""

    rise: float = 0.0
    stale: bool = False
    by_clock: ClockGrowth = field(default_factory=ClockGrowth)
    _age: float = 0.0
    _rss: float = 0.0
    _last_rss: float = 0.0
    _step: float = 0.0
    _earlier_step: float = 0.0

    @property
    def cores(self) -> float:
        """How many cores it can be expected to keep busy in a second in which it grows like that; infinite: all it can.

        One that sleeps for long may add at any time what it has once added from one sample to the next.
        """
        return max(self.by_clock.rate, self._step, self._earlier_step) / self.rise if self.rise else math.inf

    def note(self, age: float, rss: float) -> None:
        """Note that the job holds `rss` bytes after so many CPU seconds."""
        self._step, self._last_rss = max(self._step, rss - self._last_rss), rss
        span = age - self._age
        if span >= LEAST_SPAN:
            self.rise = max(0.0, (rss - self._rss) / span)
            self._age, self._rss = age, rss
            self._step, self._earlier_step = 0.0, self._step
            self.stale = False
        elif rss - self._rss > self.rise * LEAST_SPAN:
            # It has already grown more than expected for the whole span, so its rate is at least this.
            self.rise = (rss - self._rss) / LEAST_SPAN
            self.stale = False

    def rest(self, age: float, rss: float) -> None:
        """Note that it was stopped after so many CPU seconds with so many bytes: measuring starts again from there."""
        self._age, self._rss = age, rss
        self._last_rss, self._step, self._earlier_step = rss, 0.0, 0.0
        self.by_clock.forget()
        self.stale = True
