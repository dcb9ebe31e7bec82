"""Predicts how long jobs take in this build: the prior statement about each, corrected by the jobs that have ended.

One rule for all sources: expected seconds = stated value x factor, where the factor is the time that ended jobs took
divided by what was stated for them. Factors based on few jobs are drawn towards those of wider classes: from a family
of numbered names to its folder, from that to its kind, and from that to all jobs. How much the size of a source says is
also learned from the build. What jobs took on other machines shows how they compare with each other; once the build has
only this machine, its own jobs show how long it takes for them. Pure sums. Knows no clock.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from stoker.model.lessons import Stated, StatedBy
from stoker.model.tool import C_OBJECTS

WEIGHTS: Mapping[str, float] = MappingProxyType(
    {"cxx": 1.0, "c": 0.2, "nvcc": 6.0, "link": 0.15, "archive": 0.1, "other": 0.15}
)
"""What a job takes relative to the compilation of a C++ file of TYPICAL_SIZE.

cxx and c: 0.59 and 0.1 CPU seconds were the medians over eight projects (bench/README.md). nvcc: PyTorch's CUDA files
take 67 s where its C++ files take 30, flash-attention's kernels 30 to 150 s. A link of those projects takes 0.04 to 0.1
of a C++ file, of PyTorch 0.4. If this is wrong, the first jobs of a kind that end correct it.
"""

TYPICAL_SIZE = 8_000
"""Bytes of a source that has exactly the weight of its language."""

SIZE_POWERS: Mapping[str, float] = MappingProxyType({"cxx": 0.5, "c": 0.7, "nvcc": 0.5})
"""How the weight grows with the size: over 2,500 files of 17 projects the slopes of the logarithms are 0.52 for C++,
whose headers weigh more, and 0.64 for C, without two projects whose sources are tables or include each other."""

USUAL_SECONDS = 0.6
"""Seconds that a weight of 1 stands for in most projects, within a factor of two. How long generators and scripts take
says no more than that about compilations: they take from milliseconds to minutes in any project."""

LEAST_SIZE, MOST_SIZE = 200, 2_000_000
"""Source sizes are clamped to this range."""

POWER, SURE_POWER = 1.0, 8.0
"""The initially assumed power of weights, and how firmly it is assumed: as firmly as ended jobs would show whose
logarithms of weights have this sum of squared deviations. At 0 all sources of a language are alike; sources that
include others (freetype has one of 700 bytes for each module) are heavier the smaller they are."""

MOST_POWER = 1.5
"""No power is taken to be higher. Above 1, a few sources are much heavier than the others: with powers up to 1, five
tables and 150 small files were expected to take 3.7 times too long after the first table."""

TRUST, TRUST_STATED = 2.0, 0.5
"""The factor of the wider class, and stated seconds, have the weight of this many ended jobs."""

TRUST_FAMILY = 1.0
"""A folder's factor has the weight of this many ended jobs of a family: numbered names are mostly one template, filled
in with different figures. Recorded builds have few of them: no value from 0.5 to 4 changes a figure by more than 1 %.
In the demo, whose kernels take forty times as long as the files next to them, six of ten middles were off by over 3,
now one."""

TRUST_PACE = 1.0
"""That this machine takes as long as others has the weight of this many jobs that it has compiled itself: the first one
says more than that."""

FADES = 0.98
"""If seconds were stated, each further job reduces the weight of earlier ones by this factor: other work comes and goes
on a machine."""

OUTLIVED, OUTLIVED_STATED = 0.4, 0.2
"""A job that has outlived its expectation is a slow one: it is expected to need this share of its age again; the second
value applies if seconds were stated."""

OUTLIVED_CPU = 0.1
"""The same share of the CPU seconds used, of a job whose own history says how many it needs: these vary far less than
seconds on the clock."""

BY_CPU = ("history", "other flags", "prior")
"""What states CPU seconds. How far such a job is, and how many seconds it takes for one of CPU now, shows while it
runs: the load of a machine, and how many jobs share its cores, change within one build."""

SEEN_CPU, MOST_PACE = 0.2, 100.0
"""A running job shows its pace once it has used so many CPU seconds; a job that waits for something else has none."""

NOTABLE_CPU = 2.0
"""Shorter jobs do not show how many CPU seconds jobs need: of those of tenths of a second, the last sample misses a
quarter."""

DOUBTS: Mapping[StatedBy, float] = MappingProxyType({"history": 0.15, "other flags": 0.4, "prior": 0.5})
"""How far all jobs of a build may need more or fewer CPU seconds than stated (standard deviation of the logarithm)."""

NOISE, NOISE_WEIGHT = 0.25, 4.0
"""The assumed deviation of single jobs from that, with the weight of so many jobs. A source that has grown says little
about the others: one that needed 2.4 times as much made the last jobs' remaining time 2.7 times too long."""

