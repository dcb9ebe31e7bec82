"""What the engine expects of each job, and how it learns: samples in, curves out, history in the background.

Combines the history, the priors and what this build shows. Unaware of decisions and processes.
"""

from __future__ import annotations

import asyncio
import math
import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

from stoker.decide.memory.command_traits import Traits, traits_of
from stoker.decide.memory.curve_recorder import GROWS, CurveRecorder, RecordedCurve
from stoker.decide.memory.curves import GUESSED, Curve, Point, flat
from stoker.decide.memory.learner import Learner
from stoker.decide.memory.output_names import lasting_name
from stoker.decide.memory.prior_classes import Priors
from stoker.decide.memory.seen_growth import ENOUGH, Kind
from stoker.decide.time_left.cache_savings import Saved
from stoker.engine.learn.forecast import Foretold
from stoker.engine.learn.input_sizes import held_at_most
from stoker.model.events import JobFinished, JobKilled
from stoker.model.lessons import Lesson, Remembered
from stoker.model.tool import COMPILERS
from stoker.record.history import History
from stoker.sense.commands.classify import runs_others
from stoker.sense.commands.shell import simple_commands
from stoker.sense.proc.procfs import Notes

FLUSH_SECONDS = 5.0
"""Minimum time between two writes to the history: what a crash of the engine may lose."""

KILLED_SPREAD = 0.3
"""The uncertainty (relative standard deviation) of the need of a job that was killed while it grew."""

MAX_KNOWN = 8192
"""Commands and memories kept in addition to the live jobs': more than any window. Only jobs without a known end are
removed."""

MAX_PLANNED = 256
"""Command lines of plans that are kept: a plan has one for all objects of a library."""

_CACHES = re.compile(r"\b(?:ccache|sccache|buildcache)\b")
"""Compiler caches, as launchers or as folders of masquerading compilers, at the beginning of a command line."""

_LAUNCHER = re.compile(r"(?:^|(?<=\s))(?:/[^\s\"'`$;&|]*/)?(s?ccache)(?=\s)")
"""A metered cache, as the word in front of the compiler."""

MAX_KINDS = 8
"""Sets of flags for which the history is asked how fast jobs with them grew; it reads its rows of a tool for each."""

MAX_FLAGS = 16
"""Sets of flags of one tool that are tried for a job of which only the output is known."""

_CACHE_WITHIN = 400
"""Characters of a command line in which a cache is searched for: a shell, a `cd`, assignments, the launcher."""

_Argv = tuple[str, ...]
_Key = tuple[str, str, str]
_Any = TypeVar("_Any")
_Value = TypeVar("_Value")


class _Question(NamedTuple):
    """What was last asked for a job."""

    output: str
    tool: str
    argv: _Argv


