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


@dataclass(frozen=True, slots=True)
class Wait:
    """One reason. `key` is what it depends on besides its cause (the job that room is kept for, the level); `size` is
    the number of bytes in `why`, which changes all the time."""

    cause: WaitCause
    why: str
    key: str = ""
    size: float = 0.0

    def is_news_after(self, before: Wait | None) -> bool:
        """Return whether this says something different from the previous reason."""
        if before is None or (self.cause, self.key) != (before.cause, before.key):
            return True
        return abs(self.size - before.size) > NEWS_SHARE * max(self.size, before.size)


@dataclass(frozen=True, slots=True)
class Waits:
    """Each job's reason by job number; jobs without their own share one, by where they wait."""

    of: Mapping[int, Wait] = field(default_factory=dict)
    frozen: Wait | None = None
    on_deck: Wait | None = None


NO_WAITS = Waits()
