"""How fast a job's memory rises, from one measurement to the next. Pure; unaware of curves and of decisions."""

from __future__ import annotations

from dataclasses import dataclass

LEAST_SPAN = 0.4
"""CPU seconds between two measurements that are compared: compilers take memory in steps, most of all in their first
tenths of a second, and nearer ones would show a single step."""


@dataclass(slots=True)
class GrowthRate:
    """`rise` is in bytes a CPU second, 0 while the job does not grow. `stale`: the job was stopped after that, so it
    says what the job is like and not what it does now."""

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
            # More already than it was to grow by in the whole span: whatever comes next, it grows as fast as that.
            self.rise = (rss - self._rss) / LEAST_SPAN
            self.stale = False

    def rest(self, age: float, rss: float) -> None:
        """Note that it was stopped after so many CPU seconds with so many bytes: what it does after that counts
        anew."""
        self._age, self._rss = age, rss
        self.stale = True
