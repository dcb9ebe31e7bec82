"""Puts stretches of time into as few lanes as need be, none upon another. Pure; unaware of what they are."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush


def lanes(spans: Iterable[tuple[float, float]]) -> list[int]:
    """Return the lane of each span, from 0: the lowest that is free when it begins. Spans come by their beginnings.

    A lane is free from its span's very end, so that a job takes the place of the one that made way for it.
    """
    taken: list[tuple[float, int]] = []
    free: list[int] = []
    count = 0
    found: list[int] = []
    for start, end in spans:
        while taken and taken[0][0] <= start:
            heappush(free, heappop(taken)[1])
        lane = heappop(free) if free else count
        count = max(count, lane + 1)
        heappush(taken, (max(start, end), lane))
        found.append(lane)
    return found
