"""How long jobs take in this build: learnt from those that ended, and from how long the running ones have run.

Pure sums. Seconds are those of a job alone on its core, so that a figure holds at any number of running jobs.
Unaware of clocks and of the graph.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal, NamedTuple

Source = Literal["history", "other flags", "log", "class"]
"""Where an expectation comes from: the learned history of this output with its flags or with others, an earlier run in
.ninja_log, or the jobs of its tool and folder in this build."""

RELATIVE_SECONDS = {"cxx": 1.0, "nvcc": 6.0, "link": 0.6, "archive": 0.1, "other": 0.5}
"""How long a job of a tool takes beside a C++ compile, for tools of which none has finished and nothing else tells.

nvcc: flash-attention's kernels take 30 to 150 CPU seconds where its C++ file takes 30, PyTorch's 379 CUDA files
67 s on average where its 1208 C++ files take 30 (PyTorch's own build profile of 2026). A guess, so the band is wide.
"""

CLASS_SPREAD, CLASS_WEIGHT = 0.7, 2.0
"""Spread of the durations of one tool (of their logarithm), and how many finished jobs that assumption weighs."""

PRIOR_DOUBT = 0.86
"""Doubt of a tool's mean before any of its jobs has finished: 80 % of builds within a third and three times."""

CLASS_DRIFT = 0.12
"""Doubt that remains however many have finished: the jobs to come are of other parts of the project."""

FOLDER_WEIGHT = 3.0
"""Jobs of the tool that weigh in a folder's mean: a library's files are alike, a few of them prove little."""

MAX_FOLDERS = 4096
"""Folders told apart; the oldest goes. PyTorch has some 500."""

RATIO_WEIGHT = 2.0
"""Finished jobs that the assumption about a source's ratio weighs."""

RATIO_DOUBT = {"history": 0.15, "other flags": 0.4, "log": 0.35}
"""Doubt of all expectations of a source together before a job was held against one. .ninja_log knows the time on the
clock, at an unknown load; history knows CPU seconds."""

RATIO_DRIFT = 0.04
"""Doubt that remains of it however many were."""

RATIO_SPREAD = {"history": 0.25, "other flags": 0.6, "log": 0.3}
"""How far single jobs of a source are from the common ratio, before it was measured."""

MAX_SPREAD = 1.5
IMPUTE_ROUNDS = 2
_NORMAL = NormalDist()


class Typical(NamedTuple):
    """An expectation in seconds, and its relative standard deviation."""

    seconds: float
    spread: float


class Young(NamedTuple):
    """A running job of which only the class is known, and how long it has run."""

    tool: str
    folder: str
    age: float


@dataclass(slots=True)
class _Sums:
    """Finished jobs: their number, seconds, and the first two moments of the logarithm; and running ones, as
    what they are expected to come to."""

    count: int = 0
    seconds: float = 0.0
    log: float = 0.0
    log_square: float = 0.0
    running: int = 0
    running_seconds: float = 0.0

    def add(self, seconds: float) -> None:
        log = math.log(max(seconds, 1e-3))
        self.count += 1
        self.seconds += seconds
        self.log += log
        self.log_square += log * log

    def mean(self, weight: float, prior: float) -> float:
        """The mean, with `weight` jobs of `prior` seconds among them."""
        return (weight * prior + self.seconds + self.running_seconds) / (weight + self.count + self.running)

    def log_spread(self) -> float:
        scatter = max(0.0, self.log_square - self.log**2 / self.count) if self.count else 0.0
        return math.sqrt((CLASS_WEIGHT * CLASS_SPREAD**2 + scatter) / (CLASS_WEIGHT + self.count))


@dataclass(slots=True)
class _Ratio:
    """What jobs took, against what a source said."""

    count: int = 0
    seconds: float = 0.0
    expected: float = 0.0
    log: float = 0.0
    log_square: float = 0.0

    def add(self, seconds: float, expected: float) -> None:
        log = math.log(max(seconds, 1e-3) / max(expected, 1e-3))
        self.count += 1
        self.seconds += seconds
        self.expected += expected
        self.log += log
        self.log_square += log * log


class Pace:
    """What has been seen of this build's durations so far."""

    def __init__(self) -> None:
        self._tools: dict[str, _Sums] = {}
        self._folders: dict[tuple[str, str], _Sums] = {}
        self._ratios: dict[tuple[Source, str], _Ratio] = {}
        self._priors: dict[str, float] = {}
        self._watched: list[_Sums] = []

    @property
    def knows_nothing(self) -> bool:
        """Whether there is neither a finished job nor a prior to go by."""
        return not self._priors and not any(sums.count for sums in self._tools.values())

    def add(self, tool: str, folder: str, seconds: float) -> None:
        """A job ended well and took `seconds` alone on its core."""
        self._tools.setdefault(tool, _Sums()).add(seconds)
        self._folder(tool, folder).add(seconds)

    def compare(self, source: Source, tool: str, expected: float, seconds: float) -> None:
        """The same job was expected by `source` to take `expected` seconds."""
        self._ratios.setdefault((source, tool), _Ratio()).add(seconds, expected)

    def suppose(self, tool: str, seconds: float) -> None:
        """What jobs of a tool are taken to need until some have finished."""
        self._priors[tool] = seconds

    def watch(self, running: Iterable[Young]) -> None:
        """Count the running jobs as what they are expected to come to, in place of those told before.

        The jobs that end first are the short ones: a mean of them alone would be far too low on a wide machine.
        """
        jobs = list(running)
        for _ in range(IMPUTE_ROUNDS):
            whole = [job.age + residual(self.typical(job.tool, job.folder), job.age).seconds for job in jobs]
            for sums in self._watched:
                sums.running, sums.running_seconds = 0, 0.0
            self._watched = [
                sums
                for job in jobs
                for sums in (self._tools.setdefault(job.tool, _Sums()), self._folder(job.tool, job.folder))
            ]
            for sums, seconds in zip(self._watched, (s for s in whole for _ in range(2)), strict=True):
                sums.running += 1
                sums.running_seconds += seconds

    def typical(self, tool: str, folder: str) -> Typical:
        """What a job of the tool in that folder takes."""
        sums = self._tools.get(tool, _Sums())
        mean = sums.mean(1.0, self._prior(tool))
        here = self._folders.get((tool, folder))
        seconds = here.mean(FOLDER_WEIGHT, mean) if here is not None else mean
        return Typical(seconds, _relative(sums.log_spread()))

    def corrected(self, source: Source, tool: str) -> Typical:
        """The factor from what the source says to what jobs take, and the spread of single jobs around it."""
        ratio = self._ratios.get((source, tool), _Ratio())
        # The assumption (a factor of 1) weighs as much as RATIO_WEIGHT mean jobs, whatever their size.
        weight = RATIO_WEIGHT * (ratio.expected / ratio.count if ratio.count else 1.0)
        factor = (weight + ratio.seconds) / (weight + ratio.expected)
        scatter = max(0.0, ratio.log_square - ratio.log**2 / ratio.count) if ratio.count else 0.0
        spread = (RATIO_WEIGHT * RATIO_SPREAD[source] ** 2 + scatter) / (RATIO_WEIGHT + ratio.count)
        return Typical(factor, _relative(math.sqrt(spread)))

    def doubt(self, source: Source, tool: str) -> float:
        """How far all expectations of a source for a tool may be off together (standard deviation of the logarithm)."""
        if source == "class":
            sums = self._tools.get(tool, _Sums())
            return _narrowed(PRIOR_DOUBT, sums.log_spread(), sums.count, CLASS_DRIFT)
        ratio = self._ratios.get((source, tool), _Ratio())
        return _narrowed(RATIO_DOUBT[source], RATIO_SPREAD[source], ratio.count, RATIO_DRIFT)

    def _prior(self, tool: str) -> float:
        given = self._priors.get(tool)
        if given is not None:
            return given
        seen = [(s.seconds / RELATIVE_SECONDS.get(t, 1.0), s.count) for t, s in self._tools.items() if s.count]
        count = sum(n for _, n in seen)
        return RELATIVE_SECONDS.get(tool, 1.0) * sum(s for s, _ in seen) / count if count else 1.0

    def _folder(self, tool: str, folder: str) -> _Sums:
        sums = self._folders.get((tool, folder))
        if sums is None:
            if len(self._folders) >= MAX_FOLDERS:
                del self._folders[next(iter(self._folders))]
            sums = self._folders[tool, folder] = _Sums()
        return sums


def residual(whole: Typical, age: float) -> Typical:
    """What a job that has run for `age` seconds still needs: the mean of what is left of a log-normal duration.

    A job that has outlived its expectation is of the slow kind, and is expected to go on.
    """
    if age <= 0.0 or whole.seconds <= 0.0:
        return whole
    if whole.spread <= 0.0 and age < whole.seconds:
        return Typical(whole.seconds - age, 0.0)
    width = math.sqrt(math.log1p(max(whole.spread, 0.1) ** 2))
    middle = math.log(whole.seconds) - width**2 / 2
    z = (math.log(age) - middle) / width
    if z > 4.0:  # beyond that the tail's probability is lost in rounding; this is what the mean tends to
        return Typical(age * width / z, 1.0)
    alive = _NORMAL.cdf(-z)
    mean = whole.seconds * _NORMAL.cdf(width - z) / alive
    square = whole.seconds**2 * math.exp(width**2) * _NORMAL.cdf(2 * width - z) / alive
    left = max(mean - age, 1e-3)
    return Typical(left, min(MAX_SPREAD, math.sqrt(max(0.0, square - mean**2)) / left))


def _relative(log_spread: float) -> float:
    """The relative standard deviation of a log-normal value whose logarithm has this one."""
    return min(MAX_SPREAD, math.sqrt(math.expm1(log_spread**2)))


def _narrowed(doubt: float, spread: float, count: int, drift: float) -> float:
    """A doubt after `count` jobs that scatter by `spread`: as normal beliefs narrow, but never below `drift`."""
    return math.hypot(math.sqrt(1.0 / (1.0 / doubt**2 + count / spread**2)), drift)
