"""What is known of the most that an ended job held: memory is read once a second, so of a short one only a limit.

One answer for each screen, list and report.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from stoker.model.lessons import Lesson
from stoker.model.units import format_bytes

LEAST_MEASURED = 2.0
"""Seconds that a job must run for its peak to be known: its memory is read once a second."""

SURELY_MEASURED = 4.0
"""Seconds below which a job may have held clearly more than was read: nobody looked at a quarter of its life."""

WORKING = 16 * 2**20
"""Bytes. What a short job was seen to hold below this may be a shell and a compiler driver that has not begun."""

CLOSE = 0.5
"""What was seen is shown instead of the limit if it is at least this share of it."""

_MIB = 2**20

_MOST_MIB = 1000 * _MIB


class KnownPeak(NamedTuple):
    """Bytes, and whether the job held exactly (as far as samples show), at least or less than that."""

    bytes: int
    how: Literal["exact", "least", "less"]

    @property
    def text(self) -> str:
        """The figure in at most ten cells: 44.2 MiB, 44.2 MiB+, < 119 MiB."""
        if self.how == "less":
            return limit_text(self.bytes)
        return format_bytes(self.bytes) + ("+" if self.how == "least" else "")

    @property
    def rank(self) -> tuple[int, int]:
        """Sorts jobs by what they were seen to hold, and those that nobody saw by their limits."""
        return (0, self.bytes) if self.how == "less" else (self.bytes, self.bytes)


def peak_rank(peak: KnownPeak | None) -> tuple[int, int]:
    """Return by what a job is sorted, also one of which nothing is known."""
    return peak.rank if peak is not None else (0, 0)


def known_peak(seconds: float, seen: int | None, limit: int | None) -> KnownPeak | None:
    """Return the peak of a job that ran so long, was seen to hold `seen` bytes and held at most `limit`; None where
    nothing is known."""
    seen = seen or 0
    if seen and seconds >= SURELY_MEASURED:
        return KnownPeak(seen, "exact")
    if limit and seen < WORKING and seen < CLOSE * limit:
        return KnownPeak(limit, "less")
    return KnownPeak(seen, "least") if seen >= WORKING or limit or (seen and seconds >= LEAST_MEASURED) else None


def limit_of(lesson: Lesson | None) -> int | None:
    """Return what a job held at most, by what it has taught; None if it taught nothing."""
    return max(lesson.sizes, default=0) or None if lesson is not None else None


def limit_text(limit: float) -> str:
    """Return a limit, rounded up: < 42 MiB."""
    return f"< {math.ceil(limit / _MIB)} MiB" if limit < _MOST_MIB else f"< {format_bytes(limit)}"
