"""Which schedulers belong to the command that runs, and to its step: told by when each began.

A look may find the next command's ninja before the keeper has told of that command, so the order in which they are
found says nothing. Unaware of processes and of what schedulers do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

SLACK = 0.05
"""Seconds by which a scheduler may seem to have begun before the command that it is: starts of processes are told in
hundredths, and held against the wall clock."""


class StepSchedulers:
    """The schedulers of the command that runs, and of the next where they were found first. Starts in Unix seconds."""

    def __init__(self, begun: float, known: Mapping[int, float], next_sid: int) -> None:
        """`known`: when those began that an engine before this one found, by number; `next_sid`: the next one's."""
        self._starts = {sid: start for sid, start in known.items() if start >= begun - SLACK}
        self.first = min(self._starts, default=next_sid)
        """The number of the first scheduler that the step may have."""

    def met(self, sid: int, started: float) -> None:
        """A scheduler was found."""
        self._starts[sid] = started

    def any_before(self, begun: float = math.inf) -> bool:
        """Whether the command that runs has had one; `begun`: when the next command began, where that is known."""
        return any(start < begun - SLACK for start in self._starts.values())

    def next_command(self, begun: float, next_sid: int, *, new_step: bool) -> None:
        """Another command runs since `begun`."""
        self._starts = {sid: start for sid, start in self._starts.items() if start >= begun - SLACK}
        if new_step:
            self.first = min(self._starts, default=next_sid)
