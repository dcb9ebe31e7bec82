"""What jobs will hold in the time to come, added up: means and variances over slots that lengthen with distance.

Pure arithmetic on curves. Unaware of jobs, of limits' origin, and of what will be decided.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from stoker.decide.curves import Curve

FINE_SLOTS = 10
"""Slots of one second: the finest that a policy which looks about once a second can use."""

GROWTH = 1.1
"""Each later slot is this much longer: what is far off is known less exactly, so finer slots would only cost time."""

HORIZON = 7200.0
"""Seconds looked ahead. A job longer than two hours counts with what it holds at that distance."""


def _edges() -> tuple[float, ...]:
    edges = [float(i) for i in range(FINE_SLOTS + 1)]
    while edges[-1] < HORIZON:
        edges.append(edges[-1] * GROWTH)
    return tuple(edges)


EDGES = _edges()
"""Borders of the slots, in seconds from now at full speed (a job alone on its core)."""

SLOTS = len(EDGES) - 1

PACES = ((0.0, 2 / 3), (math.sqrt(3.0), 1 / 6), (-math.sqrt(3.0), 1 / 6))
"""Standard deviations and weights of the three-point Gauss-Hermite rule: they stand for every pace a job may have."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """Expected bytes and their variance in each slot; slots behind the end are left out."""

    mean: tuple[float, ...]
    variance: tuple[float, ...]
    peak: float
    peak_slot: int


@dataclass(frozen=True, slots=True)
class Standing:
    """Where on its curve a job stands: `position` in the curve's seconds, how many of these go by in a second (`pace`),
    what the curve's sizes are to be multiplied with (`scale`), and the spreads that are left."""

    curve: Curve
    position: float = 0.0
    pace: float = 1.0
    scale: float = 1.0
    spread: float = 0.0
    time_spread: float = 0.0
    bias: float = 0.0
    least: float = 0.0
    """Bytes held at this moment: the nearest slot shows no less."""


def of_slots(mean: Sequence[float], variance: Sequence[float]) -> Outlook:
    """An outlook of these slots."""
    peak = max(mean, default=0.0)
    return Outlook(tuple(mean), tuple(variance), peak, mean.index(peak) if mean else 0)


@lru_cache(maxsize=4096)
def from_birth(curve: Curve, width: float = 1.0) -> Outlook:
    """The outlook of a job that would start now and keep `width` cores busy."""
    return outlook(Standing(curve, 0.0, width, 1.0, curve.spread, curve.time_spread, curve.bias))


def outlook(standing: Standing) -> Outlook:
    """What a job is expected to hold from now on."""
    if standing.time_spread <= 0:
        mean = _course(standing.curve, standing.position, standing.pace, standing.scale)
        variance = [_doubt(m, standing) for m in mean]
    else:
        mean, variance = _mixed(standing)
    if standing.least > 0 and mean:
        mean[0] = max(mean[0], standing.least)
    if standing.bias:
        mean = [m * (1 + standing.bias) for m in mean]
    return of_slots(mean, variance)


def _mixed(standing: Standing) -> tuple[list[float], list[float]]:
    """Mean and variance over the paces that the job may have."""
    courses = [
        _course(
            standing.curve,
            standing.position,
            standing.pace * math.exp(deviations * standing.time_spread),
            standing.scale,
        )
        for deviations, _ in PACES
    ]
    length = max(len(c) for c in courses)
    mean, square = [0.0] * length, [0.0] * length
    for course, (_, weight) in zip(courses, PACES, strict=True):
        for slot, size in enumerate(course):
            mean[slot] += weight * size
            square[slot] += weight * size * size
    return mean, [max(0.0, s - m * m) + _doubt(m, standing) for s, m in zip(square, mean, strict=True)]


def _doubt(size: float, standing: Standing) -> float:
    """Variance from the spread of sizes: what is held now is measured, only the change from it is in doubt."""
    return (standing.spread * (size - standing.least)) ** 2


