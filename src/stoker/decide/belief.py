"""What is believed of a class of jobs: sums over those that finished, and how they move and narrow a prior.

Pure arithmetic. Sizes and durations are taken for log-normal: compile times and their memory differ by factors.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from stoker.decide.curves import Curve

PRIOR_WEIGHT = 2.0
"""Finished jobs that weigh as much as the belief before them."""

BIAS_SHARE = 0.6
"""Share of a prior's spread that all jobs of the class have in common: a wrong prior is wrong for each of them."""

RENEWAL = 20
"""A class counts as news when it has grown by one in so many: a thousand candidates are not judged anew for each job
that ends."""


@dataclass(slots=True)
class Seen:
    """Sums over the finished jobs of one class: logarithms of peak and duration, and the shape seen last.

    `epoch` rises when the sums have changed by enough to matter.
    """

    count: int = 0
    peak: float = 0.0
    peak_square: float = 0.0
    time: float = 0.0
    time_square: float = 0.0
    shape: Curve | None = None
    epoch: int = 0
    _renewed_at: int = 0

    def add(self, curve: Curve) -> bool:
        """Count a job in; whether that is news."""
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
    """A log-normal belief about a class, and the shape that stands for it."""

    shape: Curve
    peak: float
    time: float
    spread: float
    time_spread: float
    count: int = 0

    def after(self, seen: Seen | None) -> Belief:
        """The belief once these jobs have been seen: weighted means, and the spread around them."""
        if seen is None or seen.shape is None:
            return self
        n, k = seen.count, PRIOR_WEIGHT
        peak, time = (k * self.peak + seen.peak) / (k + n), (k * self.time + seen.time) / (k + n)
        spread = _spread(k, self.peak, self.spread, seen.peak, seen.peak_square, n, peak)
        time_spread = _spread(k, self.time, self.time_spread, seen.time, seen.time_square, n, time)
        return Belief(seen.shape, peak, time, spread, time_spread, n)

    def after_all(self, classes: Iterable[Seen | None]) -> Belief:
        """The belief after one class within the other, the widest first."""
        belief = self
        for seen in classes:
            belief = belief.after(seen)
        return belief

    def curve(self, prior_spread: float) -> Curve:
        """The curve to expect of a member; `prior_spread` is that of the class before anything was seen."""
        shape = self.shape
        scaled = shape.scaled(math.exp(self.peak) / shape.peak, math.exp(self.time) / shape.duration)
        bias = BIAS_SHARE * prior_spread / math.sqrt(1 + self.count)
        source = f"{self.count} like it" if self.count else shape.source
        return Curve(scaled.points, self.spread, self.time_spread, bias, source)


def believed(curve: Curve, spread: float, time_spread: float) -> Belief:
    """The belief that a prior's curve stands for."""
    return Belief(curve, math.log(curve.peak), math.log(curve.duration), spread, time_spread)


def _spread(k: float, mean: float, spread: float, total: float, square: float, n: int, middle: float) -> float:
    """Standard deviation around `middle`, of `k` imagined jobs of the old belief and `n` real ones."""
    old = k * (spread * spread + (mean - middle) ** 2)
    new = square - 2 * middle * total + n * middle * middle
    return math.sqrt(max(0.0, old + new) / (k + n))