TRUST_NEAR, TRUST_FAR = 2.0, 60.0
"""The pace of jobs that have ended has at most the weight of so many seconds of running ones, for the rest of those;
and the weight of so many for jobs that have not begun, even if none has ended: eight that got a thirtieth of a core in
their first seconds on a busy machine say little about the next minutes: 53 were said for a rebuild that had done two
thirds after ten."""

LEAST_SECONDS, SEEN_SECONDS = 0.001, 0.01
"""No job is expected to take less than the first; one that took less than the second says nothing about the source's
size."""

SIZELESS, MOST_BY_SIZE = "any size", 2.0
"""The kind under which the factor for jobs without a source is kept: that of all jobs, but at most so many times what
it would be if sizes did not count. The links of 26 sources of 125 bytes, which include much, were expected to take 30 s
and took 0.3. No figure of the recorded builds changes with 2 or 3."""

UNLIKE, REACH = 0.25, 0.8
"""How far folders of a kind are assumed to lie apart (standard deviation of the logarithm), with the weight of one
folder; and how many such deviations the band reaches for a folder of which no job has ended. With 0.6 to 1 of them the
band held the truth at 86 to 91 % of the looks at first builds, and was 2.4 to 2.6 wide; without, at 80 %, and 2.1."""

_NUMBER = re.compile(r"\d+")

_COMPILED = ("cxx", "c", "nvcc")


class Class(NamedTuple):
    """Jobs whose expectations deviate together. If seconds were stated, these are all jobs of one source.

    `family` is what the names of numbered outputs have in common: `kernel_#.o` for kernel_07.o; empty for others.
    """

    by: StatedBy
    kind: str = ""
    folder: str = ""
    family: str = ""


class ExpectedJob(NamedTuple):
    """The expectation of a job in the plan: what was stated about it, and its class."""

    stated: float
    of: Class


class RunSoFar(NamedTuple):
    """For how many seconds a job has run, and the CPU seconds that it has used; 0: unknown."""

    age: float
    cpu: float = 0.0


class Took(NamedTuple):
    """Totals of several jobs: what was stated, and the seconds they took. `jobs` fade, so they may be fractions."""

    jobs: float = 0.0
    stated: float = 0.0
    seconds: float = 0.0

    def plus(self, stated: float, seconds: float, fades: float = 1.0) -> Took:
        """Return the totals with one more job; earlier ones count less."""
        return Took(self.jobs * fades + 1.0, self.stated * fades + stated, self.seconds * fades + seconds)

    def together(self, others: Took) -> Took:
        """Return the totals of these and other jobs."""
        return Took(self.jobs + others.jobs, self.stated + others.stated, self.seconds + others.seconds)

    def drawn(self, wider: float, trust: float) -> float:
        """Return the ratio of seconds taken to what was stated, drawn towards that of a wider class."""
        own = self.jobs * self.seconds / self.stated if self.jobs else 0.0
        return (trust * wider + own) / (trust + self.jobs)


class _Shown(NamedTuple):
    """What jobs without stated seconds have shown: their number, the sum of the ratios of seconds to weights, and the
    sum of seconds.

    A mean of ratios is moved less by a heavy job than the ratio of the sums; and the heaviest jobs are started first.
    """

    jobs: float = 0.0
    ratios: float = 0.0
    seconds: float = 0.0

    def plus(self, amount: float, seconds: float) -> _Shown:
        """Return the sums with one more job."""
        return _Shown(self.jobs + 1.0, self.ratios + seconds / amount, self.seconds + seconds)

    def together(self, others: _Shown) -> _Shown:
        """Return the sums of these and other jobs."""
        return _Shown(self.jobs + others.jobs, self.ratios + others.ratios, self.seconds + others.seconds)

    @property
    def ratio(self) -> float:
        """The mean seconds for a weight of 1."""
        return max(self.ratios / self.jobs, LEAST_SECONDS)

    def drawn(self, wider: float, trust: float) -> float:
        """Return the same, drawn towards that of a wider class. Ratios spread like products, so this is a geometric
        mean: one tiny source that took 50 times what it weighs moves an arithmetic one too far."""
        return math.exp((trust * math.log(wider) + self.jobs * math.log(self.ratio)) / (trust + self.jobs))