def _course(curve: Curve, position: float, pace: float, scale: float) -> list[float]:
    """The most held in each slot, if the job goes on at this pace."""
    ages, sizes = curve.ages, curve.sizes
    after, count = bisect_right(ages, position), len(ages)
    course: list[float] = []
    start = curve.value(position)
    for edge in EDGES[1:]:
        most = start
        end = position + edge * pace
        while after < count and ages[after] <= end:
            if sizes[after] > most:
                most = sizes[after]
            after += 1
        if after >= count:
            course.append(most * scale)
            break
        left = after - 1
        width = ages[after] - ages[left] if left >= 0 else 0.0
        start = sizes[after] if width <= 0 else sizes[left] + (sizes[after] - sizes[left]) * (end - ages[left]) / width
        course.append(max(most, start) * scale)
    return course


class Promise:
    """The sum of outlooks: what running jobs are expected to hold, slot by slot, and how much of it is doubt.

    `caution` is the number of standard deviations that are kept free above the sum.
    """

    def __init__(self, capacity: float, caution: float) -> None:
        self.capacity = capacity
        self.caution = caution
        self.mean = [0.0] * SLOTS
        self.variance = [0.0] * SLOTS
        self.peak = 0.0
        """Never less than the highest slot: the sum of the peaks of all that was added."""

    def hold(self, size: float, until: int | None = None) -> None:
        """Add a job that keeps `size` bytes, up to a slot or for as long as can be seen: a frozen one."""
        for slot in range(SLOTS if until is None else until):
            self.mean[slot] += size
        self.peak += size

    def add(self, job: Outlook, after: int = 0) -> None:
        """Add a job; with `after`, one that starts that many slots from now."""
        mean, variance = self.mean, self.variance
        for slot, (m, v) in enumerate(zip(*_shifted(job, after), strict=True), after):
            mean[slot] += m
            variance[slot] += v
        self.peak += job.peak + self.caution * math.sqrt(max(job.variance, default=0.0))

    def fits(self, job: Outlook, after: int = 0, capacity: float | None = None) -> bool:
        """Whether the job can be added, `after` slots from now, and every slot stays within the capacity.

        Another `capacity` may be tried.
        """
        capacity = self.capacity if capacity is None else capacity
        if self.peak + job.peak + self.caution * math.sqrt(max(job.variance, default=0.0)) <= capacity:
            return True
        caution, mean, variance = self.caution, self.mean, self.variance
        if not after and mean[job.peak_slot] + job.peak > capacity:
            return False  # what most do not pass, looked at first
        for slot, (m, v) in enumerate(zip(*_shifted(job, after), strict=True), after):
            if mean[slot] + m + caution * math.sqrt(variance[slot] + v) > capacity:
                return False
        return True

    def fits_soon(self, job: Outlook, slots: int, capacity: float) -> bool:
        """Whether the job can be added and the next so many slots stay within this capacity."""
        return all(
            self.mean[slot] + m + self.caution * math.sqrt(self.variance[slot] + v) <= capacity
            for slot, (m, v) in enumerate(zip(job.mean[:slots], job.variance[:slots], strict=True))
        )

    def free(self) -> float:
        """Bytes that nothing running is expected to need, in the tightest slot."""
        return self.capacity - max(self.upper(slot) for slot in range(SLOTS))

    def upper(self, slot: int) -> float:
        """The promise in a slot, doubt included."""
        return self.mean[slot] + self.caution * math.sqrt(self.variance[slot])

    def earliest(self, job: Outlook, held: float = 0.0) -> int | None:
        """The first slot, after this one, in which a job could start and fit that holds `held` bytes until then."""
        for slot in range(1, SLOTS):
            if held and self.upper(slot - 1) + held > self.capacity:
                return None
            if self.fits(job, slot):
                return slot
        return None


def _shifted(job: Outlook, after: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The outlook as seen when it begins `after` slots from now: slots there are longer, so each takes the most of
    those that fall into it."""
    if not after:
        return job.mean, job.variance
    offset = EDGES[after]
    mean: list[float] = []
    variance: list[float] = []
    source = 0
    last = len(job.mean)
    for slot in range(after, SLOTS):
        end = EDGES[slot + 1] - offset
        most, doubt = 0.0, 0.0
        while source < last and EDGES[source] < end:
            most, doubt = max(most, job.mean[source]), max(doubt, job.variance[source])
            if EDGES[source + 1] > end:
                break
            source += 1
        mean.append(most)
        variance.append(doubt)
        if source >= last:
            break
    return tuple(mean), tuple(variance)
