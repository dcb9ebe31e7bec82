"""Decides how soon to read memory again, and when its fall requires a tick at once. Pure; knows no job and no clock."""

from __future__ import annotations

RATE = 2**30
"""Bytes per second that a job is assumed to fill at most: a core faults in a little more than that."""

SHARE = 1 / 16
"""Share of the time in which all remaining memory could be used up, after which memory is read again."""

LEAST_SECONDS = 0.02

FALL = 1 / 8
"""If available memory has fallen by this share since the last tick, another tick is due at once."""


def reading_pause(available: float, running: int) -> float:
    """Return the seconds until memory must be read again, given the available bytes and the number of running jobs."""
    return max(LEAST_SECONDS, SHARE * available / (RATE * max(1, running)))


def is_sudden(before: float, now: float) -> bool:
    """Return whether available memory has fallen so much since the last tick that the next one is due."""
    return before - now > FALL * before
