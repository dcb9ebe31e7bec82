"""Estimates how much compilation time a compiler cache saved, from what the same jobs took before. Pure.

No cache says which job it answered, so the duration must show it: a hit takes a small part of a compilation. Knows no
cache and no clock.
"""

from __future__ import annotations

from bisect import insort
from typing import NamedTuple

HIT_SHARE = 0.5
"""A job that took more than this share of what it took before was compiled. Measured with ccache and sccache: hits took
1 to 5 %, and compilations on a busy machine 90 % and more."""

MAX_KEPT = 50_000
"""Maximum number of jobs kept; more than the history remembers."""


class Gain(NamedTuple):
    """The share of its former time that one job took, and how many seconds less that is."""

    share: float
    seconds: float


class Spared(NamedTuple):
    """About how many seconds of compilation `jobs` hits saved."""

    seconds: float
    jobs: int


class Saved:
    """The jobs of a build that may have been hits, the likeliest first."""

    def __init__(self) -> None:
        self._gains: list[Gain] = []

    def ended(self, seconds: float, before: float) -> None:
        """Note a compilation that ended after `seconds`; it took `before` when it was compiled last."""
        if 0 <= seconds <= HIT_SHARE * before and len(self._gains) < MAX_KEPT:
            insort(self._gains, Gain(seconds / before, before - seconds))

    def by(self, hits: int) -> Spared | None:
        """Return what so many hits saved; None if nothing is known about any.

        If more jobs were fast than there were hits, the fastest count as the hits.
        """
        taken = self._gains[: max(0, hits)]
        return Spared(sum(gain.seconds for gain in taken), len(taken)) if taken else None
