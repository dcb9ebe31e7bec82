"""What screens are drawn from: the newest update, the time by the build's own clock, and pending requests.

Knows no screens and no sources. The local clock is always an argument.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from stoker.model.state import BuildState
from stoker.model.update import Link, Update
from stoker.show.tui.input.actions import BY_ID, key_names
from stoker.show.tui.input.pending import Pending


@dataclass(frozen=True, slots=True)
class Moment:
    """One instant to draw. `now` is in Unix seconds, by the clock of the building machine."""

    update: Update
    now: float
    read_only: bool = False
    pending: Pending = field(default_factory=Pending)
    keymap: Mapping[str, str] = field(default_factory=dict)
    absence: str = ""
    """What happened while the user was away; empty once that is old."""
    left_at: float | None = None
    """When the user left, by the same clock as `now`; None if this is the first look."""

    def key(self, action: str) -> str:
        """Return the first key of an action, as a person reads it."""
        return key_names(BY_ID[action], self.keymap)[0]

    @property
    def state(self) -> BuildState:
        """The build."""
        return self.update.state

    @property
    def link(self) -> Link:
        """How this viewer is linked to the build."""
        return self.update.link

    @property
    def elapsed(self) -> float:
        """Seconds since the build started, up to its end."""
        end = self.state.ended if self.state.ended is not None else self.now
        return max(0.0, end - self.state.started) if self.state.started else 0.0


class Clock:
    """The build's clock as seen from here: it advances between updates, and never goes back while a build runs.

    An update's time is late by its transport delay; so the largest difference to the local monotonic clock seen so far
    is the best estimate.
    """

    def __init__(self) -> None:
        self._offset: float | None = None
        self._build = ""

    def now(self, update: Update, monotonic: float) -> float:
        """Return the build's Unix time at local monotonic time `monotonic`."""
        state = update.state
        if update.link == "replay" or state.over:
            return state.ended if state.over and state.ended is not None else state.time
        offset = state.time - monotonic
        if self._offset is None or state.id != self._build or offset > self._offset:
            self._offset, self._build = offset, state.id
        return monotonic + self._offset


def time_of_day(unix: float) -> str:
    """Return a Unix time as the local time of day, 14:03:59."""
    return time.strftime("%H:%M:%S", time.localtime(unix))
