"""How long jobs take in this build: what was stated of each beforehand, corrected by the jobs that have ended.

One rule for all sources: expected seconds = what was stated x factor, and the factor is what ended jobs took over what
was stated of them. Factors of few jobs are drawn towards those of wider classes. How much the size of a source says is
learnt from the build, too. Pure sums. Unaware of clocks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import NamedTuple

from stoker.model.lessons import Stated, StatedBy

WEIGHTS: Mapping[str, float] = MappingProxyType(
    {"cxx": 1.0, "c": 0.2, "nvcc": 6.0, "link": 0.3, "archive": 0.1, "other": 0.3}
)
"""What a job takes beside the compilation of a C++ file of TYPICAL_SIZE.

cxx and c: 0.59 and 0.1 CPU seconds were the medians over eight projects (bench/README.md). nvcc: PyTorch's CUDA files
take 67 s where its C++ files take 30, flash-attention's kernels 30 to 150 s. A link of those projects takes 0.04 of a
C++ file, of PyTorch 0.4. Where this is wrong, the first jobs of a kind that end correct it.
"""

TYPICAL_SIZE, SIZE_POWER = 8_000, 0.7
"""Bytes of a source with the weight of its language, and how the weight grows with the size: over 900 files of eight
projects the logarithms correlate by 0.7 to 0.8, with slopes from 0.35 (C++, whose headers weigh more) to 0.84 (C)."""

LEAST_SIZE, MOST_SIZE = 200, 2_000_000
"""Sources are taken to be no smaller and no larger."""

POWERS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""How far weights count in a build, as powers of them: at 1 as above, at 0 all sources of a language are alike. Sources
that include others (freetype has one of 700 bytes for each module) are heavier the smaller they are."""

SURE_POWER = 8.0
"""Squared logarithms of weights that ended jobs must differ by, together, to say as much about the power as the 1 that
is believed at first."""

TRUST, TRUST_STATED = 2.0, 0.5
"""Ended jobs that weigh as much as what the wider class says, and as seconds that were stated."""

FADES = 0.98
"""What each further job leaves of those before it where seconds were stated: other work comes and goes on a machine."""

OUTLIVED, OUTLIVED_STATED = 0.6, 0.2
"""A job that has outlived its expectation is of the slow kind: it is taken to need this share of its age again; the
second where seconds were stated."""

DOUBTS: Mapping[StatedBy, float] = MappingProxyType(
    {"history": 0.15, "other flags": 0.4, "log": 0.2, "prior": 0.4, "twin": 0.2, "size": 0.5}
)
"""How far all jobs of a class together may be off before one of them has ended (standard deviation, logarithm)."""

LEAST_SECONDS, SEEN_SECONDS = 0.001, 0.01
"""No job is taken to take less; what took less than the second says nothing about the source's size."""

_COMPILED = ("cxx", "c", "nvcc")
_C_OBJECTS = (".c.o", ".c.obj", ".c.lo", ".S.o", ".s.o", ".asm.o")


class Class(NamedTuple):
    """Jobs whose expectations are off together. Where seconds were stated these are all jobs of one source."""

    by: StatedBy
    kind: str = ""
    folder: str = ""


class ExpectedJob(NamedTuple):
    """A job of a plan as it is expected: what was stated of it, and its class."""

    stated: float
    of: Class


@dataclass(slots=True)
class Sum:
    """Jobs that have ended: how many, what was stated of them together, and what they took."""

    jobs: float = 0.0
    stated: float = 0.0
    seconds: float = 0.0

    def add(self, stated: float, seconds: float, fades: float = 1.0) -> None:
        """Count a job in; those before it count less."""
        self.jobs = self.jobs * fades + 1.0
        self.stated = self.stated * fades + stated
        self.seconds = self.seconds * fades + seconds

    @property
    def ratio(self) -> float:
        """What they took over what was stated."""
        return self.seconds / self.stated


@dataclass(slots=True)
class Slope:
    """How the logarithm of seconds grows with that of weights: the sums of a regression line."""

    jobs: float = 0.0
    x: float = 0.0
    y: float = 0.0
    xx: float = 0.0
    xy: float = 0.0

    def add(self, other: Slope) -> None:
        """Count in other jobs, with the same offset."""
        self.jobs += other.jobs
        self.x += other.x
        self.y += other.y
        self.xx += other.xx
        self.xy += other.xy

    @property
    def spread(self) -> tuple[float, float]:
        """Squares of the weights' logarithms, and their products with those of seconds, summed about the mean."""
        return self.xx - self.x * self.x / self.jobs, self.xy - self.x * self.y / self.jobs


class _Weighed:
    """Jobs of a class of weights that have ended."""

    def __init__(self) -> None:
        self.sums = tuple(Sum() for _ in POWERS)
        """For each of POWERS."""
        self.slope = Slope()

    def add(self, of: Class, amount: float, seconds: float) -> None:
        for power, total in zip(POWERS, self.sums, strict=True):
            total.add(_at(power, of, amount), seconds)
        x, y = math.log(amount / _plain(of)), math.log(max(seconds, SEEN_SECONDS))
        self.slope.add(Slope(1.0, x, y, x * x, x * y))


def kind_of(tool: str, output: str) -> str:
    """Return the tool; C apart from C++, which it is five times faster than."""
    return "c" if tool == "cxx" and output.endswith(_C_OBJECTS) else tool


def weight(tool: str, output: str, size: int = 0) -> Stated:
    """Return what is stated of a job of which nothing is remembered. `size`: its source's bytes, 0 if not known."""
    kind = kind_of(tool, output)
    by_size = 1.0
    if size and kind in _COMPILED:
        by_size = (min(max(size, LEAST_SIZE), MOST_SIZE) / TYPICAL_SIZE) ** SIZE_POWER
    return Stated("size", WEIGHTS.get(kind, WEIGHTS["other"]) * by_size)


