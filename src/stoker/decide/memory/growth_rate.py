"""Measures how fast a job's memory grows from one sample to the next. Pure; knows no curve and no decision."""

from __future__ import annotations

from dataclasses import dataclass

LEAST_SPAN = 0.4
"""Minimum CPU seconds between two samples that are compared: compilers take memory in steps, especially in their first
tenths of a second, and samples closer together would show a single step."""


@dataclass(slots=True)
class GrowthRate:
    """`rise` is in bytes per CPU second, 0 while the job does not grow. `stale`: the job was stopped after the
    measurement, which therefore describes its past and not what it does now."""

    rise: float = 0.0
    stale: bool = False
    _age: float = 0.0
    _rss: float = 0.0

    def note(self, age: float, rss: float) -> None:
        """Note that the job holds `rss` bytes after so many CPU seconds."""
        span = age - self._age
        if span >= LEAST_SPAN:
            self.rise = max(0.0, (rss - self._rss) / span)
            self._age, self._rss = age, rss
            self.stale = False
        elif rss - self._rss > self.rise * LEAST_SPAN:
            # It has already grown more than expected for the whole span, so its rate is at least this.
            self.rise = (rss - self._rss) / LEAST_SPAN
            self.stale = False

    def rest(self, age: float, rss: float) -> None:
        """Note that it was stopped after so many CPU seconds with so many bytes: measuring starts again from there."""
        self._age, self._rss = age, rss
        self.stale = True
