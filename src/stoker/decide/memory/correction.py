"""Measures by how much this build's jobs are larger or longer than expected: another compiler, another machine.

Pure arithmetic on ratios. Does not know what was expected of which job, or why it was wrong.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

WINDOW = 200
"""Number of jobs that count: in a long build, later ones may belong to another project."""

NOISE = 0.25
"""Assumed scatter of single jobs around the common ratio before any was seen (logarithm)."""

NOISE_WEIGHT = 4.0
"""That assumption has the weight of this many jobs."""

OUTLIER = math.log(8.0)
"""A job that is off by more than this factor is a different job; it does not show that all are off."""

STEP = 0.02
"""Corrections change in steps of this size (logarithm), so that predictions stay the same until it matters."""


@dataclass(slots=True)
class _Ratios:
    """The ratios of one class's jobs, as logarithms; `own` is how far the class's figures may be off by themselves."""

    own: float
    count: int = 0
    mean: float = 0.0
    variance: float = 0.0

    def add(self, ratio: float) -> None:
        """Add a job; beyond WINDOW jobs, older ones fade."""
        self.count = n = min(self.count + 1, WINDOW)
        step = ratio - self.mean
        self.mean += step / n
        self.variance = (1 - 1 / n) * (self.variance + step * step / n)


@dataclass(slots=True)
class Correction:
    """The common ratio of what jobs took to what was expected, as a logarithm.

    `doubt` is how far a build may be from expectations, as a standard deviation of that logarithm: the fewer jobs were
    seen and the less they agree, the more the ratio is drawn towards 1. If expectations come from classes, a class
    whose own figures may be wrong says little about the others, however many of its jobs were seen.
    """

    doubt: float
    shift: float = 0.0
    """What to add to the logarithm of an expectation."""

    left: float = 0.0
    """Remaining uncertainty of the true common ratio around `shift` (standard deviation)."""

    scatter: float = 0.0
    """Measured deviation of single jobs from the common ratio (standard deviation), smaller while few were seen."""

    _classes: dict[str, _Ratios] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.left = self.doubt

    def add(self, taken: float, expected: float, kind: str = "", own: float = 0.0) -> bool:
        """Add a job by the logarithms of what it took and of what was expected; return whether a figure changed.

        `kind` is the class that the expectation came from, `own` how far that class may be off in any build.
        """
        ratios = self._classes.setdefault(kind, _Ratios(own))
        ratios.add(min(max(taken - expected, -OUTLIER), OUTLIER))
        return self._update()

    def _update(self) -> bool:
        """Update the figures: normal prior of width `doubt`, a normal error per class, and pooled scatter per job."""
        before = self.shift, self.left, self.scatter
        classes = self._classes.values()
        n = sum(c.count for c in classes)
        within = sum(c.count * c.variance for c in classes) / n
        noise = (NOISE_WEIGHT * NOISE**2 + n * within) / (NOISE_WEIGHT + n)
        weights = [1 / (c.own**2 + noise / c.count) for c in classes]
        precision = sum(weights)
        mean = sum(w * c.mean for w, c in zip(weights, classes, strict=True)) / precision
        between = sum(c.count * (c.mean - mean) ** 2 for c in classes) / n
        trust = precision * self.doubt**2 / (precision * self.doubt**2 + 1)
        self.shift = _stepped(trust * mean)
        self.left = _stepped(self.doubt * math.sqrt(1 - trust))
        self.scatter = _stepped(math.sqrt(n * (within + between) / (n + NOISE_WEIGHT)))
        return before != (self.shift, self.left, self.scatter)


def _stepped(value: float) -> float:
    return STEP * round(value / STEP)
