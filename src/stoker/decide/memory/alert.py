"""How soon memory is read again, and what in it calls for a tick at once. Pure; unaware of jobs and of clocks."""

from __future__ import annotations

RATE = 2**30
"""Bytes that a job is taken to fill in a second at the most: a core faults in a little more than that."""

SHARE = 1 / 16
"""Share of the time in which all that is left may be gone, after which memory is read again."""

LEAST_SECONDS = 0.02

FALL = 1 / 8
"""Share of what was left at the last tick by which it must have fallen for another one at once."""


def reading_pause(available: float, running: int) -> float:
    """Return the seconds until memory is to be read again, with so many bytes left and so many jobs at work."""
    return max(LEAST_SECONDS, SHARE * available / (RATE * max(1, running)))


def is_sudden(before: float, now: float) -> bool:
    """Return whether what is left has fallen by so much since the last tick that the next one is due."""
    return before - now > FALL * before
