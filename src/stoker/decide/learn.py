"""What to expect of a job: its own history, else its class as priors and this build's finished jobs tell it.

Pure: keeps sums, opens no file. Unaware of where history is kept, and of decisions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from stoker.decide.curves import Curve, Point

GIB = 2**30

_STEM = re.compile(r"[^0-9]*")


@dataclass(frozen=True, slots=True)
class Prior:
    """A class of jobs before anything was measured: a shape, and how far its members may be from it (relative)."""

    curve: Curve
    spread: float
    time_spread: float


def _prior(points: tuple[tuple[float, float, str], ...], spread: float, time_spread: float, source: str) -> Prior:
    curve = Curve(tuple(Point(age, gib * GIB, phase) for age, gib, phase in points), source=source)
    return Prior(curve, spread, time_spread)


PRIORS: Mapping[str, Prior] = {
    # Measured on flash-attention's kernels (nvcc 13.0, one architecture): the shape is theirs, the size a little
    # above their middle, since being surprised costs more than waiting.
    "nvcc": _prior(
        (
            (0, 0.03, "nvcc"), (3, 0.3, "cudafe++"), (8, 0.85, "cudafe++"), (12, 0.3, "cicc"), (30, 3.0, "cicc"),
            (55, 4.8, "cicc"), (58, 1.5, "cicc"), (70, 1.8, "cicc"), (115, 1.3, "cicc"), (125, 0.4, "ptxas"),
            (150, 0.5, "cc1plus"),
        ),
        0.5, 0.5, "prior nvcc",
    ),
    # C++ of PyTorch's kind: half a GiB as a rule, up to two.
    "cxx": _prior(((0, 0.2, "cc1plus"), (8, 0.7, "cc1plus"), (12, 0.7, "as")), 0.7, 1.0, "prior cxx"),
    "link": _prior(((0, 0.1, "ld"), (6, 1.5, "ld"), (8, 1.5, "ld")), 1.0, 1.0, "prior link"),
    "archive": _prior(((0, 0.05, "ar"), (1, 0.1, "ar")), 1.0, 1.0, "prior archive"),
    "other": _prior(((0, 0.1, ""), (5, 0.3, "")), 1.0, 1.0, "prior other"),
}  # fmt: skip
"""By tool. A profile may bring its own."""

PRIOR_WEIGHT = 2.0
"""Finished jobs that weigh as much as the prior does."""

BIAS_SHARE = 0.6
"""Share of a prior's spread that all jobs of the class have in common: a wrong prior is wrong for each of them."""


@dataclass(slots=True)
class _Class:
    """Sums over the finished jobs of one class: logarithms of peak and duration, and the shape seen last."""

    count: int = 0
    peak: float = 0.0
    peak_square: float = 0.0
    time: float = 0.0
    time_square: float = 0.0
    shape: Curve | None = field(default=None)

    def add(self, curve: Curve) -> None:
        size, time = math.log(max(1.0, curve.peak)), math.log(max(0.01, curve.duration))
        self.count += 1
        self.peak += size
        self.peak_square += size * size
        self.time += time
        self.time_square += time * time
        self.shape = curve


class Learner:
    """Expectations by output, else by tool and name. Changes only when told of a finished job.

    `history` has the curves of jobs that ran before, by output; they are taken as they are, spreads and all.
    """

    def __init__(self, priors: Mapping[str, Prior] = PRIORS, history: Mapping[str, Curve] | None = None) -> None:
        self._priors = priors
        self._history = history or {}
        self._tools: dict[str, _Class] = {}
        self._families: dict[tuple[str, str], _Class] = {}
        self._known: dict[tuple[str, str], Curve] = {}

    def observe(self, output: str, tool: str, points: tuple[Point, ...]) -> None:
        """A job ended well and took this."""
        curve = Curve(points)
        family = _family(output, tool)
        self._tools.setdefault(tool, _Class()).add(curve)
        self._families.setdefault(family, _Class()).add(curve)
        self._known.clear()

    def expect(self, output: str, tool: str) -> Curve:
        """The curve to expect: its own, else the prior, drawn towards the tool's jobs and then the family's."""
        if output in self._history:
            return self._history[output]
        family = _family(output, tool)
        known = self._known.get(family)
        if known is None:
            known = self._blend(family, tool)
            self._known[family] = known
        return known

    def _blend(self, family: tuple[str, str], tool: str) -> Curve:
        prior = self._priors.get(tool, self._priors["other"])
        start = _Belief(
            prior.curve,
            math.log(prior.curve.peak),
            math.log(prior.curve.duration),
            prior.spread,
            prior.time_spread,
            0.0,
        )
        belief = start.after(self._tools.get(tool)).after(self._families.get(family))
        shape = belief.shape
        size = math.exp(belief.peak) / shape.peak if shape.peak > 0 else 1.0
        time = math.exp(belief.time) / shape.duration if shape.duration > 0 else 1.0
        bias = BIAS_SHARE * prior.spread / math.sqrt(1 + belief.count)
        source = f"{belief.count:.0f} like it" if belief.count else prior.curve.source
        scaled = shape.scaled(size, time)
        return Curve(scaled.points, belief.spread, belief.time_spread, bias, source)


@dataclass(frozen=True, slots=True)
class _Belief:
    """A log-normal belief about a class, and the shape that stands for it."""

    shape: Curve
    peak: float
    time: float
    spread: float
    time_spread: float
    count: float

    def after(self, seen: _Class | None) -> _Belief:
        """The belief once these jobs have been seen: weighted means, and the spread around them."""
        if seen is None or seen.count == 0 or seen.shape is None:
            return self
        n, k = seen.count, PRIOR_WEIGHT
        peak, time = (k * self.peak + seen.peak) / (k + n), (k * self.time + seen.time) / (k + n)
        spread = _spread(k, self.peak, self.spread, seen.peak, seen.peak_square, n, peak)
        time_spread = _spread(k, self.time, self.time_spread, seen.time, seen.time_square, n, time)
        return _Belief(seen.shape, peak, time, spread, time_spread, float(n))


def _spread(k: float, mean: float, spread: float, total: float, square: float, n: int, middle: float) -> float:
    """Standard deviation around `middle`, of `k` imagined jobs of the old belief and `n` real ones."""
    old = k * (spread * spread + (mean - middle) ** 2)
    new = square - 2 * middle * total + n * middle * middle
    return math.sqrt(max(0.0, old + new) / (k + n))


def _family(output: str, tool: str) -> tuple[str, str]:
    """Jobs of one tool whose names begin alike, up to the first digit: flash_bwd_hdim128 and flash_bwd_hdim256."""
    stem = _STEM.match(output.rsplit("/", 1)[-1])
    return tool, stem[0] if stem else ""
