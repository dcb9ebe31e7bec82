"""The time left in words, for every screen. Pure. Unaware of how it is estimated."""

from __future__ import annotations

from stoker.model.state import BuildState
from stoker.model.status import time_left
from stoker.model.units import format_left, format_rough

LEARNING = "learning"
"""What is said in place of a time that may be anything."""

ANYTHING = 100.0
"""How many times the low end of a band the high one is, at least, where the estimate says nothing. It is asked of the
estimate as it was made: later its low end comes down to nothing while the high one is still ahead."""

SOON, VAGUE = 60.0, 8.0
"""Seconds below which a band's high end is of the first moments of a build or of the last, and how many times its low
end it is there at least, where it says nothing either."""


def left_text(state: BuildState, now: float, *, band: bool = True) -> str:
    """Say how much is left at Unix time `now`, with its band unless asked otherwise; empty if nobody knows,
    and while a person has paused the build: until that ends no time is right.
    """
    left, e = time_left(state, now), state.estimate
    if left is None or e is None or state.level.paused != "no":
        return ""
    if e.high > ANYTHING * max(1.0, e.low) or (e.high < SOON and e.high > VAGUE * max(1.0, e.low)):
        return LEARNING
    return format_left(*left) if band else format_rough(left[0])
