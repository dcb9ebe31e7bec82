"""Arithmetic of durations that differ by factors: sums over finished jobs, and what they say of those to come.

Pure. Durations are taken for log-normal; spreads and doubts are standard deviations of the logarithm unless they are
said to be relative. Unaware of builds and of clocks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import NamedTuple

FOLDER_SPREAD, BETWEEN_SPREAD, CLASS_WEIGHT = 0.5, 0.7, 3.0
"""Spread of the durations of one tool within a folder, and of the folders' means; and how many finished jobs these
assumptions weigh."""

LEAST_BETWEEN = 0.1
"""Folders never prove to be all alike: at most 25 jobs of the tool weigh in the mean of one."""

MAX_FOLDERS = 600
"""Folders told apart for each tool; the one where nothing has run for longest goes. PyTorch has some 500."""

RATIO_WEIGHT = 2.0
"""Finished jobs that the assumption about a ratio weighs."""

RATIO_FADES = 0.98
"""What each further job leaves of the weight of those before it: the last 50 count."""

MAX_SPREAD = 1.5
LEAST_SECONDS = 1e-3
_NORMAL = NormalDist()


class Typical(NamedTuple):
    """An expectation in seconds, or a factor; and its relative standard deviation."""

    seconds: float
    spread: float


class Centre(NamedTuple):
    """The mean of a folder of which nothing is known, and how far the mean of all such may be off."""

    seconds: float
    doubt: float


@dataclass(slots=True)
class Scatter:
    """Moments of logarithms."""

    count: int = 0
    log: float = 0.0
    square: float = 0.0

    def add(self, value: float) -> float:
        """Count a value in; by how much that raises the scatter."""
        log, before = math.log(max(value, LEAST_SECONDS)), self.sum
        self.count += 1
        self.log += log
        self.square += log * log
        return self.sum - before

    @property
    def sum(self) -> float:
        """Sum of the squared distances from the mean."""
        return max(0.0, self.square - self.log**2 / self.count) if self.count else 0.0


@dataclass(slots=True)
class Folder:
    """Jobs of one tool in one folder: those that ended, and running ones as what they are expected to come to."""

    ended: int = 0
    running: int = 0
    seconds: float = 0.0
    running_seconds: float = 0.0
    scatter: Scatter = field(default_factory=Scatter)

    @property
    def jobs(self) -> int:
        """All of them."""
        return self.ended + self.running

    @property
    def total(self) -> float:
        """Seconds of all of them."""
        return self.seconds + self.running_seconds


@dataclass(slots=True)
class Class:
    """Jobs of one tool by folder; `within` is the scatter inside the folders, `pairs` the jobs that have shown it."""

    folders: dict[str, Folder] = field(default_factory=dict)
    scatter: Scatter = field(default_factory=Scatter)
    seconds: float = 0.0
    within: float = 0.0
    pairs: int = 0

    def folder(self, name: str) -> Folder:
        """The folder of this name, where something runs now; begun if need be."""
        found = self.folders.pop(name, None)
        if found is None:
            if len(self.folders) >= MAX_FOLDERS:
                del self.folders[next(iter(self.folders))]
            found = Folder()
        self.folders[name] = found
        return found

    def add(self, name: str, seconds: float) -> None:
        """A job in that folder ended after so many seconds."""
        here = self.folder(name)
        self.pairs += here.ended > 0
        self.within += here.scatter.add(seconds)
        self.scatter.add(seconds)
        here.ended += 1
        here.seconds += seconds
        self.seconds += seconds

    def spreads(self) -> tuple[float, float]:
        """Within a folder, and between folders."""
        inside = (CLASS_WEIGHT * FOLDER_SPREAD**2 + self.within) / (CLASS_WEIGHT + self.pairs)
        both = FOLDER_SPREAD**2 + BETWEEN_SPREAD**2
        whole = (CLASS_WEIGHT * both + self.scatter.sum) / (CLASS_WEIGHT + self.scatter.count)
        return math.sqrt(inside), math.sqrt(max(LEAST_BETWEEN**2, whole - inside))

    def centre(self, prior: Centre | None) -> Centre:
        """Each folder, and the prior, counts by how sure it is to tell the mean of folders."""
        within, between = self.spreads()
        weight = ended = 1.0 / prior.doubt**2 if prior is not None else 0.0
        total = weight * prior.seconds if prior is not None else 0.0
        for folder in self.folders.values():
            if folder.jobs:
                own = 1.0 / (between**2 + within**2 / folder.jobs)
                weight += own
                total += own * folder.total / folder.jobs
                ended += own * folder.ended / folder.jobs
        return Centre(total / weight, 1.0 / math.sqrt(ended))


@dataclass(slots=True)
class Ratio:
    """What jobs took against what was expected of them."""

    seconds: float = 0.0
    expected: float = 0.0
    scatter: Scatter = field(default_factory=Scatter)

    def add(self, seconds: float, expected: float) -> None:
        """Count a job in; what was long ago fades, since other work comes and goes on the machine."""
        self.seconds = self.seconds * RATIO_FADES + seconds
        self.expected = self.expected * RATIO_FADES + expected
        self.scatter.add(seconds / max(expected, LEAST_SECONDS))

    def factor(self, prior: float) -> float:
        """From what is expected to what jobs take; RATIO_WEIGHT jobs of mean size speak for `prior`."""
        count = (1.0 - RATIO_FADES**self.scatter.count) / (1.0 - RATIO_FADES)
        weight = RATIO_WEIGHT * (self.expected / count if count else 1.0)
        return (weight * prior + self.seconds) / (weight + self.expected)

    def spread(self, prior: float) -> float:
        """How far single jobs are from the common factor."""
        count = self.scatter.count
        return math.sqrt((RATIO_WEIGHT * prior**2 + self.scatter.sum) / (RATIO_WEIGHT + count))


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
    left = max(mean - age, LEAST_SECONDS)
    return Typical(left, min(MAX_SPREAD, math.sqrt(max(0.0, square - mean**2)) / left))


def relative(spread: float) -> float:
    """The relative standard deviation of a log-normal value whose logarithm has this one."""
    return min(MAX_SPREAD, math.sqrt(math.expm1(spread**2)))


def narrowed(doubt: float, spread: float, count: int) -> float:
    """A doubt after `count` jobs that scatter by `spread`, as normal beliefs narrow."""
    return doubt * spread / math.sqrt(spread**2 + count * doubt**2) if doubt > 0.0 else 0.0