class Expectations:
    """Expectations of jobs, renewed as jobs finish. `notes` has messages for the user.

    `cores` is how many the build may use; a link that uses all cores is as wide as that.
    """

    def __init__(self, priors: Priors, history: History | None = None, cores: float | None = None) -> None:
        self.notes = Notes()
        self.cores = cores or float(os.cpu_count() or 1)
        self._history = history
        self._learner = Learner(priors, self._recall)
        self._recorder = CurveRecorder()
        self._grown_asked: set[Kind] = set()
        self._asked: dict[int, _Question] = {}
        self._version = self._learner.version
        self._held_at_most: dict[_Argv, float | None] = {}
        """What jobs can hold by the files that they read, as far as those say so."""
        self._limited: dict[_Argv, tuple[Curve, Curve]] = {}
        self._traits: dict[_Argv, Traits] = {}
        self._planned: dict[_Argv, Traits] = {}
        self._memories: dict[_Key, Remembered | None] = {}
        self._flushed_at = time.monotonic()
        self._flushing = asyncio.Lock()
        self.launchers: dict[str, str] = {}
        """The compiler caches in front of compilers in this build's jobs, by name, as they are called there."""
        self.caching = False
        """Whether a compiler cache is in use, though command lines may not show it."""
        self.saved = Saved()
        self._unseen: dict[str, tuple[str, float]] = {}
        self._flags: dict[str, dict[str, None]] = {}
        self._needs: dict[str, float] = {}
        self._held: dict[str, int] = {}
        """The bytes that killed jobs were seen to hold, by output, until one of that output succeeds."""
        self._needing: dict[str, tuple[Curve, Curve]] = {}
        self._take_notes()

    def expect(self, jid: int, output: str, tool: str, argv: Sequence[str], pid: int = 0) -> Curve:
        """Return the expected curve of a job, by its own command line (`sh -c ...`, or the compiler's). `pid` is its
        first process, whose files say how large a link can be.

        More is kept until the job ends, so that asking again, when `version` has changed, costs little.
        """
        argv = tuple(argv)
        self._asked[jid] = _Question(output, tool, argv)
        traits = self._traits_of(argv)
        flags = self._flags.setdefault(tool, {})
        if len(flags) < MAX_FLAGS:
            flags[traits.flags] = None
        return self._at_least(output, self._no_more(argv, tool, pid, self._learner.expect(output, tool, traits)))

    def _no_more(self, argv: _Argv, tool: str, pid: int, curve: Curve) -> Curve:
        """Return the curve or, if it is a guess from which the job's inputs differ, what they allow."""
        if not pid or not curve.is_guess or curve.source.startswith("history") or self._traits_of(argv).mixed:
            return curve
        if argv not in self._held_at_most:
            _make_room(self._held_at_most)
            self._held_at_most[argv] = held_at_most(argv, tool, pid)
        most = self._held_at_most[argv]
        if most is None or most >= curve.peak:
            return curve
        known = self._limited.get(argv)
        if known is None or known[0] is not curve:
            limited = replace(curve.scaled(most / curve.peak), spread=GUESSED, bias=0.0, source="what it reads")
            known = self._limited[argv] = curve, limited
        return known[1]

    def set_needs(self, needs: Mapping[str, float]) -> None:
        """Set the minimum need of jobs, bytes by output: they were killed when they held nearly that much."""
        self._needs = dict(needs)
        self._needing.clear()
        self._learner.version += 1
        self.renew()

    def killed(self, event: JobKilled) -> None:
        """Learn that a job that was killed, for whatever reason, needs at least what it was seen to hold."""
        if event.output and event.rss and event.rss > self._held.get(event.output, 0):
            _make_room(self._held)
            self._held[event.output] = event.rss
            self._needing.pop(event.output, None)
            self._learner.version += 1
            self.renew()

    def _at_least(self, output: str, curve: Curve) -> Curve:
        """Return the curve or, if the job is known to need more than that, that much for all of its life."""
        need = max(self._needs.get(output, 0.0), self._held.get(output, 0))
        if need <= curve.peak:
            return curve
        known = self._needing.get(output)
        if known is None or known[0] is not curve:
            raised = replace(flat(need, curve.duration), spread=KILLED_SPREAD, source="what it held when it was killed")
            known = self._needing[output] = curve, raised
        return known[1]

    def foretell(self, output: str, tool: str, argv: Sequence[str]) -> Foretold:
        """Return how long a job of a plan will take, if an earlier build or a measured class knows, and what it will
        hold.

        The answer is not kept: a plan has tens of thousands of jobs.
        """
        argv = tuple(argv)
        traits = self._traits.get(argv) or self._planned_traits(argv)
        key = (output, tool, traits.flags)
        kept = key in self._memories
        stated = self._learner.stated(output, tool, traits)
        curve = self._at_least(output, self._learner.expect(output, tool, traits))
        if not kept:
            self._memories.pop(key, None)
        return Foretold(stated, curve.mean)

    def set_cores(self, cores: float) -> None:
        """Note how many cores the build may use."""
        self.cores = cores

    @property
    def version(self) -> int:
        """Another number since `renew` if something was learned: earlier answers may be outdated."""
        return self._version

    def renew(self) -> None:
        """From now on, apply what was learned to jobs that were asked about before, too.

        Call this now and then, not at each end: a new curve for every job on deck is work.
        """
        self._version = self._learner.version

    def set_priors(self, priors: Priors) -> bool:
        """Use these classes of jobs from now on, also for live jobs; return whether they differ."""
        changed = self._learner.set_priors(priors)
        self.renew()
        return changed

    def width(self, argv: Sequence[str]) -> float:
        """Return the cores that a job keeps busy: nvcc with threads, a link with LTO jobs; 1 for all others."""
        return max(1.0, min(self._traits_of(tuple(argv)).width, self.cores))

    def sample(self, jid: int, cpu_seconds: float, rss: float, phase: str, ran: float) -> None:
        """A job's process tree has used so many CPU seconds and holds `rss` bytes; also for jobs on deck and frozen.

        `ran` is for how many seconds by the clock it has run, 0 on deck.
        """
        self._recorder.sample(jid, cpu_seconds, rss, phase, ran)

    def adopted(self, jid: int) -> None:
        """The job ran before this engine did: its beginning is unknown, so nothing can be learned from it."""
        self._recorder.adopted(jid)

    def finished(
        self, jid: int, output: str, tool: str, argv: Sequence[str], ok: bool, seconds: float
    ) -> Lesson | None:
        """A job has ended after `seconds` of wall-clock time; if it succeeded, learn from it for this build and later
        ones.

        Returns the lesson for the journal; None if there is none. A guess at a job that was hardly seen is a bound for
        similar jobs of this build.
        """
        argv = tuple(argv)
        lesson = None
        kind = self._growth_known(tool, self._traits_of(argv).flags if argv else "")
        curve = self._recorder.finish(jid, kind, seconds)
        if ok:
            self._held.pop(output, None)
        if ok and curve is not None and argv:
            traits = self._traits_of(argv)
            traits = traits._replace(cached=traits.cached or (self.caching and tool in COMPILERS))
            if traits.cached:
                self._was_maybe_hit(self._recall(output, tool, traits.flags), seconds)
            lesson = self._learner.observe(output, tool, curve.points, traits, bound=curve.guessed)
            if lesson is not None:
                self._note_growth(tool, lesson)
                self._remember(output, tool, traits, curve)
        self._forget(jid, argv)
        return lesson

    def _growth_known(self, tool: str, flags: str) -> Kind:
        """Return a job's kind, after asking the history once how fast such jobs grew if this build has not shown it."""
        kind, grown = (tool, flags), self._recorder.grown
        if self._history is None or tool not in GROWS or kind in self._grown_asked or grown.count(kind) >= ENOUGH:
            return kind
        if len(self._grown_asked) < MAX_KINDS:
            self._grown_asked.add(kind)
            for course in self._history.measured(tool, flags):
                grown.note(kind, [Point(*point) for point in course])
        return kind

    def _note_growth(self, tool: str, lesson: Lesson) -> None:
        """Note how fast a job grew that was measured."""
        if tool in GROWS and not lesson.bound:
            points = list(map(Point, lesson.ages, map(float, lesson.sizes), lesson.phases))
            self._recorder.grown.note((tool, lesson.flags), points)

    def _remember(self, output: str, tool: str, traits: Traits, curve: RecordedCurve) -> None:
        """Add a job to the history: what was measured, or the bound of a job that was too short to be measured.

        The history takes a bound only for what it does not know. Otherwise such a job would be unknown in each build,
        and take its class's guess. Of a cache's hits nothing is known.
        """
        if self._history is None or not output or (curve.guessed and (traits.cached or not curve.brief)):
            return
        self._history.add(tool, lasting_name(output), traits.flags, curve.points, bound=curve.guessed)

    def recall(self, event: JobFinished) -> None:
        """Learn again what an earlier engine learned from a job."""
        if event.outcome == "ok":
            self._held.pop(event.output, None)
        if event.lesson is not None:
            self._learner.learn(event.output, event.tool, event.lesson)
            self._note_growth(event.tool, event.lesson)
            self.renew()

    def unseen(self, output: str, tool: str, argv: Sequence[str], seconds: float) -> None:
        """A job too short to be seen has succeeded; `argv` is a similar command line, if one is known."""
        if not argv:
            if len(self._unseen) < MAX_KNOWN and tool in COMPILERS:
                self._unseen[output] = (tool, seconds)
            return
        self._unseen.pop(output, None)
        traits = self._traits.get(tuple(argv)) or self._read(tuple(argv))
        if self._history is not None and (traits.cached or (self.caching and tool in COMPILERS)):
            self._was_maybe_hit(self._history.find(tool, lasting_name(output), traits.flags), seconds)
        else:
            kind = self._growth_known(tool, traits.flags)
            self._remember(output, tool, traits, self._recorder.never_seen(kind, seconds))

    def place_unseen(self) -> None:
        """At the end: assume that unseen jobs without a plan had the flags of others of this build, if those ever
        occurred."""
        for output, (tool, seconds) in self._unseen.items():
            for flags in self._flags.get(tool, ()):
                memory = self._history.find(tool, lasting_name(output), flags) if self._history is not None else None
                if memory is not None and memory.same_flags:
                    self._was_maybe_hit(memory, seconds)
                    break
        self._unseen.clear()

    def _was_maybe_hit(self, memory: Remembered | None, seconds: float) -> None:
        """A job behind a compiler cache has ended; what it takes with other flags says nothing."""
        if memory is not None and memory.same_flags:
            self.saved.ended(seconds, math.exp(memory.log_seconds))

    def lost(self, jid: int) -> None:
        """A job is gone and nobody knows how it ended, or it was killed: learn nothing from it."""
        self._recorder.drop(jid)
        self._forget(jid, ())

    async def flush(self) -> None:
        """Write what was learned, in a thread, unless that was done less than FLUSH_SECONDS ago."""
        if time.monotonic() - self._flushed_at >= FLUSH_SECONDS and not self._flushing.locked():
            await self._write()

    async def close(self) -> None:
        """Write what is left and close the history."""
        await self._write()
        if self._history is not None:
            await asyncio.to_thread(self._history.close)
            self._take_notes()

    async def _write(self) -> None:
        self._flushed_at = time.monotonic()
        if self._history is not None and self._history.pending:
            async with self._flushing:
                await asyncio.to_thread(self._history.flush)
        self._take_notes()

    def _take_notes(self) -> None:
        for note in self._history.take_notes() if self._history is not None else ():
            self.notes.say(note)

    def _recall(self, output: str, tool: str, flags: str) -> Remembered | None:
        """Return what the history knows, asked once per job."""
        if self._history is None:
            return None
        key = (output, tool, flags)
        try:
            return self._memories[key]
        except KeyError:
            memory = self._history.find(tool, lasting_name(output), flags)
            _make_room(self._memories)
            self._memories[key] = memory
            return memory

    def _traits_of(self, argv: _Argv) -> Traits:
        traits = self._traits.get(argv)
        if traits is None:
            _make_room(self._traits)
            traits = self._traits[argv] = self._read(argv)
        return traits

    def _planned_traits(self, argv: _Argv) -> Traits:
        if argv not in self._planned:
            if len(self._planned) >= MAX_PLANNED:
                self._planned.clear()
            self._planned[argv] = self._read(argv)
        return self._planned[argv]

    def _read(self, argv: _Argv) -> Traits:
        """Return what a command line shows; remembers a compiler cache's name."""
        commands = [command.argv for command in simple_commands(argv)]
        beginning = " ".join(argv[:8])[:_CACHE_WITHIN]
        cached = _CACHES.search(beginning) is not None
        if cached and (launcher := _LAUNCHER.search(beginning)) is not None:
            self.launchers.setdefault(launcher[1], launcher[0])
        return traits_of(commands, cached=cached, mixed=runs_others(argv))

    def _forget(self, jid: int, argv: _Argv) -> None:
        """The job will not be asked for again; another attempt at it starts from scratch."""
        asked = self._asked.pop(jid, None)
        if asked is not None:
            traits = self._traits.pop(asked.argv, None)
            if traits is not None:
                self._memories.pop((asked.output, asked.tool, traits.flags), None)
            self._held_at_most.pop(asked.argv, None)
            self._limited.pop(asked.argv, None)
        self._traits.pop(argv, None)


def _make_room(table: dict[_Any, _Value]) -> None:
    if len(table) >= MAX_KNOWN:
        del table[next(iter(table))]
