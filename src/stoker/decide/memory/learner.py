"""Predicts a job's curve: from its own history, otherwise from its class by priors and this build's finished jobs.

Pure: keeps sums, opens no file. Knows neither where history is stored nor what is decided.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeVar

from stoker.decide.memory.belief import COMMON, Belief, Seen, believed
from stoker.decide.memory.command_traits import PLAIN, Traits
from stoker.decide.memory.correction import Correction
from stoker.decide.memory.curves import Curve, Point, flat
from stoker.decide.memory.output_names import stem
from stoker.decide.memory.prior_classes import Prior, Priors, class_of
from stoker.model.lessons import Lesson, Remembered, Stated
from stoker.model.tool import COMPILERS

Recall = Callable[[str, str, str], Remembered | None]
"""Returns what is remembered of (output, tool, flags); None if nothing is."""

SAME_RUN, SAME_TIME = 0.2, 0.3
"""Spreads of size and time after one earlier run: sources change, and sampling once a second misses peaks."""

LEAST_RUN, LEAST_TIME = 0.05, 0.1
"""Minimum spreads, however often a job ran alike: samples are a second apart, on machines that also do other things."""

OTHER_RUN, OTHER_TIME = 0.4, 0.6
"""Minimum spreads if the same output was made with other flags: -O0 or -O3, with or without -g."""

MANY_RUNS = 5
"""More runs than this narrow the spread no further: the means reach no further back (docs/prediction.md)."""

Known = Literal["same", "other", "prior"]
"""Where the expectation of a job came from: its history with these flags, with other flags, or its class."""

SIZE_DOUBTS: Mapping[Known, float] = MappingProxyType({"same": 0.15, "other": 0.4, "prior": 0.2})
TIME_DOUBTS: Mapping[Known, float] = MappingProxyType({"same": 0.15, "other": 0.4, "prior": 0.5})
"""How far a whole build may deviate from expectations: remembered with these flags, with others, or measured for
priors. Another machine changes times; a compiler's memory depends on its version alone: sm_90 instead of sm_80 made
9 %."""

BIAS_SHARE = 0.5
"""Share of the correction's own uncertainty that is added to every remembered size until this build has shown its
ratio."""

NOTABLE_SIZE, NOTABLE_SECONDS = 64 * 2**20, 2.0
"""Smaller or shorter jobs say nothing about another compiler or machine: sampling once a second hardly sees them."""

MEASURED, MEASURED_TIME = 0.25, 0.3
"""Up to these spreads a class's figures come from measurement: only the deviations of jobs in such classes say
something about the build. A guessed class is more likely to be wrong itself."""

STATES_TIME = 0.9
"""Below this spread of time a class says how long its jobs take; classes defined by a tool alone have 1."""

HIT_SECONDS, HIT_SHARE = 2.0, 0.2
"""With a compiler cache, a job below these CPU seconds and this share of its expected time was a hit. If only its class
is known, whose jobs may take far longer, it must also have stayed below that share of the memory. A job with its own
history needs no such test, and ccache's preprocessing of a small source may hold as much as compiling it."""

MAX_CLASSES = 4096
"""Classes kept per build; the oldest is dropped. PyTorch has about 1,500 beginnings of names."""

MAX_ANSWERS = 1024
"""Predictions cached, of 3 KB each: about as many as jobs wait on deck on a large machine."""

MAX_SIZE, MAX_SECONDS = 2.0**50, 1e8
LEAST_SIZE, LEAST_SECONDS = 4096.0, 0.01

_Key = TypeVar("_Key")


class _Kind(NamedTuple):
    """A job's prior, and its classes in this build from the widest to the narrowest."""

    prior: Prior
    whole: tuple[str, int, int]
    flags: tuple[str, str]
    family: tuple[str, int, int, str]


class _Off(NamedTuple):
    """How far this build deviates from expectations in size and in time."""

    size: Correction
    time: Correction

    def stamp(self) -> tuple[float, ...]:
        """Return a value that is equal for equal corrections."""
        size, time = self
        return size.shift, size.left, size.scatter, time.shift, time.scatter


