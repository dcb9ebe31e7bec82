"""Sums up what jobs will hold in the future: means and variances over time slots that lengthen with distance.

Pure arithmetic on curves. Knows neither jobs, nor where limits come from, nor what will be decided.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from stoker.decide.memory.curves import Curve

FINE_SLOTS = 10
"""Slots of one second: the finest that a policy which decides about once a second can use."""

GROWTH = 1.1
"""Each later slot is this much longer: the distant future is known less precisely, so finer slots would only cost
time."""

HORIZON = 7200.0
"""Seconds of look-ahead. A job longer than two hours counts with what it holds at that distance."""


def _edges() -> tuple[float, ...]:
    edges = [float(i) for i in range(FINE_SLOTS + 1)]
    while edges[-1] < HORIZON:
        edges.append(edges[-1] * GROWTH)
    return tuple(edges)


EDGES = _edges()
"""Borders of the slots, in seconds from now at full speed (a job alone on its core)."""

SLOTS = len(EDGES) - 1

AS_NOW = 4
"""Seconds for which a job that sleeps between its steps is expected to go on like that; afterwards it may compute all
the time, so its peak is only that much later."""

PACES = ((0.0, 2 / 3), (math.sqrt(3.0), 1 / 6), (-math.sqrt(3.0), 1 / 6))
"""Standard deviations and weights of the three-point Gauss-Hermite rule: they represent every pace a job may have."""


@dataclass(frozen=True, slots=True, eq=False)
class Outlook:
    """Expected bytes and their variance in each slot; slots after the end are left out.

    `most` is the largest size in the slot over the job's possible paces, and `doubt` the variance of that size alone:
    not knowing when a peak comes does not make it higher.
    """

    mean: tuple[float, ...]
    variance: tuple[float, ...]
    most: tuple[float, ...]
    doubt: tuple[float, ...]
    peak: float
    peak_slot: int


@dataclass(frozen=True, slots=True)
class Standing:
    """A job's position on its curve: `position` in the curve's seconds, how many of these pass per second (`pace`), the
    factor for the curve's sizes (`scale`), and the remaining spreads."""

    curve: Curve
    position: float = 0.0
    pace: float = 1.0
    scale: float = 1.0
    spread: float = 0.0
    time_spread: float = 0.0
    bias: float = 0.0
    least: float = 0.0
    """Bytes held at this moment: the first slot shows no less."""
    awake: float = 1.0
    """Share of that pace at which it goes on for AS_NOW seconds."""


def even(size: float, slots: int) -> Outlook:
    """Return the outlook of a job that certainly holds `size` bytes for so many slots."""
    sizes, sure = (size,) * slots, (0.0,) * slots
    return Outlook(sizes, sure, sizes, sure, size, 0)


@lru_cache(maxsize=4096)
def from_birth(curve: Curve, width: float = 1.0) -> Outlook:
    """Return the outlook of a job that would start now and keep `width` cores busy."""
    return outlook(Standing(curve, 0.0, width, 1.0, curve.spread, curve.time_spread, curve.bias))


def outlook(standing: Standing, slots: int = SLOTS) -> Outlook:
    """Return what a job is expected to hold from now on, for no more than so many slots."""
    # The weighted courses at each pace: their mean, and the variance between them plus that of the sizes. What is held
    # now is measured, so only the change is uncertain.
    least, spread, ends = standing.least, standing.spread, EDGES[1 : slots + 1]
    if standing.awake < 1:
        ends = tuple([end - (1 - standing.awake) * min(end, AS_NOW) for end in ends])
    courses = _courses(standing, ends)
    mean, most = courses[0], courses[0]
    variance = doubt = [(spread * (size - least)) ** 2 for size in mean]
    if len(courses) > 1:
        (_, likely), (_, side), _ = PACES
        mean, most, variance, doubt = [], [], [], []
        # One loop for all: thirty jobs are asked for each second while memory may become short.
        for a, b, c in zip(*courses, strict=True):
            expected, largest = likely * a + side * (b + c), max(a, b, c)
            mean.append(expected)
            most.append(largest)
            apart = likely * (a - expected) ** 2 + side * ((b - expected) ** 2 + (c - expected) ** 2)
            variance.append(apart + (spread * (expected - least)) ** 2)
            doubt.append((spread * (largest - least)) ** 2)
    # The first slot shows no less than what is held now, and no error of the class changes that.
    if least > 0 and mean:
        mean, most = [max(mean[0], least), *mean[1:]], [max(most[0], least), *most[1:]]
    if standing.bias:
        mean, most = _biased(mean, standing), _biased(most, standing)
    peak = max(mean, default=0.0)
    return Outlook(tuple(mean), tuple(variance), tuple(most), tuple(doubt), peak, mean.index(peak) if mean else 0)


