"""The type of a reason why a job waits, and what a tick gives each job that it neither started nor stopped.

Pure values. The words are written by the rules that held the job back, mostly in `admission.py`. Knows nothing of how
they are shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stoker.model.events import WaitCause

NEWS_SHARE = 0.2
"""A size in a reason that changed by less than this share of itself is not news."""

LEAST_OF_NEED = 0.05
"""Nor is one that changed by less than this share of what the job needs: near 0 every change is a large share."""


@dataclass(frozen=True, slots=True)
class Wait:
    """One reason. `key` is what it depends on besides its cause (the job that room is kept for, the level); `size` and
    `need` are the bytes in `why` that there are and that the job needs, which change all the time."""

    cause: WaitCause
    why: str
    key: str = ""
    size: float = 0.0
    need: float = 0.0

    def is_news_after(self, before: Wait | None) -> bool:
        """Return whether this says something different from the previous reason."""
        if before is None or (self.cause, self.key) != (before.cause, before.key):
            return True
        if abs(self.need - before.need) > NEWS_SHARE * max(self.need, before.need):
            return True
        change = abs(self.size - before.size)
        return change > NEWS_SHARE * max(self.size, before.size) and change > LEAST_OF_NEED * self.need


@dataclass(frozen=True, slots=True)
class Waits:
    """Each job's reason by job number; jobs without their own share one, by where they wait."""

    of: Mapping[int, Wait] = field(default_factory=dict)
    frozen: Wait | None = None
    on_deck: Wait | None = None

    @property
    def for_a_place(self) -> bool:
        """Whether jobs on deck without a reason of their own wait for a place."""
        return self.on_deck is not None and self.on_deck.cause == "place"


NO_WAITS = Waits()
