"""The live jobs as the governor sees them: who is on deck, who runs, who is frozen, and what each uses.

Turns them into what a decision is based on. Sends no signal; unaware of the journal.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import NamedTuple, Protocol

from stoker.act.gate import Target
from stoker.contract.process import Key
from stoker.decide.memory.curves import Curve
from stoker.decide.memory.growth_rate import Climb
from stoker.decide.policy.snapshot import Candidate, LiveJob
from stoker.decide.policy.waits import Wait
from stoker.model import state as state_of
from stoker.model.events import JobState
from stoker.model.lessons import Lesson
from stoker.model.tool import Tool
from stoker.sense.proc.jobs import Job, JobUse
from stoker.sense.proc.processes import Process
from stoker.sense.proc.schedulers import Scheduler

MAX_DEPARTED = 1024
"""Jobs kept whose process has gone and whose end has not been told: that takes three looks at most."""


MAX_PIDS = 512
"""Processes of one job that are remembered after their end: the kernel tells of those that it killed by their pids."""

SHOWN_JOBS = 64
"""The oldest jobs, of which viewers are told again when another peak is expected: more than a screen shows."""

BEGUN = 4 * 2**20
"""Bytes that a job on deck holds if it was stopped only after its compiler had begun; a shell holds far less."""

NEWS_SHARE = 0.2
"""What makes it worth telling: with every job that ends the expectation of all its like changes a little."""


class Birth(NamedTuple):
    """A job that was not known before. `before` is what the journal says of it, if an earlier engine knew it."""

    jid: int
    sid: int
    job: Job
    process: Process
    scheduler: Scheduler
    before: state_of.Job | None = None


class Expected(Protocol):
    """What tells how much memory and time a job is expected to take, and learns from what it took."""

    cores: float

    @property
    def version(self) -> int:
        """Another number when what it says of jobs that it was asked for before may be another curve."""

    def expect(self, jid: int, output: str, tool: str, argv: tuple[str, ...]) -> Curve:
        """The job's curve, by all that has been learnt."""

    def width(self, argv: tuple[str, ...]) -> float:
        """How many cores it keeps busy."""

    def sample(self, jid: int, cpu_seconds: float, rss: float, phase: str) -> None:
        """What it uses now."""

    def adopted(self, jid: int) -> None:
        """Its beginning was not seen."""

    def finished(
        self, jid: int, output: str, tool: str, argv: tuple[str, ...], ok: bool, seconds: float
    ) -> Lesson | None:
        """It has ended after so many seconds of running; what it taught."""

    def lost(self, jid: int) -> None:
        """It never ran."""


