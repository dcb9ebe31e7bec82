"""The most that running and frozen jobs are expected to hold together, for the meter. Decisions look for themselves."""

from __future__ import annotations

import math
from collections.abc import Callable

from stoker.decide.policy.situation import Situation
from stoker.decide.policy.snapshot import View

KEPT_SECONDS, CHANGED_SECONDS = 5.0, 1.9
"""How long an answer is kept while there is plenty of memory, and no job comes or goes, or some do: what is expected
changes slowly, and working it out for 30 takes 3 ms, a third of what the engine does in a second (measured)."""


class Promised:
    """The answer, worked out anew where it may be another one."""

    def __init__(self) -> None:
        self._most = 0.0
        self._version = -1
        self._at = -math.inf

    def most(self, look: Callable[[], View], version: int, now: float, *, tight: bool) -> int:
        """Bytes, at `now` by the monotonic clock. `version` grows with every change to the jobs that run; `tight`:
        memory is in play. It is looked only where the answer is worked out anew."""
        kept = KEPT_SECONDS if version == self._version else CHANGED_SECONDS
        if tight or now - self._at >= kept:
            view = look()
            self._most = max(Situation(view).promise.mean) if view.running or view.frozen else 0.0
            self._version, self._at = version, now
        return round(self._most)
