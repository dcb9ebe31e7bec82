"""A recorded build as one value, read from its journal's records. Pure. All that is reported is a function of it.

Bounded for any journal: see the MAX_ values. Unaware of files, of screens and of other builds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

from stoker.model import events as ev
from stoker.model.events import Record
from stoker.model.reduce import reduce
from stoker.model.state import BuildState, DecisionEntry
from stoker.report.job_records import JobBook, JobRecord

MAX_MOMENTS = 1200
"""Points of the machine's timeline; when there are twice as many, each two become one."""

MAX_ACTS = 5000
"""Decisions, and changes of the level, that are kept; later ones are counted only."""

MAX_STRETCHES = 500
"""Steps, schedulers and activities that are kept."""

MOST_BETWEEN = 10.0
"""Seconds between two samples that are counted at most: a machine that slept has run no job meanwhile."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class MachinePoint:
    """The machine and the build at one time. Bytes; `cores` is how many the build's jobs kept busy."""

    time: float
    budget: int
    used: int
    build: int
    promised: int
    running: int
    on_deck: int
    level: int
    cores: float

    def merged(self, other: MachinePoint) -> MachinePoint:
        """The larger of each, at this one's time."""
        mine = (self.used, self.build, self.promised, self.running, self.on_deck, self.cores)
        theirs = (other.used, other.build, other.promised, other.running, other.on_deck, other.cores)
        used, build, promised, running, on_deck, cores = map(max, mine, theirs)
        return MachinePoint(
            self.time,
            other.budget,
            int(used),
            int(build),
            int(promised),
            int(running),
            int(on_deck),
            other.level,
            cores,
        )


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time span with a name: a step, or what ran while no scheduler did. `exit_code` is None where it has none."""

    name: str
    started: float
    ended: float
    exit_code: int | None = None
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class SchedulerRecord:
    """One scheduler's life. `deps` says for each group of its jobs which groups must have ended before; empty where
    nothing knows."""

    sid: int
    tool: str
    version: str
    directory: str
    parent: int | None
    step: int
    attempt: int
    started: float
    ended: float
    deps: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class LevelRecord:
    """How many jobs might run from `time` on."""

    time: float
    mode: str
    target: int
    paused: str
    guarded: bool


@dataclass(frozen=True, slots=True)
class Speed:
    """With `running` jobs at once, in so many `seconds`, the jobs used `cpu` CPU seconds."""

    running: int
    seconds: float
    cpu: float


@dataclass(frozen=True, slots=True)
class RecordedBuild:
    """The whole build. `state` is what every screen shows of it; `others` is the memory, in bytes, that counted against
    the budget and was not the build's, on average. `left_out` counts jobs and decisions beyond the bounds."""

    state: BuildState
    jobs: tuple[JobRecord, ...]
    moments: tuple[MachinePoint, ...]
    levels: tuple[LevelRecord, ...]
    decisions: tuple[DecisionEntry, ...]
    steps: tuple[Stretch, ...]
    activities: tuple[Stretch, ...]
    schedulers: tuple[SchedulerRecord, ...]
    speeds: tuple[Speed, ...]
    others: float = 0.0
    left_out: int = 0

    @property
    def started(self) -> float:
        """The build's first moment."""
        return self.state.started

    @property
    def ended(self) -> float:
        """Its end, or the last moment that is known of."""
        return max(self.started, self.state.ended if self.state.ended is not None else self.state.time)

    @property
    def seconds(self) -> float:
        """From its start to its end."""
        return self.ended - self.started

    @property
    def budget(self) -> int:
        """The memory that it might use, in bytes: as at its end."""
        return self.state.machine.memory_budget if self.state.machine is not None else self.state.memory_total