def _courses(standing: Standing, ends: Sequence[float]) -> list[list[float]]:
    """Return what the job holds in each slot up to these ends at each of the PACES, all of the same length."""
    if standing.time_spread <= 0:
        return [_course(standing, standing.pace, ends)]
    courses = [_course(standing, standing.pace * math.exp(by * standing.time_spread), ends) for by, _ in PACES]
    length = max(map(len, courses))
    for course in courses:
        course += [0.0] * (length - len(course))
    return courses


def _biased(sizes: list[float], standing: Standing) -> list[float]:
    """Return the sizes if the whole class is larger than expected by the bias; again, what is held now is measured."""
    more, least = 1 + standing.bias, standing.least
    return [more * size - standing.bias * least if size > least else min(more * size, least) for size in sizes]


def _course(standing: Standing, pace: float, ends: Sequence[float]) -> list[float]:
    """Return the largest size in each slot up to these ends if the job continues at this pace."""
    curve, position, scale = standing.curve, standing.position, standing.scale
    ages, sizes = curve.ages, curve.sizes
    after, count = bisect_right(ages, position), len(ages)
    course: list[float] = []
    start = curve.value(position)
    for edge in ends:
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


class PromisedMemory:
    """The sum of outlooks: what running jobs are expected to hold, slot by slot, and how uncertain that is.

    `caution` is the number of standard deviations that are kept free above the sum. Uncertainty about time counts as if
    it were about size, because the peaks of many jobs seldom coincide; with few jobs, no more counts than if they all
    did.
    """

    def __init__(self, capacity: float, caution: float) -> None:
        self.capacity = capacity
        self.caution = caution
        self.mean = [0.0] * SLOTS
        self.variance = [0.0] * SLOTS
        self.most = [0.0] * SLOTS
        self.doubt = [0.0] * SLOTS
        self.peak = 0.0
        """Never less than the highest slot: the sum of the peaks of everything added."""

    def copied(self) -> PromisedMemory:
        """Return a copy that can be added to without changing this one."""
        other = PromisedMemory(self.capacity, self.caution)
        other.mean, other.variance = self.mean.copy(), self.variance.copy()
        other.most, other.doubt, other.peak = self.most.copy(), self.doubt.copy(), self.peak
        return other

    def hold(self, size: float, until: int | None = None) -> None:
        """Add a job that keeps `size` bytes, up to a slot or up to the horizon: a frozen one."""
        for slot in range(SLOTS if until is None else until):
            self.mean[slot] += size
            self.most[slot] += size
        self.peak += size

    def end(self) -> int:
        """Return the slot by which every job has ended that ends within the horizon."""
        slot = SLOTS
        while slot > 0 and self.mean[slot - 1] == self.mean[-1]:
            slot -= 1
        return slot

    def close(self, slot: int) -> None:
        """Promise all memory from this slot on."""
        for later in range(slot, SLOTS):
            self.mean[later] += self.capacity
            self.most[later] += self.capacity
        self.peak += self.capacity

    def add(self, job: Outlook, after: int = 0) -> None:
        """Add a job; with `after`, one that starts that many slots from now."""
        seen = _shifted(job, after)
        mean, variance, most, doubt = self.mean, self.variance, self.most, self.doubt
        for slot, (m, v, t, d) in enumerate(zip(seen.mean, seen.variance, seen.most, seen.doubt, strict=True), after):
            mean[slot] += m
            variance[slot] += v
            most[slot] += t
            doubt[slot] += d
        self.peak += self._top(job)

    def _top(self, job: Outlook) -> float:
        """Return the job's peak plus its uncertainty."""
        upper = job.peak + self.caution * math.sqrt(max(job.variance, default=0.0))
        return min(upper, max(job.most, default=0.0) + self.caution * math.sqrt(max(job.doubt, default=0.0)))

    def fits(self, job: Outlook, after: int = 0, capacity: float | None = None) -> bool:
        """Return whether the job can be added `after` slots from now so that every slot stays within the capacity, or
        within another `capacity`."""
        capacity = self.capacity if capacity is None else capacity
        if self.peak + self._top(job) <= capacity:
            return True
        at = bisect_right(EDGES, EDGES[after] + EDGES[job.peak_slot]) - 1 if after else job.peak_slot
        if at < SLOTS and self.mean[at] + job.peak > capacity:
            return False  # most rejected jobs fail this cheap test
        return self._within(_shifted(job, after), after, capacity)

    def fits_soon(self, job: Outlook, slots: int, capacity: float) -> bool:
        """Return whether the job can be added so that the next `slots` slots stay within this capacity."""
        near = Outlook(
            job.mean[:slots], job.variance[:slots], job.most[:slots], job.doubt[:slots], job.peak, job.peak_slot
        )
        return self._within(near, 0, capacity)

    def _within(self, job: Outlook, after: int, capacity: float) -> bool:
        """Return whether all slots from `after` on stay within the capacity with the job, which begins there."""
        caution, mean, variance, most, doubt = self.caution, self.mean, self.variance, self.most, self.doubt
        for slot, (m, v, t, d) in enumerate(zip(job.mean, job.variance, job.most, job.doubt, strict=True), after):
            if (
                mean[slot] + m + caution * math.sqrt(variance[slot] + v) > capacity
                and most[slot] + t + caution * math.sqrt(doubt[slot] + d) > capacity
            ):
                return False
        return True

    def free(self) -> float:
        """Return the bytes that no running job is expected to need in the tightest slot."""
        return self.capacity - max(self.upper(slot) for slot in range(SLOTS))

    def upper(self, slot: int) -> float:
        """Return the promise in a slot, uncertainty included."""
        return min(
            self.mean[slot] + self.caution * math.sqrt(self.variance[slot]),
            self.most[slot] + self.caution * math.sqrt(self.doubt[slot]),
        )

    def course(self, bounds: Sequence[float]) -> list[float]:
        """Return the largest promise in each interval up to these seconds from now, without uncertainty."""
        edges = [min(SLOTS - 1, bisect_right(EDGES, bound) - 1) for bound in bounds]
        return [max(self.mean[first : last + 1]) for first, last in pairwise([0, *edges])]

    def earliest(self, job: Outlook, held: float = 0.0) -> int | None:
        """Return the first later slot in which a job that holds `held` bytes until then could start and fit."""
        for slot in range(1, SLOTS):
            if held and self.upper(slot - 1) + held > self.capacity:
                return None
            if self.fits(job, slot):
                return slot
        return None


def _shifted(job: Outlook, after: int) -> Outlook:
    """Return the outlook if it begins `after` slots from now: slots there are longer, so each takes the maximum of
    those that fall into it."""
    if not after:
        return job
    offset = EDGES[after]
    figures: list[tuple[float, float, float, float]] = []
    source = 0
    last = len(job.mean)
    for slot in range(after, SLOTS):
        end, first = EDGES[slot + 1] - offset, source
        while source < last and EDGES[source + 1] <= end:
            source += 1
        # A slot that reaches beyond the end counts here and in the next one.
        stop = source + 1 if source < last and EDGES[source] < end else source
        figures.append(_largest(job, first, stop))
        if source >= last:
            break
    mean, variance, most, doubt = zip(*figures, strict=True) if figures else ((), (), (), ())
    return Outlook(mean, variance, most, doubt, job.peak, job.peak_slot)


def _largest(job: Outlook, first: int, stop: int) -> tuple[float, float, float, float]:
    return (
        max(job.mean[first:stop], default=0.0),
        max(job.variance[first:stop], default=0.0),
        max(job.most[first:stop], default=0.0),
        max(job.doubt[first:stop], default=0.0),
    )
