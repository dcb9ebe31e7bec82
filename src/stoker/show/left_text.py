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


def left_text(state: BuildState, now: float, *, band: bool = True) -> str:
    """Say how much is left at Unix time `now`, with its band unless asked otherwise; empty if nobody knows."""
    left, e = time_left(state, now), state.estimate
    if left is None or e is None:
        return ""
    if e.high > ANYTHING * max(1.0, e.low):
        return LEARNING
    return format_left(*left) if band else format_rough(left[0])