class _Needed(NamedTuple):
    """CPU seconds that notable jobs have used, compared with what was `stated`: totals, which fade, and the mean and
    the variance of the logarithms of the ratios."""

    jobs: float = 0.0
    stated: float = 0.0
    cpu: float = 0.0
    mean: float = 0.0
    variance: float = 0.0

    def faded(self) -> _Needed:
        """Return the same after another job."""
        return self._replace(jobs=self.jobs * FADES, stated=self.stated * FADES, cpu=self.cpu * FADES)

    def plus(self, stated: float, cpu: float) -> _Needed:
        """Return the totals with one more job."""
        jobs, step = self.jobs + 1.0, math.log(cpu / stated) - self.mean
        variance = (1.0 - 1.0 / jobs) * (self.variance + step * step / jobs)
        return _Needed(jobs, self.stated + stated, self.cpu + cpu, self.mean + step / jobs, variance)

    def ratio(self, by: StatedBy) -> float:
        """Return the CPU seconds that jobs need for one that was stated: drawn towards 1, the more the fewer jobs have
        shown it and the less these agree."""
        if not self.jobs:
            return 1.0
        noise = (NOISE_WEIGHT * NOISE**2 + self.jobs * self.variance) / (NOISE_WEIGHT + self.jobs)
        return math.exp(self.mean / (1.0 + noise / (self.jobs * DOUBTS[by] ** 2)))


class _Ended(NamedTuple):
    """A job that has ended: its weight, and the seconds that it took, here or on another machine."""

    weight: float
    seconds: float
    elsewhere: bool


def kind_of(tool: str, output: str) -> str:
    """Return the tool, with C separate from C++: C compiles five times faster."""
    return "c" if tool == "cxx" and output.endswith(C_OBJECTS) else tool


def weight(tool: str, output: str, size: int = 0) -> Stated:
    """Return what is stated of a job without history. `size`: its source's bytes, 0 if not known."""
    kind = kind_of(tool, output)
    by_size = 1.0
    if size and kind in SIZE_POWERS:
        by_size = (min(max(size, LEAST_SIZE), MOST_SIZE) / TYPICAL_SIZE) ** SIZE_POWERS[kind]
    return Stated("size", WEIGHTS.get(kind, WEIGHTS["other"]) * by_size)


def expected_job(stated: Stated, tool: str, output: str) -> ExpectedJob:
    """Return the expectation of a job, given what was stated about it."""
    amount = max(stated.amount, LEAST_SECONDS)
    if stated.by != "size":
        return ExpectedJob(amount, Class(stated.by))
    folder, _, name = output.rpartition("/")
    family = _NUMBER.sub("#", name)
    return ExpectedJob(amount, Class("size", kind_of(tool, output), folder, family if family != name else ""))


