"""Formats the remaining time, for every screen. Pure; does not know how it is estimated."""

from __future__ import annotations

from collections.abc import Sequence

from stoker.model.progress import frozen_by_person, stalled_by
from stoker.model.state import BuildState, Job
from stoker.model.status import time_left
from stoker.model.text import clean
from stoker.model.units import format_left, format_rough

AFTER_THAW = " after a thaw"
"""Behind an estimate while a person keeps a job frozen: the build cannot end before that."""

LEARNING = "learning"
"""Shown instead of an estimate that is too vague to be useful."""

ANYTHING = 100.0
"""An estimate is useless if the high end of its band is more than this many times the low end. That is judged by the
estimate as it was made: later its low end approaches zero while the high end is still ahead."""

SOON, VAGUE = 60.0, 8.0
"""In the first and last moments of a build, when a band's high end is below SOON seconds, the estimate is useless from
VAGUE times the low end on."""


def left_text(state: BuildState, now: float, *, band: bool = True) -> str:
    """Return the time left at Unix time `now`, with its band unless `band` is False; empty if it is unknown, and while
    a person has paused the build, or frozen all that could run: until that ends, any estimate is wrong. While a person
    keeps one of the jobs frozen, it counts from the thaw, and says so.
    """
    left, e = time_left(state, now), state.estimate
    if left is None or e is None or state.level.paused != "no" or stalled_by(state):
        return ""
    if e.high > ANYTHING * max(1.0, e.low) or (e.high < SOON and e.high > VAGUE * max(1.0, e.low)):
        return LEARNING
    text = format_left(*left) if band else format_rough(left[0])
    return text + AFTER_THAW * bool(frozen_by_person(state))


def stalled_text(state: BuildState) -> str:
    """Return that nothing runs because of jobs that a person froze, and which; empty if that is not so."""
    return f"nothing runs: {_named(jobs)}" if (jobs := stalled_by(state)) else ""


def frozen_text(state: BuildState) -> str:
    """Return that the build cannot end before a person thaws what that person froze, though other jobs run; empty if
    that is not so."""
    jobs = frozen_by_person(state)
    return f"the build cannot end: {_named(jobs)}" if jobs and not stalled_by(state) else ""


def _named(jobs: Sequence[Job]) -> str:
    return f"{clean(jobs[0].output) or f'pid {jobs[0].pid}'} {frozen_by_hand(len(jobs))}"


def frozen_by_hand(count: int) -> str:
    """Return what is to be said of the first of so many jobs that a person froze, after its name."""
    return "is frozen by hand" if count == 1 else f"and {count - 1} more are frozen by hand"