@dataclass(slots=True, eq=False)
class Member:
    """One live job. `arrived`, `admitted`, `since`: seconds of the monotonic clock. Sizes are bytes, `age` CPU seconds.

    `curve` is what was expected of it by the `curve_version`, `seen` what it used at the last look.
    `since` is when it came into its `state`, `idle` for how many seconds before that it was stopped. `fixed`: it is
    never stopped (a console-pool job, make's $(shell)). `pids` are the processes that it was seen to have. `carrier`:
    schedulers run inside it, whose own jobs are counted for themselves. `whole`: its whole tree was stopped, not just
    the newborn. `starting`: it starts a server, and would fail if it were stopped meanwhile. `told`: its end has been
    told; `told_peak`: the peak that viewers know of; `wait`: why it waits, as they know it.
    `alone_by`: the person who wants it alone, if it was one.
    """

    jid: int
    sid: int
    job: Job
    target: Target
    state: JobState
    arrived: float
    admitted: float
    since: float
    idle: float = 0.0
    width: float = 1.0
    rss: int = 0
    age: float = 0.0
    peak_rss: int = 0
    peak_age: float = 0.0
    phase: str = ""
    climb: Climb = field(default_factory=Climb, repr=False)
    passed_over: int = 0
    held: bool = False
    alone: bool = False
    alone_by: str = ""
    first: bool = False
    by_person: bool = False
    by_word: bool = False
    early: bool = False
    fixed: bool = False
    carrier: bool = False
    whole: bool = False
    ended: bool = False
    ended_at: float = math.inf
    told: bool = False
    told_peak: int = 0
    stuck: int = 0
    starting: bool = False
    wait: Wait | None = field(default=None, repr=False)
    pids: set[int] = field(default_factory=set, repr=False)
    candidate: Candidate | None = field(default=None, repr=False)
    curve: Curve | None = field(default=None, repr=False)
    curve_version: int = 0
    seen: JobUse | None = field(default=None, repr=False)

    @property
    def counts(self) -> bool:
        """Whether it takes one of the level's places and may be decided about."""
        return not (self.fixed or self.carrier or self.ended)

    def stopped_for(self, clock: float) -> float:
        """Seconds of its life, up to `clock`, in which it was held or frozen."""
        return self.idle + (clock - self.since if self.state != "running" else 0.0)

    def move(self, state: JobState, clock: float) -> None:
        """It is in another state from now on."""
        self.idle = self.stopped_for(clock)
        self.state, self.since, self.candidate, self.wait = state, clock, None, None
        self.early = self.early and state == "running"  # whoever stops it
        if state == "frozen":
            self.climb.rest(self.age, self.rss)

    def use(self, use: JobUse) -> None:
        """What its process tree uses now."""
        self.seen = use
        if use.rss != self.rss:
            self.candidate = None
        self.rss, self.age, self.phase = use.rss, use.cpu_seconds, use.phase
        self.starting = use.starting
        if len(self.pids) > MAX_PIDS:  # a script that runs a thousand programs
            self.pids.clear()
        self.pids.update(use.pids)
        if self.state == "frozen":
            self.climb.rest(use.cpu_seconds, use.rss)  # it had gone on for a moment after the look before its stop
        else:
            self.climb.note(use.cpu_seconds, use.rss)
        if use.rss > self.peak_rss:
            self.peak_rss, self.peak_age = use.rss, use.cpu_seconds


