"""How long jobs take in this build: what was stated of each beforehand, corrected by the jobs that have ended.

One rule for all sources: expected seconds = what was stated x factor, and the factor is what ended jobs took over what
was stated of them. Factors of few jobs are drawn towards those of wider classes. Pure sums. Unaware of clocks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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

TRUST, TRUST_STATED = 2.0, 0.5
"""Ended jobs that weigh as much as what the wider class tells, and as seconds that were stated."""

FADES = 0.98
"""What each further job leaves of those before it where seconds were stated: other work comes and goes on a machine."""

OUTLIVED, OUTLIVED_STATED = 0.6, 0.2
"""A job that has outlived its expectation is of the slow kind: it is taken to need this share of its age again; the
second where seconds were stated."""

DOUBTS: Mapping[StatedBy, float] = MappingProxyType(
    {"history": 0.15, "other flags": 0.4, "log": 0.2, "prior": 0.4, "twin": 0.2, "size": 0.5}
)
"""How far all jobs of a class together may be off before one of them has ended (standard deviation, logarithm)."""

_COMPILED = ("cxx", "c", "nvcc")
_C_OBJECTS = (".c.o", ".c.obj", ".c.lo", ".S.o", ".s.o", ".asm.o")


class Class(NamedTuple):
    """Jobs whose expectations are off together. Where seconds were stated these are all jobs of one source."""

    by: StatedBy
    kind: str = ""
    folder: str = ""


class Expected(NamedTuple):
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


def kind_of(tool: str, output: str) -> str:
    """The tool; C apart from C++, which it is five times faster than."""
    return "c" if tool == "cxx" and output.endswith(_C_OBJECTS) else tool


def weight(tool: str, output: str, size: int = 0) -> Stated:
    """What is stated of a job of which nothing is remembered. `size`: its source's bytes, 0 if not known."""
    kind = kind_of(tool, output)
    by_size = 1.0
    if size and kind in _COMPILED:
        by_size = (min(max(size, LEAST_SIZE), MOST_SIZE) / TYPICAL_SIZE) ** SIZE_POWER
    return Stated("size", WEIGHTS.get(kind, WEIGHTS["other"]) * by_size)


def class_of(stated: Stated, tool: str, output: str) -> Class:
    """Where a job belongs."""
    if stated.by != "size":
        return Class(stated.by)
    return Class("size", kind_of(tool, output), output.rpartition("/")[0])


class Durations:
    """What has been seen of this build's durations so far."""

    def __init__(self) -> None:
        self._ended: dict[Class, Sum] = {}
        self._supposed = Sum()
        self._factors: dict[Class, float] = {}
        self._kinds: dict[str, Sum] = {}

    @property
    def scaled(self) -> bool:
        """Whether anything tells how many seconds a weight stands for."""
        return self._supposed.jobs > 0.0 or any(of.by == "size" for of in self._ended)

    def add(self, stated: Stated, tool: str, output: str, seconds: float) -> None:
        """A job has ended well."""
        fades = 1.0 if stated.by == "size" else FADES
        self._ended.setdefault(class_of(stated, tool, output), Sum()).add(max(stated.amount, 1e-3), seconds, fades)

    def suppose(self, remembered: Sum) -> None:
        """What jobs of the plan would weigh, and the seconds that they are remembered to take."""
        self._supposed = remembered

    def ended(self, of: Class) -> float:
        """How many jobs of the class have ended."""
        found = self._ended.get(of)
        return found.jobs if found is not None else 0.0

    def doubt(self, of: Class) -> float:
        """How far the expectations of a class may be off together (standard deviation of the logarithm)."""
        jobs = self.ended(of)
        return DOUBTS[of.by] / math.sqrt(1.0 + (jobs if of.by == "size" else jobs / 4))

    def look(self, running: Iterable[tuple[Expected, float]]) -> None:
        """Work the factors out anew; `running` are the jobs at work and their ages in seconds.

        Those count as what they are expected to come to, or more if they have outlived that: the jobs that end first
        are the short ones, and a mean of them alone would be far too low on a wide machine.
        """
        self._fit(self._ended)
        whole = {of: Sum(s.jobs, s.stated, s.seconds) for of, s in self._ended.items()}
        for job, age in running:
            if job.of.by == "size" and self.scaled:
                seconds = max(job.stated * self.factor(job.of), age * (1.0 + OUTLIVED))
                whole.setdefault(job.of, Sum()).add(job.stated, seconds)
        self._fit(whole)

    def factor(self, of: Class) -> float:
        """From what is stated of the class's jobs to the seconds that they take."""
        found = self._factors.get(of)
        if found is None:
            found = self._factors[of] = self._drawn(Sum(), of)
        return found

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
        """The class's own ratio, drawn towards what wider classes tell."""
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
