"""Reports when others stall on memory although the build has enough, so that a busy machine is not blamed on the build.

Unaware of where the figures come from; the time is an argument.
"""

from __future__ import annotations

import math

from stoker.model import events as ev
from stoker.model.samples import MachineSample
from stoker.model.units import format_bytes

SPACING = 600.0
"""Seconds until another such stall is reported: a neighbour may come and go all day."""

OVER = 0.5
"""Share of the threshold below which a stall is over."""


class NeighbourWatch:
    """The stalls of others, from one sample to the next."""

    def __init__(self) -> None:
        self._reported_at = -math.inf
        self._lasts = False

    def look(self, sample: MachineSample, reserve: float, line: float, now: float) -> list[ev.Noticed]:
        """Return a notice if one is due at monotonic time `now`; `line` is the pressure in percent that counts as a
        stall, `reserve` the bytes that no promise may use."""
        stall = sample.pressure_memory
        if stall is None or stall.some < OVER * line or not sample.stalls_by_others(reserve):
            self._lasts = False
        elif stall.some >= line and not self._lasts:
            self._lasts = True
            if now - self._reported_at >= SPACING:
                self._reported_at = now
                return [_notice(stall.some, sample.memory_available)]
        return []


def _notice(percent: float, available: int) -> ev.Noticed:
    left = format_bytes(available)
    text = f"the machine stalls on memory ({percent:.0f} %), but not because of this build, which has {left} left"
    return ev.Noticed("info", f"{text}; nothing of it is held back for that")