class Learner:
    """Expectations by output, otherwise by class. Changes only when a job finishes.

    `recall` returns what earlier builds remember. A class is a prior's class, for the same number of GPU
    architectures, and with or without other programs beside the compiler; within it, jobs with the same flags; within
    it, jobs whose names begin alike.
    """

    def __init__(self, priors: Priors, recall: Recall | None = None) -> None:
        self._priors = priors
        self._recall = recall or _nothing
        self._classes: dict[tuple[str, int, int], Seen] = {}
        self._flags: dict[tuple[str, str], Seen] = {}
        self._families: dict[tuple[str, int, int, str], Seen] = {}
        self._off: dict[tuple[str, Known], _Off] = {}
        self._answers: dict[tuple[object, ...], tuple[object, Curve]] = {}
        self._kinds: dict[tuple[str, str, Traits], _Kind] = {}
        self.version = 0
        """Increases whenever a prediction may have changed."""

    def expect(self, output: str, tool: str, traits: Traits = PLAIN) -> Curve:
        """Return the expected curve: the job's own, corrected by this build's ratio, otherwise its class's.

        Returns the same object until something changes for this job.
        """
        memory = self._recall(output, tool, traits.flags)
        if memory is not None:
            off = self._off_by(tool, "same" if memory.same_flags else "other")
            key, stamp = (output, tool, traits.flags), (memory, *off.stamp())
            return self._same(key, stamp) or self._answer(key, stamp, _of_memory(memory, off))
        return self._of_class(self._kind(output, tool, traits), tool)

    def stated(self, output: str, tool: str, traits: Traits = PLAIN) -> Stated | None:
        """Return the remembered CPU seconds, or those measured for the job's class; None if neither was measured."""
        memory = self._recall(output, tool, traits.flags)
        if memory is not None:
            return Stated("history" if memory.same_flags else "other flags", math.exp(memory.log_life))
        kind = self._kind(output, tool, traits)
        start = _start(kind)
        return Stated("prior", math.exp(start.time)) if kind.prior.time_spread <= STATES_TIME else None

    def observe(
        self, output: str, tool: str, points: Iterable[Point], traits: Traits = PLAIN, *, bound: bool = False
    ) -> Lesson | None:
        """Learn from a successful job with this curve, or with this `bound` of it. None if it taught nothing: no
        figures, or a cache hit."""
        lesson = self._lesson(output, tool, points, traits)
        if lesson is not None and bound:
            lesson = replace(lesson, bound=True)
        if lesson is not None:
            self.learn(output, tool, lesson)
        return lesson

    def learn(self, output: str, tool: str, lesson: Lesson) -> None:
        """Learn from a job, now or from the journal: the same lessons lead to the same knowledge."""
        prior, curve = self._priors.named(lesson.prior), _curve_of(lesson)
        if prior is None or curve is None:
            return
        kind = _kind_of(prior, output, lesson.flags, lesson.targets, lesson.lanes)
        news = self._correct(tool, "prior", curve, _start(kind), prior.name)
        if lesson.known and not lesson.bound:
            remembered = Belief(curve, lesson.log_peak, lesson.log_seconds, spread=0.0, time_spread=0.0)
            news |= self._correct(tool, lesson.known, curve, remembered)
        family = kind.family[-1]
        news |= _entry(self._classes, kind.whole).add(curve, family)
        news |= _entry(self._flags, kind.flags).add(curve, family)
        news |= _entry(self._families, kind.family).add(curve, family)
        if news:
            self.version += 1

    def _lesson(self, output: str, tool: str, points: Iterable[Point], traits: Traits) -> Lesson | None:
        curve = _sane(points)
        if curve is None:
            return None
        memory = self._recall(output, tool, traits.flags)
        kind = self._kind(output, tool, traits)
        if traits.cached and self._was_hit(curve, memory, kind, tool):
            return None
        lesson = Lesson(
            kind.prior.name,
            tuple(round(p.age, 3) for p in curve.points),
            tuple(round(p.size) for p in curve.points),
            tuple(p.phase for p in curve.points),
            traits.flags,
            traits.targets,
            traits.lanes,
        )
        if memory is None or memory.is_bound:
            return lesson
        known: Literal["same", "other"] = "same" if memory.same_flags else "other"
        return replace(lesson, known=known, log_peak=memory.log_need, log_seconds=memory.log_life)

    def set_priors(self, priors: Priors) -> bool:
        """Set the classes from now on; return whether they differ. What this build has learned stays, except for
        classes whose members changed, and for how far jobs deviated from their priors."""
        if priors is self._priors:
            return False
        old, new = ({p.name: (p.tool, p.output, p.command) for p in known.classes} for known in (self._priors, priors))
        moved = {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
        self._priors = priors
        self._classes = {key: seen for key, seen in self._classes.items() if class_of(key[0]) not in moved}
        self._flags = {key: seen for key, seen in self._flags.items() if class_of(key[0]) not in moved}
        self._families = {key: seen for key, seen in self._families.items() if class_of(key[0]) not in moved}
        self._off = {key: off for key, off in self._off.items() if key[1] != "prior"}
        self._answers.clear()
        self._kinds.clear()
        self.version += 1
        return True

    def _kind(self, output: str, tool: str, traits: Traits) -> _Kind:
        """Return the job's classes; kept, since matching patterns takes longer than everything else about a job."""
        key = (output, tool, traits)
        kind = self._kinds.get(key)
        if kind is None:
            if len(self._kinds) >= MAX_ANSWERS:
                self._kinds.clear()
            prior = self._priors.of(output, tool, traits.command, mixed=traits.mixed)
            kind = self._kinds[key] = _kind_of(prior, output, traits.flags, traits.targets, traits.lanes)
        return kind

    def _of_class(self, kind: _Kind, tool: str) -> Curve:
        """Combine everything known about the class."""
        whole, flags = self._classes.get(kind.whole), self._flags.get(kind.flags)
        family, off = self._families.get(kind.family), self._off_by(tool, "prior")
        key = (tool, kind.whole, kind.flags if flags else None, kind.family if family else None)
        stamp = (*(seen.epoch for seen in (whole, flags, family) if seen), *off.stamp())
        return self._same(key, stamp) or self._answer(key, stamp, _of_seen(kind, (whole, flags, family), off))

    def _same(self, key: tuple[object, ...], stamp: object) -> Curve | None:
        """Return the cached prediction if nothing has changed since."""
        stamp_then, curve = self._answers.get(key, (None, None))
        return curve if stamp_then == stamp else None

    def _answer(self, key: tuple[object, ...], stamp: object, curve: Curve) -> Curve:
        if len(self._answers) >= MAX_ANSWERS:
            self._answers.clear()
        self._answers[key] = stamp, curve
        return curve

    def _off_by(self, tool: str, known: Known) -> _Off:
        off = self._off.get((tool, known))
        if off is None:
            off = self._off[tool, known] = _Off(Correction(SIZE_DOUBTS[known]), Correction(TIME_DOUBTS[known]))
        return off

    def _correct(self, tool: str, known: Known, curve: Curve, expected: Belief, kind: str = "") -> bool:
        """Add a job to the corrections; return whether they have changed by a step. `kind` is the class of a prior.

        Only jobs with a definite expectation count: how far a class as wide as "any C++ file" is off, that class learns
        by itself.
        """
        off, news = self._off_by(tool, known), False
        if max(curve.duration, math.exp(expected.time)) < NOTABLE_SECONDS:
            return False
        if expected.spread <= MEASURED and max(curve.peak, math.exp(expected.peak)) >= NOTABLE_SIZE:
            news |= off.size.add(math.log(curve.peak), expected.peak, kind, _own(expected.spread))
        if expected.time_spread <= MEASURED_TIME:
            news |= off.time.add(math.log(curve.duration), expected.time, kind, _own(expected.time_spread))
        return news

    def _was_hit(self, curve: Curve, memory: Remembered | None, kind: _Kind, tool: str) -> bool:
        if curve.duration >= HIT_SECONDS:
            return False
        if memory is not None:
            return curve.duration < HIT_SHARE * math.exp(memory.log_seconds)
        expected = self._of_class(kind, tool)
        return curve.duration < HIT_SHARE * expected.duration and curve.peak < HIT_SHARE * expected.peak


def _own(spread: float) -> float:
    """Return how far a class as a whole may deviate from its figures, given the spread of its members."""
    return math.sqrt(COMMON) * spread


def _of_memory(memory: Remembered, off: _Off) -> Curve:
    """Return the curve of a job's own history, corrected by what this build has shown."""
    # A bound has its margin already.
    own = LEAST_RUN if memory.is_bound else run_spread(memory.runs, memory.peak_variance, SAME_RUN, LEAST_RUN)
    spread = max(own, off.size.scatter)
    time_spread = max(run_spread(memory.runs, memory.seconds_variance, SAME_TIME, LEAST_TIME), off.time.scatter)
    if not memory.same_flags:
        spread, time_spread = max(spread, OTHER_RUN), max(time_spread, OTHER_TIME)
    growth = math.exp(memory.log_need + off.size.shift) / max(point[1] for point in memory.points)
    pace = math.exp(memory.log_life + off.time.shift) / memory.points[-1][0]
    points = tuple(Point(age * pace, held * growth, phase) for age, held, phase in memory.points)
    source = "history" if memory.same_flags else "history, other flags"
    return Curve(points, spread, time_spread, BIAS_SHARE * off.size.left, source, bound=memory.is_bound)


def _of_seen(kind: _Kind, classes: tuple[Seen | None, Seen | None, Seen | None], off: _Off) -> Curve:
    """Return the prior's curve, corrected and then drawn towards the finished jobs of each class."""
    start = _start(kind)
    shifted = replace(start, peak=start.peak + off.size.shift, time=start.time + off.time.shift)
    family = classes[-1]
    curve = shifted.after_all(*classes).curve(kind.prior.spread)
    # Compilers take memory as they work: g++ 105 to 130 MiB per CPU second, nvcc's cicc up to 200 (measured). A linker
    # may map all that it needs within a moment.
    gradual = kind.prior.tool in COMPILERS and not kind.prior.is_mixed
    bound = family is not None and not family.measured
    return replace(curve, alike=family.count if family is not None else 0, gradual=gradual, bound=bound)


def run_spread(runs: int, variance: float, first: float, least: float) -> float:
    """Return the spread after earlier runs: `first` after one, then as measured between runs."""
    between = min(max(0, runs - 1), MANY_RUNS)
    return max(least, math.sqrt((first**2 + between * variance) / (1 + between)))


def _kind_of(prior: Prior, output: str, flags: str, targets: int, lanes: int) -> _Kind:
    whole = (prior.name, targets, lanes)
    return _Kind(prior, whole, (prior.name, flags), (*whole, stem(output)))


def _start(kind: _Kind) -> Belief:
    """Return the prior for the number of GPU architectures that are compiled: in parallel lanes, and in turn."""
    _, targets, lanes = kind.whole
    curve = kind.prior.curve
    if targets > 1:
        rounds = math.ceil(targets / lanes)
        curve = curve.repeated(rounds).scaled(size=lanes, time=targets / rounds)
    return believed(curve, kind.prior.spread, kind.prior.time_spread)


def _sane(points: Iterable[Point]) -> Curve | None:
    """Return a curve of the valid points; None if there are none."""
    # The comparisons are false for NaN.
    kept = [p for p in points if 0 <= p.age <= MAX_SECONDS and 0 <= p.size <= MAX_SIZE]
    kept.sort(key=_age)
    if not kept:
        return None
    if kept[-1].age < LEAST_SECONDS:
        return flat(max(LEAST_SIZE, *(p.size for p in kept), 0.0), LEAST_SECONDS)
    if max(p.size for p in kept) < LEAST_SIZE:
        return flat(LEAST_SIZE, kept[-1].age)
    return Curve(tuple(kept))


def _curve_of(lesson: Lesson) -> Curve | None:
    """Return the curve of a lesson; None if the journal's figures are not valid."""
    curve = _sane(map(Point, lesson.ages, lesson.sizes, lesson.phases))
    return replace(curve, bound=lesson.bound) if curve is not None and lesson.bound else curve


def _age(point: Point) -> float:
    return point.age


def _entry(table: dict[_Key, Seen], key: _Key) -> Seen:
    """Return the sums of a class, creating them if needed; the oldest class is dropped to make room."""
    seen = table.get(key)
    if seen is None:
        if len(table) >= MAX_CLASSES:
            del table[next(iter(table))]
        seen = table[key] = Seen()
    return seen


def _nothing(_output: str, _tool: str, _flags: str) -> None:
    return None
