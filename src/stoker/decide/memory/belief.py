"""The belief about a class of jobs: sums over finished jobs, and how they shift and narrow a prior.

Pure arithmetic. Sizes and durations are assumed to be log-normal: compile times and memory differ by factors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from stoker.decide.memory.curves import Curve

COMMON = 0.36
"""Share of a prior's variance that all jobs of the class have in common: a wrong prior is wrong for each of them. The
rest is the variance between jobs."""

COMMON_OF_FAMILY = 0.84
"""The same for jobs whose names begin alike: one of them says a lot about the others. In simulation the small C++
builds took 0.94 of the best fixed -j's time with COMMON here, and 0.78 with this (docs/policy.md)."""

SCATTER_WEIGHT = 2.0
"""The assumed variance between jobs has the weight of this many finished jobs."""

RENEWAL = 20
"""A class counts as changed when it has grown by one in so many: a thousand candidates are not re-evaluated for each
job that ends."""


@dataclass(slots=True)
class Seen:
    """Sums over the finished jobs of one class: logarithms of peak and duration, and the most recent shape.

    `families` are the beginnings of their names. `measured` of the jobs were not merely bounded. `epoch` increases when
    the sums have changed enough to matter.
    """

    count: int = 0
    families: set[str] = field(default_factory=set)
    measured: int = 0
    peak: float = 0.0
    peak_square: float = 0.0
    time: float = 0.0
    time_square: float = 0.0
    shape: Curve | None = None
    epoch: int = 0
    _renewed_at: int = 0

    def add(self, curve: Curve, family: str) -> bool:
        """Add a job; return whether that changes the belief noticeably."""
        self.families.add(family)
        self.measured += not curve.bound
        size, time = math.log(curve.peak), math.log(curve.duration)
        self.count += 1
        self.peak += size
        self.peak_square += size * size
        self.time += time
        self.time_square += time * time
        self.shape = curve
        news = self.count >= self._renewed_at + max(1, self._renewed_at // RENEWAL)
        if news:
            self.epoch += 1
            self._renewed_at = self.count
        return news


@dataclass(frozen=True, slots=True)
class Belief:
    """A log-normal belief about a class, and the shape that represents it."""

    shape: Curve
    peak: float
    time: float
    spread: float
    time_spread: float
    count: int = 0

    def after(self, seen: Seen, common: float = COMMON, jobs: int | None = None) -> Belief:
        """Return the belief after these jobs have been seen, `jobs` of which count as independent of each other."""
        if seen.shape is None:
            return self
        n = seen.count if jobs is None else jobs
        peak, spread = _updated(self.peak, self.spread, common, _Sample(n, seen.count, seen.peak, seen.peak_square))
        sample = _Sample(n, seen.count, seen.time, seen.time_square)
        time, time_spread = _updated(self.time, self.time_spread, common, sample)
        return Belief(seen.shape, peak, time, spread, time_spread, n)

    def after_all(self, whole: Seen | None, flags: Seen | None, family: Seen | None) -> Belief:
        """Return the belief after a class, the jobs in it with the same flags, and those in it whose names begin alike.

        In the wide classes each family counts once, however large: ten light jobs of one kind say little about another
        kind. If a narrow class has all the jobs of the wide one, the wide one adds nothing.
        """
        belief = self
        for wide, narrow in ((whole, flags), (flags, family)):
            if wide is not None and (narrow is None or narrow.count < wide.count):
                belief = belief.after(wide, jobs=len(wide.families))
        return belief if family is None else belief.after(family, COMMON_OF_FAMILY)

    def curve(self, prior_spread: float) -> Curve:
        """Return the expected curve of a member; `prior_spread` is that of the class before any job was seen."""
        shape = self.shape
        scaled = shape.scaled(math.exp(self.peak) / shape.peak, math.exp(self.time) / shape.duration)
        bias = math.sqrt(COMMON / (1 + self.count)) * prior_spread
        source = f"{self.count} like it" if self.count else shape.source
        return Curve(scaled.points, self.spread, self.time_spread, bias, source)


def believed(curve: Curve, spread: float, time_spread: float) -> Belief:
    """Return the belief that a prior's curve represents."""
    return Belief(curve, math.log(curve.peak), math.log(curve.duration), spread, time_spread)


class _Sample(NamedTuple):
    """Sums over `members` of a class, of which `jobs` count as independent."""

    jobs: int
    members: int
    total: float
    square: float


def _updated(mean: float, spread: float, common: float, seen: _Sample) -> tuple[float, float]:
    """Return mean and standard deviation of a class's next member.

    Two levels, as in an analysis of variance: the class varies around the prior belief, its members around the class.
    The variance between members is assumed at first, and then measured.
    """
    middle = seen.total / seen.members
    scatter = max(0.0, seen.square / seen.members - middle * middle)
    between = common * spread * spread
    assumed = SCATTER_WEIGHT * (1 - common) * spread * spread
    within = (assumed + seen.jobs * scatter) / (SCATTER_WEIGHT + seen.jobs - 1)
    trust = seen.jobs * between / (seen.jobs * between + within) if between > 0 else 0.0
    return mean + trust * (middle - mean), math.sqrt(within + between * (1 - trust))
