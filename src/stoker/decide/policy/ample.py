"""Whether memory is ample for the next seconds whatever the live jobs do, so that no brake need be asked.

Pure. It bounds what the brake sums up slot by slot: jobs at the fastest of their paces, all at their largest at once.
That takes a quarter of the time, and on a machine with memory to spare it is all that is needed.
"""

from __future__ import annotations

import math

from stoker.decide.memory.outlook import PACES
from stoker.decide.policy.situation import CAUTION, LOOK_AHEAD, Situation
from stoker.decide.policy.snapshot import LiveJob

FASTEST = max(by for by, _ in PACES)

SLACK = 1024.0
"""Bytes by which a bound must stay within its limit: sums in another order differ in their last digits."""


def is_ample(situation: Situation, line: float) -> bool:
    """Return whether the jobs stay within `line` bytes for LOOK_AHEAD seconds, while the oldest gets all that it may
    need, and no job needs more than is left."""
    view, (oldest, *others) = situation.view, situation.by_age
    reaches = [_reach(situation, job) for job in (oldest, *others)]
    sizes = [size for size, _ in reaches]
    still = sum([job.rss for job in view.frozen]) + situation.on_deck
    if sum(sizes) + still + CAUTION * math.sqrt(sum([doubt**2 for _, doubt in reaches])) + SLACK > line:
        return False
    room = view.available - view.floor - SLACK
    growth = max(sum(sizes[1:]) - sum([job.rss for job in others]), situation.surge(others))
    if situation.growth_left(oldest) + growth > room:
        return False
    return all(situation.growth_left(job) <= room for job in (*view.running, *view.frozen))


def _reach(situation: Situation, job: LiveJob) -> tuple[float, float]:
    """Return the most bytes that a running job is taken to hold within LOOK_AHEAD seconds, and how unsure that is."""
    if situation.is_small(job):
        return situation.outlook_soon(job).peak, 0.0
    at = situation.standing(job)
    pace = at.pace * at.awake * math.exp(FASTEST * at.time_spread)
    size = at.curve.largest(at.position, at.position + LOOK_AHEAD * pace) * at.scale
    doubt = at.spread * max(size - at.least, at.least)
    return (at.least if size <= at.least else size + at.bias * (size - at.least)), doubt