class Durations:
    """The durations observed in this build so far."""

    def __init__(self) -> None:
        self._stated: dict[Class, Took] = {}
        self._stated_here: dict[Class, Took] = {}
        """The same, without what other machines have compiled."""
        self._needed: dict[Class, _Needed] = {}
        """The CPU seconds that jobs used here."""
        self._near: dict[Class, float] = {}
        """The seconds that running jobs take for a CPU second."""
        self._needs: dict[Class, float] = {}
        """The CPU seconds that jobs need for one that was stated."""
        self._weighed: dict[Class, list[_Ended]] = {}
        """Ended jobs without stated seconds."""
        self._ended_kinds: set[str] = set()
        self._ended = 0
        """How many jobs without stated seconds have ended."""
        self._ended_folders: dict[Class, int] = {}
        """By folder, how many of those had when the last one in it did."""
        self._alone = False
        self._pace = 1.0
        self._supposed = Took()
        self._powers: dict[str, float] = {}
        self._factors: dict[Class, float] = {}
        self._kinds: dict[str, float] = {}
        self._apart: dict[str, float] = {}
        """How far the folder of a job may be from what folders of its kind have in common, as a factor."""

    @property
    def scaled(self) -> bool:
        """Whether it is known how many seconds a weight represents."""
        return self._supposed.jobs > 0.0 or bool(self._weighed)

    def add(self, job: ExpectedJob, seconds: float, *, elsewhere: bool = False, cpu: float = 0.0) -> None:
        """Add a job that has succeeded; `elsewhere`: on another machine. `cpu`: the CPU seconds it used, 0: unknown."""
        if job.of.by == "size":
            self._weighed.setdefault(job.of, []).append(_Ended(job.stated, seconds, elsewhere))
            self._ended_kinds.add(job.of.kind)
            self._ended += 1
            self._ended_folders[_folder(job.of)] = self._ended
            return
        for known in (self._stated,) if elsewhere else (self._stated, self._stated_here):
            known[job.of] = known.get(job.of, Took()).plus(job.stated, seconds, FADES)
        if job.of.by in BY_CPU:
            needed = self._needed.get(job.of, _Needed()).faded()
            notable = cpu > 0.0 and not elsewhere and max(cpu, job.stated) >= NOTABLE_CPU
            self._needed[job.of] = needed.plus(job.stated, cpu) if notable else needed

    def seen(self, job: ExpectedJob) -> bool:
        """Whether the build has shown what is stated of such jobs: seconds need no showing, and of weights a job of the
        kind has ended."""
        return job.of.by != "size" or job.of.kind in self._ended_kinds

    def unsure(self, job: ExpectedJob) -> float:
        """Return the factor by which a job may take longer or shorter than expected because no job of its folder has
        ended: 1 if one has, and while none of its kind has either."""
        if job.of.by != "size" or _folder(job.of) in self._ended_folders:
            return 1.0
        return self._apart.get(job.of.kind, 1.0)

    def suppose(self, remembered: Took) -> None:
        """Take over what jobs of the plan would weigh, and the seconds that the history says they take."""
        self._supposed = remembered

    def update(self, running: Iterable[tuple[ExpectedJob, RunSoFar]], *, alone: bool = False) -> None:
        """Recompute powers and factors; `running` are the running jobs. `alone`: no other machine compiles any more.

        Running jobs count with their expected duration, or more if they have outlived it: the jobs that end first are
        the short ones, and a mean of them alone would be far too low on a machine with many cores.
        """
        self._alone, self._pace = alone, 1.0
        self._learn_powers()
        self._pace = self._learn_pace() if alone else 1.0
        shown = {of: self._shown(of, jobs) for of, jobs in self._weighed.items()}
        self._fit(shown)
        self._learn_apart(shown)
        running = list(running)
        for job, run in running:
            if job.of.by == "size" and self.scaled:
                seconds = max(self.seconds(job), run.age * (1.0 + OUTLIVED))
                shown[job.of] = shown.get(job.of, _Shown()).plus(self._amount(job.of, job.stated), seconds)
        self._fit(shown)
        self._learn_from_cpu(running)

    def _learn_from_cpu(self, running: Sequence[tuple[ExpectedJob, RunSoFar]]) -> None:
        """Correct the factors of jobs that are stated in CPU seconds by the pace of those that run."""
        self._near, self._needs = {}, {}
        seen: dict[Class, RunSoFar] = {}
        for job, run in running:
            if job.of.by in BY_CPU and run.cpu >= SEEN_CPU and run.age <= MOST_PACE * run.cpu:
                before = seen.get(job.of, RunSoFar(0.0))
                seen[job.of] = RunSoFar(before.age + run.age, before.cpu + run.cpu)
        for of, run in seen.items():
            known = (self._stated_here if self._alone else self._stated).get(of, Took())
            needs = self._needs[of] = self._needed.get(of, _Needed()).ratio(of.by)
            ended, now = self._factors.get(of, 1.0) / needs, run.age / run.cpu
            shown = max(1.0, min(known.seconds, TRUST_NEAR))
            near, far = (ended * (now / ended) ** (run.age / (run.age + trust)) for trust in (shown, TRUST_FAR))
            self._near[of], self._factors[of] = near, needs * far

    def seconds(self, job: ExpectedJob) -> float:
        """Return the seconds that a job is expected to take."""
        factor = self._factors.get(job.of)
        if factor is None and job.of.family:
            factor = self._factors.get(_folder(job.of))
        if factor is None:
            factor = self._kinds.get(job.of.kind, self._every_kind(job.of.kind)) if job.of.by == "size" else 1.0
        return factor * self._amount(job.of, job.stated)

    def _every_kind(self, kind: str) -> float:
        """Return the factor of all jobs, as far as it says something about this kind."""
        return self._kinds.get("" if kind in _COMPILED else SIZELESS, 1.0)

    def remainder(self, job: ExpectedJob, run: RunSoFar) -> float:
        """Return the seconds that a job still needs after what it has run."""
        near = self._near.get(job.of)
        if near is not None and run.cpu >= SEEN_CPU:
            outlived = OUTLIVED_CPU if job.of.by == "history" else OUTLIVED_STATED
            return near * max(self._needs[job.of] * job.stated - run.cpu, outlived * run.cpu)
        outlived = OUTLIVED if job.of.by == "size" else OUTLIVED_STATED
        return max(self.seconds(job) - run.age, run.age * outlived)

    def _took(self, of: Class, jobs: Sequence[_Ended]) -> Took:
        """Return the totals of these jobs, with the seconds that they take where they are compiled now."""
        seconds = sum(job.seconds * (self._pace if job.elsewhere else 1.0) for job in jobs)
        return Took(len(jobs), sum(self._amount(of, job.weight) for job in jobs), seconds)

    def _shown(self, of: Class, jobs: Sequence[_Ended]) -> _Shown:
        """Return what these jobs have shown, with the seconds that they take where they are compiled now."""
        shown = _Shown()
        for job in jobs:
            shown = shown.plus(self._amount(of, job.weight), job.seconds * (self._pace if job.elsewhere else 1.0))
        return shown

    def _learn_pace(self) -> float:
        """Return the seconds that this machine takes for what takes a second elsewhere, by jobs of the same kinds."""
        here, there = dict[str, Took](), dict[str, Took]()
        for of, jobs in self._weighed.items():
            for side, some in ((here, [j for j in jobs if not j.elsewhere]), (there, [j for j in jobs if j.elsewhere])):
                if some:
                    side[of.kind] = side.get(of.kind, Took()).together(self._took(of, some))
        kinds = here.keys() & there.keys()
        jobs_here = sum(here[kind].jobs for kind in kinds)
        if not jobs_here:
            return 1.0
        as_elsewhere = sum(here[kind].stated * there[kind].seconds / there[kind].stated for kind in kinds)
        ratio = sum(here[kind].seconds for kind in kinds) / max(as_elsewhere, LEAST_SECONDS)
        return math.pow(max(ratio, LEAST_SECONDS), jobs_here / (jobs_here + TRUST_PACE))

    def _amount(self, of: Class, stated: float) -> float:
        """Return the stated value; of a weight, the size's contribution is raised to the learned power."""
        power = self._powers.get(of.kind, POWER) if of.by == "size" else 1.0
        return stated if power == 1.0 else _plain(of) * (stated / _plain(of)) ** power

    def _learn_powers(self) -> None:
        """Learn for each kind the slope of the logarithms of seconds over those of weights, drawn towards POWER.

        Jobs are compared within their folders, because folders differ for other reasons; jobs that are alone in their
        folder are compared with each other.
        """
        folders: dict[Class, list[tuple[float, float]]] = {}
        for of, jobs in self._weighed.items():
            logs = [(math.log(j.weight / _plain(of)), math.log(max(j.seconds, SEEN_SECONDS))) for j in jobs]
            folders.setdefault(_folder(of), []).extend(logs)
        groups: dict[tuple[str, str], list[tuple[float, float]]] = {}
        for of, logs in folders.items():
            groups.setdefault((of.kind, of.folder if len(logs) > 1 else ""), []).extend(logs)
        sums: dict[str, tuple[float, float]] = {}
        for (kind, _), logs in groups.items():
            x0, y0 = (math.fsum(axis) / len(axis) for axis in zip(*logs, strict=True))
            xx, xy = sums.get(kind, (SURE_POWER, SURE_POWER * POWER))
            sums[kind] = xx + sum((x - x0) ** 2 for x, _ in logs), xy + sum((x - x0) * (y - y0) for x, y in logs)
        self._powers = {kind: min(MOST_POWER, max(0.0, xy / xx)) for kind, (xx, xy) in sums.items()}

    def _learn_apart(self, weighed: Mapping[Class, _Shown]) -> None:
        """Learn for each kind how far its folders lie apart, each counting by its certainty."""
        kinds: dict[str, list[tuple[float, float]]] = {}
        for of, shown in _by_folder(weighed).items():
            kinds.setdefault(of.kind, []).append((_certainty(shown), math.log(shown.ratio)))
        for kind, logs in kinds.items():
            mean = _mean(logs)
            squares = UNLIKE**2 + sum(sure * (log - mean) ** 2 for sure, log in logs)
            self._apart[kind] = math.exp(REACH * math.sqrt(squares / (1.0 + sum(sure for sure, _ in logs))))

    def _fit(self, weighed: Mapping[Class, _Shown]) -> None:
        """Compute the factors of classes; of kinds, in which each folder counts by its certainty, because jobs to come
        are in other folders; and, under the kind "", of all jobs. Under SIZELESS is that for kinds without sources."""
        folders = _by_folder(weighed)
        self._fit_kinds(folders)
        factors = {of: shown.drawn(self._kinds[of.kind], TRUST) for of, shown in folders.items()}
        families = {of: shown.drawn(factors[_folder(of)], TRUST_FAMILY) for of, shown in weighed.items() if of.family}
        known = self._stated_here if self._alone else self._stated
        stated = {of: self._as_needed(of, took).drawn(1.0, TRUST_STATED) for of, took in known.items()}
        self._factors = factors | families | stated

    def _fit_kinds(self, folders: Mapping[Class, _Shown]) -> None:
        """Compute the factors of kinds, from those of their folders and from what the history says.

        Folders whose last jobs ended late count more: libraries come after those that they include, so what is left is
        more like them.
        """
        kinds: dict[str, list[tuple[float, float]]] = {}
        plain: list[tuple[float, float]] = []
        for of, shown in folders.items():
            sure = _certainty(shown) * self._recency(of)
            kinds.setdefault(of.kind, []).append((sure, shown.ratio))
            plain.append((sure, shown.seconds / (shown.jobs * _plain(of))))
        remembered = [(1.0, self._supposed.seconds / self._supposed.stated)] if self._supposed.jobs else []
        every = [pair for pairs in kinds.values() for pair in pairs]
        whole = _mean([*every, *remembered])
        compiled = whole if remembered or not every or self._seen_compiling() else math.sqrt(whole * USUAL_SECONDS)
        self._kinds = {"": compiled, SIZELESS: min(whole, MOST_BY_SIZE * _mean([*plain, *remembered]))}
        for kind, pairs in kinds.items():
            self._kinds[kind] = _mean([(1.0, self._every_kind(kind)), *pairs])

    def _recency(self, folder: Class) -> float:
        """Return how late in the build the last job of a folder has ended, by the jobs until then: 0 to 1; 1 while its
        first ones run."""
        return self._ended_folders.get(folder, self._ended) / self._ended if self._ended else 1.0

    def _seen_compiling(self) -> bool:
        """Whether a compilation without stated seconds has ended."""
        return not self._ended_kinds.isdisjoint(_COMPILED)

    def _as_needed(self, of: Class, took: Took) -> Took:
        """Return the totals as if what jobs need in common had been stated: what one of them needed beyond that says
        nothing about the others, and its seconds say how long a CPU second takes."""
        needed = self._needed.get(of)
        if needed is None or not needed.jobs:
            return took
        return took._replace(stated=took.stated - needed.stated + needed.cpu / needed.ratio(of.by))


def _by_folder(weighed: Mapping[Class, _Shown]) -> dict[Class, _Shown]:
    """Return what the jobs of each folder have shown, by kind."""
    folders: dict[Class, _Shown] = {}
    for of, shown in weighed.items():
        folders[_folder(of)] = folders.get(_folder(of), _Shown()).together(shown)
    return folders


def _certainty(shown: _Shown) -> float:
    """Return how much a folder counts among others, by the number of its jobs: 0 to 1."""
    return shown.jobs / (shown.jobs + TRUST)


def _mean(factors: Sequence[tuple[float, float]]) -> float:
    """Return the mean of factors, each with its certainty before it; 1 if there is none."""
    return sum(sure * factor for sure, factor in factors) / sum(sure for sure, _ in factors) if factors else 1.0


def _folder(of: Class) -> Class:
    """Return the class of all jobs of the same kind in the folder."""
    return of._replace(family="") if of.family else of


def _plain(of: Class) -> float:
    """Return the weight of the class's kind, regardless of the source's size."""
    return WEIGHTS.get(of.kind, WEIGHTS["other"])
