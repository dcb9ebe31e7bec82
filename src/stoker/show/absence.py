"""Summarizes what happened to a build while its user was away, in one line that is shown for a short time.

Does not know where looks are stored, what time it is, or how the line is drawn.
"""

from __future__ import annotations

from stoker.model.look import Look, look_of
from stoker.model.state import BuildState
from stoker.model.units import format_duration
from stoker.show.remote_text import count
from stoker.show.update_source import LookMemory

LEAST_ABSENCE = 10.0
"""A shorter time than this, in seconds, does not count as an absence."""

NEWS_SECONDS = 60.0
"""How long the line stays if no key is pressed."""

REMEMBER_SECONDS = 5.0
"""Interval at which the look is saved; less than an absence, so that a killed viewer loses nothing that matters."""


def absence_text(left: Look, back: Look) -> str:
    """Return what happened between two looks: `since you left 1:04 ago: 14 jobs done, 2 failed`.

    Empty if the time between them is too short to be an absence.
    """
    if back.time - left.time < LEAST_ABSENCE:
        return ""
    news: list[str] = []
    for number, how in (
        (back.done - left.done, "done"),
        (back.failed - left.failed, "failed"),
        (back.freezes - left.freezes, ""),
        (back.killed - left.killed, "killed"),
    ):
        if number > 0:
            jobs = f"{number}" if news else count(number, "job")  # only the first count names its noun
            news.append(f"{jobs} {how}" if how else count(number, "freeze"))
    if back.attempt > left.attempt:
        news.append("the step runs again")
    return f"since you left {format_duration(back.time - left.time)} ago: {', '.join(news) or 'no job has ended'}"


class Absence:
    """One viewer's record of where the build stood when the user left, and of what has happened since."""

    def __init__(self, memory: LookMemory) -> None:
        self._memory = memory
        self._left = memory.recall()
        self._back: Look | None = None
        self._text = ""
        self.left_at: float | None = None
        """When the user left, in Unix seconds; None on the first look, or if the absence was too short."""

    def arrive(self, state: BuildState, now: float) -> bool:
        """Compare the first state with the last look; return False if it is not the first, or is still empty."""
        if self._back is not None or not state.seq:
            return False
        self._back = look_of(state, now)
        text = absence_text(self._left, self._back) if self._left is not None else ""
        if self._left is not None and text:
            self.left_at = self._left.time
            self._text = "" if state.over else text  # the end screen shows the outcome
        return True

    def text(self, now: float) -> str:
        """Return the line at Unix time `now`; empty if nothing happened, or once it is old."""
        if self._back is None or now - self._back.time >= NEWS_SECONDS:
            return ""
        return self._text

    def dismiss(self) -> None:
        """Drop the line: the user has pressed a key, so it has been read."""
        self._text = ""

    def remember(self, state: BuildState, now: float) -> None:
        """Save where the build stands, for the next look."""
        if state.seq:
            self._memory.remember(look_of(state, now))