class Recorder:
    """Hears the records of a journal in order, and says what they add up to."""

    def __init__(self) -> None:
        self.state = BuildState()
        self._book = JobBook()
        self._moments: list[MachinePoint] = []
        self._levels: list[LevelRecord] = []
        self._decisions: list[DecisionEntry] = []
        self._steps: list[Stretch] = []
        self._activities: list[Stretch] = []
        self._schedulers: dict[int, SchedulerRecord] = {}
        self._speeds: dict[int, tuple[float, float]] = {}
        self._others = (0.0, 0)
        self._sampled = 0.0
        self._left_out = 0

    def hear(self, record: Record) -> None:
        """Take the next record."""
        self.state = reduce(self.state, record)
        e, time = record.event, record.time
        match e:
            case ev.JobStarted():
                self._book.started(e)
            case ev.JobMoved():
                self._book.moved(e, time)
            case ev.JobsWaiting():
                self._book.waiting(e, time)
            case ev.JobsExited():
                self._book.exited(e, time)
            case ev.JobKilled():
                self._book.killed(e)
            case ev.JobFinished():
                self._book.finished(e, time)
            case ev.Sampled():
                self._book.sampled(e.jobs, time)
                self._sample(e, time)
            case _:
                self._note(e, time)

    def _note(self, e: ev.Event, time: float) -> None:
        """What is not about jobs."""
        match e:
            case ev.LevelSet():
                self._keep(self._levels, LevelRecord(time, e.mode, e.target, e.paused, e.guarded))
            case ev.Decided():
                self._keep(self._decisions, DecisionEntry(time, e.who, e.what, e.why))
            case ev.StepStarted() if len(self._steps) < MAX_STRETCHES:
                if self._steps and self._steps[-1].exit_code is None:  # an attempt has no end of its own
                    self._steps[-1] = replace(self._steps[-1], ended=time)
                self._steps.append(Stretch(e.name, time, time, attempt=e.attempt))
            case ev.StepEnded() if self._steps:
                self._steps[-1] = replace(self._steps[-1], ended=time, exit_code=e.exit_code)
            case ev.SchedulerStarted() if len(self._schedulers) < MAX_STRETCHES:
                step = self.state.step
                place = (step.index, step.attempt) if step is not None else (1, 1)
                self._schedulers[e.sid] = SchedulerRecord(
                    e.sid, e.tool, e.version, e.directory, e.parent, *place, time, 0.0
                )
            case ev.SchedulerPlanned() if e.after and e.sid in self._schedulers:
                self._schedulers[e.sid] = replace(self._schedulers[e.sid], deps=e.after)
            case ev.SchedulerEnded() if e.sid in self._schedulers:
                self._schedulers[e.sid] = replace(self._schedulers[e.sid], ended=time)

    def _keep(self, acts: list[_T], act: _T) -> None:
        if len(acts) < MAX_ACTS:
            acts.append(act)
        else:
            self._left_out += 1

    def _sample(self, e: ev.Sampled, time: float) -> None:
        m = e.machine
        running = sum(job.state == "running" for job in e.jobs)
        cores = sum(job.cpu for job in e.jobs if job.state == "running") / 100
        on_deck = sum(job.state == "on_deck" for job in self.state.jobs.values())
        level = self.state.level.target or 0
        moment = MachinePoint(
            time, m.memory_budget, m.memory_used, e.build_rss, e.promised, running, on_deck, level, cores
        )
        self._moments.append(moment)
        if len(self._moments) >= 2 * MAX_MOMENTS:
            pairs = (self._moments[i : i + 2] for i in range(0, len(self._moments), 2))
            self._moments = [pair[0].merged(pair[-1]) for pair in pairs]
        passed = min(MOST_BETWEEN, max(0.0, time - self._sampled)) if self._sampled else 0.0
        self._sampled = time
        seconds, cpu = self._speeds.get(running, (0.0, 0.0))
        self._speeds[running] = (seconds + passed, cpu + passed * cores)
        total, count = self._others
        self._others = (total + max(0, m.memory_used - e.build_rss), count + 1)
        self._act(e.activity, time)

    def _act(self, activity: str, time: float) -> None:
        """What runs while no scheduler does goes on, or begins."""
        last = self._activities[-1] if self._activities else None
        if last is not None and last.name == activity:
            self._activities[-1] = replace(last, ended=time)
        elif len(self._activities) < MAX_STRETCHES:
            if last is not None and last.name:
                self._activities[-1] = replace(last, ended=time)
            self._activities.append(Stretch(activity, time, time))

    def value(self, state: BuildState | None = None) -> RecordedBuild:
        """The build as far as it was heard; `state` is what is known of it at the end, where its files know more."""
        state = state or self.state
        end = max(state.started, state.ended if state.ended is not None else state.time)
        total, count = self._others
        schedulers = (s if s.ended else replace(s, ended=end) for s in self._schedulers.values())
        steps = (s if s.ended > s.started or s.exit_code is not None else replace(s, ended=end) for s in self._steps)
        return RecordedBuild(
            state,
            self._book.records(end),
            tuple(self._moments),
            tuple(self._levels),
            tuple(self._decisions),
            tuple(steps),
            tuple(a for a in self._activities if a.name and a.ended > a.started),
            tuple(schedulers),
            tuple(Speed(running, *both) for running, both in sorted(self._speeds.items())),
            total / count if count else 0.0,
            self._left_out + self._book.left_out,
        )


def recorded(records: Iterable[Record]) -> RecordedBuild:
    """Return the build that these records add up to."""
    recorder = Recorder()
    for record in records:
        recorder.hear(record)
    return recorder.value()
