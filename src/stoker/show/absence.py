"""What happened to a build while its person was away: one line, for as long as it is news.

Unaware of where looks are kept, of clocks and of how the line is drawn.
"""

from __future__ import annotations

from stoker.model.look import Look, look_of
from stoker.model.state import BuildState
from stoker.model.units import format_duration
from stoker.show.remote_text import count
from stoker.show.update_source import LookMemory

LEAST_ABSENCE = 10.0
"""Seconds below which a person has not been away."""

NEWS_SECONDS = 60.0
"""How long the line stays while no key is pressed."""

REMEMBER_SECONDS = 5.0
"""Between two looks that are remembered: what a viewer that is killed forgets, less than an absence."""


def absence_text(left: Look, back: Look) -> str:
    """Say what happened between two looks: `since you left 1:04 ago: 14 jobs done, 2 failed`.

    Empty after an absence that is too short to be one.
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
            jobs = f"{number}" if news else count(number, "job")  # said once, of the first
            news.append(f"{jobs} {how}" if how else count(number, "freeze"))
    return f"since you left {format_duration(back.time - left.time)} ago: {', '.join(news) or 'no job has ended'}"


class Absence:
    """One viewer's: where the build stood when the person left, and what has happened by the time they are back."""

    def __init__(self, memory: LookMemory) -> None:
        self._memory = memory
        self._left = memory.recall()
        self._back: Look | None = None
        self._text = ""
        self.left_at: float | None = None
        """When the person left, in Unix seconds; None on the first look and after no real absence."""

    def arrive(self, state: BuildState, now: float) -> bool:
        """Note what the first state shows; False if this is not the first, or no state yet."""
        if self._back is not None or not state.seq:
            return False
        self._back = look_of(state, now)
        text = absence_text(self._left, self._back) if self._left is not None else ""
        if self._left is not None and text:
            self.left_at = self._left.time
            self._text = "" if state.over else text  # the end screen says what came of it
        return True

    def text(self, now: float) -> str:
        """The line at Unix time `now`; empty when it is no news, or no longer."""
        if self._back is None or now - self._back.time >= NEWS_SECONDS:
            return ""
        return self._text

    def dismiss(self) -> None:
        """The person has pressed a key: the line has been read."""
        self._text = ""

    def remember(self, state: BuildState, now: float) -> None:
        """Keep where the build stands, for the next look."""
        if state.seq:
            self._memory.remember(look_of(state, now))