class Deck:
    """All live jobs, by jid."""

    def __init__(self, expected: Expected) -> None:
        self._expected = expected
        self._members: dict[int, Member] = {}
        self._by_key: dict[Key, Member] = {}
        self._departed: dict[int, Member] = {}

    def __iter__(self) -> Iterator[Member]:
        return iter(self._members.values())

    def get(self, jid: int) -> Member | None:
        """The job with that number, None when it has gone."""
        return self._members.get(jid)

    def commands(self, jids: Iterable[int]) -> list[tuple[str, ...]]:
        """The arguments of those of the jobs that are there."""
        return [self._members[jid].job.argv for jid in jids if jid in self._members]

    def owner(self, pid: int) -> Member | None:
        """The job that was seen to have that process, of several the youngest: pids are used again."""
        jobs = (*self._departed.values(), *self._members.values())
        return next((m for m in reversed(jobs) if pid == m.job.pid or pid in m.pids), None)

    def by_key(self, key: Key) -> Member | None:
        """The job whose first process that is."""
        return self._by_key.get(key)

    def add(self, member: Member) -> None:
        """A new job."""
        member.width = self._expected.width(member.job.argv)
        self._members[member.jid] = member
        self._by_key[member.job.key] = member

    def rename(self, jid: int, output: str, tool: Tool) -> Member | None:
        """What the job makes has been learnt; None if it is gone, or its end has been told."""
        member = self._members.get(jid)
        if member is not None and member.told:
            return None
        if member is not None:
            member.job = replace(member.job, output=output, tool=tool)
            member.candidate = member.curve = None
        return member

    def remove(self, jid: int) -> Member | None:
        """The job has ended."""
        member = self._members.pop(jid, None)
        if member is not None:
            self._by_key.pop(member.job.key, None)
            self._departed[jid] = member
            while len(self._departed) > MAX_DEPARTED:
                del self._departed[next(iter(self._departed))]
        return member

    def too_many(self, sid: int, failed: str) -> list[Member]:
        """A scheduler's jobs that it would not have started once `failed` had failed: those on deck, and those let go
        after that job's death, before it was known for a failure."""
        died = self._died(sid, failed)
        return [m for m in self if m.sid == sid and m.counts and (m.state == "on_deck" or m.admitted >= died)]

    def _died(self, sid: int, output: str) -> float:
        """When that job's process ended, by the monotonic clock; infinity if that was not seen."""
        jobs = [*self._departed.values(), *self._members.values()]
        return next((m.ended_at for m in jobs if m.sid == sid and m.job.output == output and m.ended), math.inf)

    def settle(self, jid: int) -> Member | None:
        """The job whose end has just been told: its process may have gone some time before that, or not quite yet."""
        member = self._departed.pop(jid, None) or self._members.get(jid)
        if member is not None:
            member.told = True
        return member

    def having(self, state: JobState) -> list[Member]:
        """Those in that state that may be decided about, in the order of their births."""
        return [m for m in self._members.values() if m.state == state and m.counts]

    def living(self, sid: int) -> int:
        """How many of a scheduler's jobs have not ended."""
        return sum([m.sid == sid and not m.ended for m in self._members.values()])

    def living_by_scheduler(self) -> Counter[Key]:
        """How many jobs of each have not ended."""
        return Counter([m.job.scheduler for m in self._members.values() if not m.ended])

    def set_carriers(self, nested: Mapping[Key, Key]) -> None:
        """The jobs in which schedulers run now."""
        carriers = set(nested.values())
        for member in self._members.values():
            member.carrier = member.job.key in carriers

    def held_bytes(self) -> int:
        """What all jobs hold, as measured last."""
        return sum(m.rss for m in self._members.values())

    def curve(self, member: Member) -> Curve:
        """What is expected of the job."""
        if member.curve is None or member.curve_version != self._expected.version:
            job, member.curve_version = member.job, self._expected.version
            member.curve = self._expected.expect(member.jid, job.output, job.tool, job.argv)
        return member.curve

    def news(self, member: Member) -> int | None:
        """The peak that is expected of the job, None if that is about what was told before; it is told now."""
        if not self._is_news(member):
            return None
        member.told_peak = self._expected_peak(member)
        return member.told_peak

    def outdated(self) -> list[Member]:
        """Of the oldest jobs those of which another peak is expected than was told."""
        return [m for m in islice(self._members.values(), SHOWN_JOBS) if m.counts and self._is_news(m)]

    def _is_news(self, member: Member) -> bool:
        return abs(self._expected_peak(member) - member.told_peak) > NEWS_SHARE * member.told_peak

    def _expected_peak(self, member: Member) -> int:
        """Bytes; what a job has held already is the least of it, whatever jobs like it take."""
        return round(max(self.curve(member).peak, member.peak_rss))

    def candidates(self) -> tuple[Candidate, ...]:
        """Who waits on deck."""
        version = self._expected.version
        return tuple(
            [
                known
                if (known := m.candidate) is not None and known.curve is m.curve and m.curve_version == version
                else self._candidate(m)
                for m in self.having("on_deck")
            ]
        )

    def _candidate(self, m: Member) -> Candidate:
        rss = m.rss if m.rss >= BEGUN else 0
        curve = self.curve(m)
        m.candidate = Candidate(
            m.jid, m.job.label, m.arrived, curve, m.passed_over, m.alone, m.held, m.width, m.first, rss
        )
        return m.candidate

    def live(self, members: Iterable[Member]) -> tuple[LiveJob, ...]:
        """Running or frozen jobs as a decision sees them."""
        return tuple(
            LiveJob(
                m.jid,
                m.job.label,
                m.admitted,
                m.age,
                m.rss,
                self.curve(m),
                m.peak_rss,
                m.peak_age,
                m.phase,
                m.climb.rise,
                m.width,
                m.alone,
                m.by_person,
                m.by_word,
                m.early,
                m.climb.stale,
            )
            for m in members
        )

    def pass_over(self, admitted: Member) -> None:
        """Count for those that wait longer that a younger one has gone before them."""
        for m in self.having("on_deck"):
            if (m.arrived, m.jid) > (admitted.arrived, admitted.jid):
                return
            m.passed_over += 1
            m.candidate = None
