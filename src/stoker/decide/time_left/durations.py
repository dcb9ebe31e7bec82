"""How long jobs take in this build: what was stated of each beforehand, corrected by the jobs that have ended.

One rule for all sources: expected seconds = what was stated x factor, and the factor is what ended jobs took over what
was stated of them. Factors of few jobs are drawn towards those of wider classes: of a family of numbered names to its
folder's, of that to its kind's, and of that to all jobs'. How much the size of a source says is learnt from the build,
too. Pure sums. Unaware of clocks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from statistics import fmean
from types import MappingProxyType
from typing import NamedTuple

from stoker.model.lessons import Stated, StatedBy

WEIGHTS: Mapping[str, float] = MappingProxyType(
    {"cxx": 1.0, "c": 0.2, "nvcc": 6.0, "link": 0.15, "archive": 0.1, "other": 0.15}
)
"""What a job takes beside the compilation of a C++ file of TYPICAL_SIZE.

cxx and c: 0.59 and 0.1 CPU seconds were the medians over eight projects (bench/README.md). nvcc: PyTorch's CUDA files
take 67 s where its C++ files take 30, flash-attention's kernels 30 to 150 s. A link of those projects takes 0.04 to 0.1
of a C++ file, of PyTorch 0.4. Where this is wrong, the first jobs of a kind that end correct it.
"""

TYPICAL_SIZE, SIZE_POWER = 8_000, 0.7
"""Bytes of a source with the weight of its language, and how the weight grows with the size: over 900 files of eight
projects the logarithms correlate by 0.7 to 0.8, with slopes from 0.35 (C++, whose headers weigh more) to 0.84 (C)."""

LEAST_SIZE, MOST_SIZE = 200, 2_000_000
"""Sources are taken to be no smaller and no larger."""

POWER, SURE_POWER = 1.0, 8.0
"""The power of weights that is believed at first, and how firmly: like what ended jobs say whose logarithms of weights
differ by so much, in squares and together. At 0 all sources of a language are alike; sources that include others
(freetype has one of 700 bytes for each module) are heavier the smaller they are."""

TRUST, TRUST_STATED = 2.0, 0.5
"""Ended jobs that weigh as much as what the wider class says, and as seconds that were stated."""

TRUST_FAMILY = 1.0
"""Ended jobs of a family that weigh as much as what its folder says: numbered names are mostly one template, filled in
with other figures. Recorded builds have few of them: nothing from 0.5 to 4 changes a figure by more than 1 %. In the
demo, whose kernels take forty times what the files beside them do, six of ten middles were off by over 3, now one."""

FADES = 0.98
"""What each further job leaves of those before it where seconds were stated: other work comes and goes on a machine."""

OUTLIVED, OUTLIVED_STATED = 0.4, 0.2
"""A job that has outlived its expectation is of the slow kind: it is taken to need this share of its age again; the
second where seconds were stated."""

LEAST_SECONDS, SEEN_SECONDS = 0.001, 0.01
"""No job is taken to take less; what took less than the second says nothing about the source's size."""

_NUMBER = re.compile(r"\d+")

_COMPILED = ("cxx", "c", "nvcc")
_C_OBJECTS = (".c.o", ".c.obj", ".c.lo", ".S.o", ".s.o", ".asm.o")


class Class(NamedTuple):
    """Jobs whose expectations are off together. Where seconds were stated these are all jobs of one source.

    `family` is what the names of numbered outputs have in common: `kernel_#.o` of kernel_07.o; empty for others.
    """

    by: StatedBy
    kind: str = ""
    folder: str = ""
    family: str = ""


class ExpectedJob(NamedTuple):
    """A job of a plan as it is expected: what was stated of it, and its class."""

    stated: float
    of: Class


class Took(NamedTuple):
    """Jobs together: what was stated of them, and the seconds that they took. `jobs` fade, so they may be fractions."""

    jobs: float = 0.0
    stated: float = 0.0
    seconds: float = 0.0

    def plus(self, stated: float, seconds: float, fades: float = 1.0) -> Took:
        """Return them with a further one; those before it count less."""
        return Took(self.jobs * fades + 1.0, self.stated * fades + stated, self.seconds * fades + seconds)

    def together(self, others: Took) -> Took:
        """Return them and others as one."""
        return Took(self.jobs + others.jobs, self.stated + others.stated, self.seconds + others.seconds)

    def drawn(self, wider: float, trust: float) -> float:
        """Return what they took over what was stated, drawn towards what a wider class says."""
        own = self.jobs * self.seconds / self.stated if self.jobs else 0.0
        return (trust * wider + own) / (trust + self.jobs)


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


def expected_job(stated: Stated, tool: str, output: str) -> ExpectedJob:
    """Return what is expected of a job by what was stated of it."""
    amount = max(stated.amount, LEAST_SECONDS)
    if stated.by != "size":
        return ExpectedJob(amount, Class(stated.by))
    folder, _, name = output.rpartition("/")
    family = _NUMBER.sub("#", name)
    return ExpectedJob(amount, Class("size", kind_of(tool, output), folder, family if family != name else ""))


