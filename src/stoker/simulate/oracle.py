"""What a simulated policy may expect of jobs: the truth, the truth with noise, what it learns, or what was recorded.

Knows the true curves, so that it can hand out wrong ones. No policy sees the true ones.
"""

from __future__ import annotations

import math
from functools import cache
from random import Random
from typing import Literal, Protocol

from stoker.config.priors import load_priors, shipped_priors
from stoker.decide.memory.curves import Curve, simplified
from stoker.decide.memory.learner import Learner
from stoker.decide.memory.prior_classes import Priors
from stoker.simulate.trace import TraceJob

Prediction = Literal["exact", "noisy", "absent", "recorded"]
PREDICTIONS: tuple[Prediction, ...] = ("exact", "noisy", "absent", "recorded")

NOISE = 0.2
"""Standard deviation of the logarithm of the factors on size and on time, drawn for every job."""

EXACT_SPREAD = 0.02
"""The spread that a history of identical builds would measure."""


class Oracle(Protocol):
    """Says what to expect of a job, and is given what it really took."""

    learns: bool
    """Whether the expectation of one job changes when another ends."""

    def expect(self, job: TraceJob) -> Curve:
        """Return the expected curve."""

    def ended(self, job: TraceJob) -> None:
        """Learn from a job that succeeded."""


def oracle(prediction: Prediction, seed: int = 1) -> Oracle:
    """Return the oracle of that kind; the seed determines its noise."""
    if prediction == "absent":
        return _FirstBuild()
    if prediction == "recorded":
        return _Recorded()
    return _History(0.0 if prediction == "exact" else NOISE, seed)


class _History:
    """The curves of an earlier build, each off by its own factors in size and time."""

    learns = False

    def __init__(self, noise: float, seed: int) -> None:
        self._noise = noise
        self._random = Random(seed * 7919 + 17)  # noqa: S311  (noise, not a secret)
        self._curves: dict[str, Curve] = {}

    def expect(self, job: TraceJob) -> Curve:
        curve = self._curves.get(job.output)
        if curve is None:
            size, time = (math.exp(self._random.gauss(0, self._noise)) for _ in range(2))
            spread = max(EXACT_SPREAD, self._noise)
            curve = Curve(simplified(job.points), source="history").scaled(size, time).widened(spread, spread)
            self._curves[job.output] = curve
        return curve

    def ended(self, job: TraceJob) -> None:
        self._curves.pop(job.output, None)


class _Recorded:
    """What the recorded build expected of each job; the truth with noise if it expected nothing."""

    learns = False

    def __init__(self) -> None:
        self._history = _History(NOISE, 1)

    def expect(self, job: TraceJob) -> Curve:
        if job.expected is None:
            return self._history.expect(job)
        peak, seconds = job.expected
        size = peak / job.peak if job.peak > 0 else 1.0
        curve = Curve(simplified(job.points), source="recorded").scaled(size, seconds / job.cpu)
        return curve.widened(NOISE, NOISE)

    def ended(self, job: TraceJob) -> None:
        self._history.ended(job)


class _FirstBuild:
    """No history: the shipped class priors, corrected by what has finished in this build."""

    learns = True

    def __init__(self) -> None:
        self._learner = Learner(_shipped())

    def expect(self, job: TraceJob) -> Curve:
        return self._learner.expect(job.output, job.tool)

    def ended(self, job: TraceJob) -> None:
        self._learner.observe(job.output, job.tool, simplified(job.points))


@cache
def _shipped() -> Priors:
    """Return the shipped priors, read once: a table of results simulates hundreds of builds."""
    return load_priors([shipped_priors()])[0]
