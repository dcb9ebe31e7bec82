"""By how much this build's jobs are larger or longer than expected: another compiler, another machine.

Pure arithmetic on ratios. Unaware of what was expected of whom, and of why it was wrong.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

WINDOW = 200
"""Jobs that count: in a long build later ones may be of another project."""

NOISE = 0.25
"""How far single jobs are taken to scatter around the common ratio before some were seen (logarithm)."""

NOISE_WEIGHT = 4.0
"""Jobs whose scatter weighs as much as that assumption."""

OUTLIER = math.log(8.0)
"""One job that is off by more than this factor says that it is another job, not that all are."""

STEP = 0.02
"""Corrections are told in steps of this size (logarithm), so that answers stay the same until it matters."""


@dataclass(slots=True)
class Correction:
    """The common ratio of what jobs took to what was expected, as a logarithm.

    `doubt` is how far a build may be from what is remembered, as a standard deviation of that logarithm: the ratio is
    drawn towards 1 the more, the fewer jobs were seen and the less they agree.
    """

    doubt: float
    shift: float = 0.0
    """What to add to the logarithm of an expectation."""

    left: float = 0.0
    """How far the true common ratio may still be from `shift` (standard deviation)."""

    scatter: float = 0.0
    """How far single jobs were from the common ratio (standard deviation), less while few were seen."""

    _count: int = 0
    _mean: float = 0.0
    _variance: float = 0.0

    def __post_init__(self) -> None:
        self.left = self.doubt

    def add(self, taken: float, expected: float) -> bool:
        """Count in a job by the logarithms of what it took and of what was expected; whether that changed a figure."""
        ratio = min(max(taken - expected, -OUTLIER), OUTLIER)
        self._count = n = min(self._count + 1, WINDOW)
        step = ratio - self._mean
        self._mean += step / n
        self._variance = (1 - 1 / n) * (self._variance + step * step / n)
        return self._tell(n)

    def _tell(self, n: int) -> bool:
        """Normal prior of width `doubt`, normal noise of the pooled scatter: the posterior's weight is `trust`."""
        before = self.shift, self.left, self.scatter
        noise = (NOISE_WEIGHT * NOISE**2 + n * self._variance) / (NOISE_WEIGHT + n)
        trust = n * self.doubt**2 / (n * self.doubt**2 + noise)
        self.shift = _stepped(trust * self._mean)
        self.left = _stepped(self.doubt * math.sqrt(1 - trust))
        self.scatter = _stepped(math.sqrt(n * self._variance / (n + NOISE_WEIGHT)))
        return before != (self.shift, self.left, self.scatter)


def _stepped(value: float) -> float:
    return STEP * round(value / STEP)