class Durations:
    """What has been seen of this build's durations so far."""

    def __init__(self) -> None:
        self._stated: dict[Class, Took] = {}
        self._weighed: dict[Class, list[tuple[float, float]]] = {}
        """Weights of ended jobs of which no seconds were stated, and the seconds that they took."""
        self._supposed = Took()
        self._powers: dict[str, float] = {}
        self._factors: dict[Class, float] = {}
        self._kinds: dict[str, float] = {}

    @property
    def scaled(self) -> bool:
        """Whether anything says how many seconds a weight stands for."""
        return self._supposed.jobs > 0.0 or bool(self._weighed)

    def add(self, job: ExpectedJob, seconds: float) -> None:
        """Count in a job that has ended well."""
        if job.of.by == "size":
            self._weighed.setdefault(job.of, []).append((job.stated, seconds))
        else:
            self._stated[job.of] = self._stated.get(job.of, Took()).plus(job.stated, seconds, FADES)

    def suppose(self, remembered: Took) -> None:
        """Take over what jobs of the plan would weigh, and the seconds that they are remembered to take."""
        self._supposed = remembered

    def update(self, running: Iterable[tuple[ExpectedJob, float]]) -> None:
        """Work powers and factors out anew; `running` are the jobs at work and their ages in seconds.

        Those count as what they are expected to come to, or more if they have outlived that: the jobs that end first
        are the short ones, and a mean of them alone would be far too low on a wide machine.
        """
        self._learn_powers()
        took = {
            of: Took(len(jobs), sum(self._amount(of, stated) for stated, _ in jobs), sum(s for _, s in jobs))
            for of, jobs in self._weighed.items()
        }
        self._fit(took)
        for job, age in running:
            if job.of.by == "size" and self.scaled:
                seconds = max(self.seconds(job), age * (1.0 + OUTLIVED))
                took[job.of] = took.get(job.of, Took()).plus(self._amount(job.of, job.stated), seconds)
        self._fit(took)

    def seconds(self, job: ExpectedJob) -> float:
        """Return the seconds that a job is expected to take."""
        factor = self._factors.get(job.of)
        if factor is None and job.of.family:
            factor = self._factors.get(_folder(job.of))
        if factor is None:
            factor = self._kinds.get(job.of.kind, self._kinds.get("", 1.0)) if job.of.by == "size" else 1.0
        return factor * self._amount(job.of, job.stated)

    def remainder(self, job: ExpectedJob, age: float) -> float:
        """Return the seconds that a job still needs which has run for `age` seconds."""
        return max(self.seconds(job) - age, age * (OUTLIVED if job.of.by == "size" else OUTLIVED_STATED))

    def _amount(self, of: Class, stated: float) -> float:
        """What was stated; of a weight, only a power of what the size adds to it counts."""
        power = self._powers.get(of.kind, POWER) if of.by == "size" else 1.0
        return stated if power == 1.0 else _plain(of) * (stated / _plain(of)) ** power

    def _learn_powers(self) -> None:
        """For each kind the slope of logarithms of seconds over those of weights, drawn towards POWER.

        Jobs are compared within their folders, since folders differ for other reasons; those that are alone in one,
        with each other.
        """
        folders: dict[Class, list[tuple[float, float]]] = {}
        for of, jobs in self._weighed.items():
            logs = [(math.log(stated / _plain(of)), math.log(max(s, SEEN_SECONDS))) for stated, s in jobs]
            folders.setdefault(_folder(of), []).extend(logs)
        groups: dict[tuple[str, str], list[tuple[float, float]]] = {}
        for of, logs in folders.items():
            groups.setdefault((of.kind, of.folder if len(logs) > 1 else ""), []).extend(logs)
        sums: dict[str, tuple[float, float]] = {}
        for (kind, _), logs in groups.items():
            (x0, y0), (xx, xy) = map(fmean, zip(*logs, strict=True)), sums.get(kind, (SURE_POWER, SURE_POWER * POWER))
            sums[kind] = xx + sum((x - x0) ** 2 for x, _ in logs), xy + sum((x - x0) * (y - y0) for x, y in logs)
        self._powers = {kind: min(1.0, max(0.0, xy / xx)) for kind, (xx, xy) in sums.items()}

    def _fit(self, weighed: Mapping[Class, Took]) -> None:
        """The factors of classes; of kinds, of which each folder counts by how sure it is, since those to come are
        other folders; and, by the kind "", of all of them."""
        folders: dict[Class, Took] = {}
        for of, took in weighed.items():
            folders[_folder(of)] = folders.get(_folder(of), Took()).together(took)
        kinds: dict[str, list[tuple[float, float]]] = {}
        for of, took in folders.items():
            kinds.setdefault(of.kind, []).append((took.jobs / (took.jobs + TRUST), took.seconds / took.stated))
        every = [pair for pairs in kinds.values() for pair in pairs]
        if self._supposed.jobs:
            every.append((1.0, self._supposed.seconds / self._supposed.stated))
        whole = sum(sure * factor for sure, factor in every) / sum(sure for sure, _ in every) if every else 1.0
        self._kinds = {"": whole}
        for kind, pairs in kinds.items():
            self._kinds[kind] = (whole + sum(sure * f for sure, f in pairs)) / (1.0 + sum(sure for sure, _ in pairs))
        factors = {of: took.drawn(self._kinds[of.kind], TRUST) for of, took in folders.items()}
        families = {of: took.drawn(factors[_folder(of)], TRUST_FAMILY) for of, took in weighed.items() if of.family}
        stated = {of: took.drawn(1.0, TRUST_STATED) for of, took in self._stated.items()}
        self._factors = factors | families | stated


def _folder(of: Class) -> Class:
    """The class of all jobs of the same kind in the folder."""
    return of._replace(family="") if of.family else of


def _plain(of: Class) -> float:
    """The weight of the class's kind, whatever the size of the source."""
    return WEIGHTS.get(of.kind, WEIGHTS["other"])