def class_of(stated: Stated, tool: str, output: str) -> Class:
    """Return where a job belongs."""
    if stated.by != "size":
        return Class(stated.by)
    return Class("size", kind_of(tool, output), output.rpartition("/")[0])


def _plain(of: Class) -> float:
    """The weight of the class's kind, whatever the size of the source."""
    return WEIGHTS.get(of.kind, WEIGHTS["other"])


def _at(power: float, of: Class, amount: float) -> float:
    """A weight, where only a power of what the size adds to it counts."""
    return amount if power == 1.0 else _plain(of) * (amount / _plain(of)) ** power


class Durations:
    """What has been seen of this build's durations so far."""

    def __init__(self) -> None:
        self._stated: dict[Class, Sum] = {}
        self._weighed: dict[Class, _Weighed] = {}
        self._supposed = Sum()
        self._powers: dict[str, int] = {}
        self._factors: dict[Class, float] = {}
        self._kinds: dict[str, Sum] = {}

    @property
    def scaled(self) -> bool:
        """Whether anything says how many seconds a weight stands for."""
        return self._supposed.jobs > 0.0 or bool(self._weighed)

    def add(self, stated: Stated, tool: str, output: str, seconds: float) -> None:
        """Count in a job that has ended well."""
        of, amount = class_of(stated, tool, output), max(stated.amount, LEAST_SECONDS)
        if of.by == "size":
            self._weighed.setdefault(of, _Weighed()).add(of, amount, seconds)
        else:
            self._stated.setdefault(of, Sum()).add(amount, seconds, FADES)

    def suppose(self, remembered: Sum) -> None:
        """Take over what jobs of the plan would weigh, and the seconds that they are remembered to take."""
        self._supposed = remembered

    def doubt(self, of: Class) -> float:
        """Return how far the expectations of a class may be off together (standard deviation of the logarithm)."""
        if of.by == "size":
            jobs = self._weighed[of].slope.jobs if of in self._weighed else 0.0
        else:
            jobs = self._stated[of].jobs / 4 if of in self._stated else 0.0
        return DOUBTS[of.by] / math.sqrt(1.0 + jobs)

    def update(self, running: Iterable[tuple[ExpectedJob, float]]) -> None:
        """Work powers and factors out anew; `running` are the jobs at work and their ages in seconds.

        Those count as what they are expected to come to, or more if they have outlived that: the jobs that end first
        are the short ones, and a mean of them alone would be far too low on a wide machine.
        """
        self._learn_powers()
        whole = dict(self._stated)
        whole |= {of: replace(seen.sums[self._power(of)]) for of, seen in self._weighed.items()}
        self._fit(whole)
        for job, age in running:
            if job.of.by == "size" and self.scaled:
                seconds = max(self.seconds(job), age * (1.0 + OUTLIVED))
                whole.setdefault(job.of, Sum()).add(_at(POWERS[self._power(job.of)], job.of, job.stated), seconds)
        self._fit(whole)

    def seconds(self, job: ExpectedJob) -> float:
        """Return the seconds that a job is expected to take."""
        factor = self._factors.get(job.of)
        if factor is None:
            factor = self._factors[job.of] = self._drawn(Sum(), job.of)
        if job.of.by == "size":
            return factor * _at(POWERS[self._power(job.of)], job.of, job.stated)
        return factor * job.stated

    def _power(self, of: Class) -> int:
        return self._powers.get(of.kind, len(POWERS) - 1)

    def _learn_powers(self) -> None:
        """For each kind the power of weights that fits its jobs best, drawn towards 1.

        Jobs are compared within their folders, since folders differ for other reasons; those that are alone in one,
        with each other.
        """
        groups: dict[tuple[str, str], Slope] = {}
        for of, seen in self._weighed.items():
            folder = of.folder if seen.slope.jobs > 1 else ""
            groups.setdefault((of.kind, folder), Slope()).add(seen.slope)
        spreads = {kind: [SURE_POWER, SURE_POWER] for kind, _ in groups}
        for (kind, _), slope in groups.items():
            for number, more in enumerate(slope.spread):
                spreads[kind][number] += more
        for kind, (xx, xy) in spreads.items():
            self._powers[kind] = min(range(len(POWERS)), key=lambda n: abs(POWERS[n] - xy / xx))

    def _fit(self, sums: Mapping[Class, Sum]) -> None:
        self._kinds = {}
        for of, found in sums.items():
            if of.by == "size":  # each folder counts by how sure it is, since those to come are other folders
                sure = found.jobs / (found.jobs + TRUST)
                kind = self._kinds.setdefault(of.kind, Sum())
                kind.jobs += sure
                kind.seconds += sure * found.ratio
        self._factors = {of: self._drawn(found, of) for of, found in sums.items()}

    def _drawn(self, own: Sum, of: Class) -> float:
        """The class's own ratio, drawn towards what wider classes say."""
        wider, trust = (self._of_kind(of.kind), TRUST) if of.by == "size" else (1.0, TRUST_STATED)
        return (trust * wider + own.jobs * own.ratio) / (trust + own.jobs) if own.jobs else wider

    def _of_kind(self, kind: str) -> float:
        """Seconds for each unit of weight: of all kinds, and then of this one."""
        jobs = sum(k.jobs for k in self._kinds.values()) + (1.0 if self._supposed.jobs else 0.0)
        seconds = sum(k.seconds for k in self._kinds.values())
        seconds += self._supposed.ratio if self._supposed.jobs else 0.0
        everything = seconds / jobs if jobs else 1.0
        own = self._kinds.get(kind, Sum())
        return (everything + own.seconds) / (1.0 + own.jobs)
