"""Formats the remaining time, for every screen. Pure; does not know how it is estimated."""

from __future__ import annotations

from stoker.model.progress import stalled_by
from stoker.model.state import BuildState
from stoker.model.status import time_left
from stoker.model.text import clean
from stoker.model.units import format_left, format_rough

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
    a person has paused the build, or frozen all that could run: until that ends, any estimate is wrong.
    """
    left, e = time_left(state, now), state.estimate
    if left is None or e is None or state.level.paused != "no" or stalled_by(state):
        return ""
    if e.high > ANYTHING * max(1.0, e.low) or (e.high < SOON and e.high > VAGUE * max(1.0, e.low)):
        return LEARNING
    return format_left(*left) if band else format_rough(left[0])


def stalled_text(state: BuildState) -> str:
    """Return that nothing runs because of jobs that a person froze, and which; empty if that is not so."""
    jobs = stalled_by(state)
    if not jobs:
        return ""
    name = clean(jobs[0].output) or f"pid {jobs[0].pid}"
    return f"nothing runs: {name} {frozen_by_hand(len(jobs))}"


def frozen_by_hand(count: int) -> str:
    """Return what is to be said of the first of so many jobs that a person froze, after its name."""
    return "is frozen by hand" if count == 1 else f"and {count - 1} more are frozen by hand"
