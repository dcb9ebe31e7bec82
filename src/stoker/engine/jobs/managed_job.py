"""One job of the build: its identity, its state, and what it uses.

Only the `JobTable` changes its state. Sends no signal; unaware of the journal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal

from stoker.act.gate import Target
from stoker.decide.memory.curves import Curve
from stoker.decide.memory.growth_rate import GrowthRate
from stoker.decide.policy.snapshot import Candidate
from stoker.decide.policy.waits import Wait
from stoker.model.events import JobState, MovedBy
from stoker.model.tool import Tool
from stoker.sense.proc.jobs import JobProcess, JobUse

MAX_PIDS = 512
"""Processes of a job that are remembered after their end: the kernel reports its kills by pid."""


class Life(Enum):
    """The states of a job; `docs/architecture.md` has the diagram."""

    NEWBORN = "newborn"
    """Just found, without a decision yet: nothing has stopped it."""
    ON_DECK = "on deck"
    RUNNING = "running"
    FROZEN = "frozen"
    EXITED = "exited"
    """Its process has ended; the result is not known yet."""
    RECORDED = "recorded"
    """Ninja recorded success."""
    UNRECORDED = "unrecorded"
    """Nothing says how it ended: make keeps no log, and a log can be lost."""
    FAILED = "failed"
    DROPPED = "dropped"
    """Ended by stoker on deck, because its scheduler starts nothing more."""
    KILLED = "killed"
    """Failed because stoker or a person killed it."""


# Loops over jobs use these names: looking up a member of an Enum takes 0.3 µs in Python 3.11.
EXITED, RUNNING = Life.EXITED, Life.RUNNING

WAITING = (Life.ON_DECK, Life.NEWBORN)
"""Until it is released."""

STOPPED = (Life.ON_DECK, Life.FROZEN)

LIVING = (*WAITING, RUNNING, Life.FROZEN)
"""While its process has not ended."""

ENDS = frozenset({Life.RECORDED, Life.UNRECORDED, Life.FAILED, Life.DROPPED, Life.KILLED})

NEXT: dict[Life, frozenset[Life]] = {
    Life.NEWBORN: frozenset({Life.ON_DECK, Life.RUNNING, Life.EXITED}),
    Life.ON_DECK: frozenset({Life.RUNNING, Life.EXITED}),
    Life.RUNNING: frozenset({Life.FROZEN, Life.EXITED, Life.RECORDED}),
    Life.FROZEN: frozenset({Life.RUNNING, Life.EXITED}),
    Life.EXITED: ENDS,
    **dict.fromkeys(ENDS, frozenset()),
}
"""The allowed transitions. A record may come before the exit is noticed, but not for a job that is stopped."""

Doom = Literal["", "dropped", "killed", "gone"]
"""Why a job cannot continue: dropped or killed by stoker, or gone when a signal was sent to it. Its exit has not been
noticed yet."""


@dataclass(slots=True, eq=False)
class ManagedJob:
    """One job. `arrived`, `admitted`, `since`: seconds of the monotonic clock. Sizes are bytes, `age` CPU seconds.

    `since` is when it entered its current state, and `idle` how many seconds it was stopped before that. `edge` is its
    name in its scheduler's plan, if the plan is newer than the job; an empty name means that several edges have its
    command. `fixed`: it is never stopped (a console-pool job, make's $(shell)). `carrier`: schedulers run inside it,
    whose own jobs count instead. `whole`: its whole tree was stopped, not just the newborn. `last_seen` and `noticed`
    are the Unix seconds between which its process ended, `exited_at` the same by the monotonic clock, `waited` how many
    readings of ninja's log have had no record of it since. `known_as` is its state in the journal of an earlier engine;
    not `watched`: it ended before this engine started. `announced_peak` and `wait` are what viewers know. `host` is the
    other machine that compiles it now, and `was_away` the last one that did; `returned`: it compiles here after all,
    after `elsewhere` seconds of running.
    """

    jid: int
    sid: int
    job: JobProcess
    target: Target
    life: Life
    arrived: float
    admitted: float
    since: float
    seen: JobUse
    edge: tuple[str, Tool] | None = None
    known_as: JobState | None = None
    fixed: bool = False
    carrier: bool = False
    whole: bool = False
    watched: bool = True
    doom: Doom = ""
    was_stopped: bool = False
    # Results of orders.
    idle: float = 0.0
    alone: bool = False
    alone_by: str = ""
    first: bool = False
    moved_by: MovedBy = ""
    held: bool = False
    early: bool = False
    passed_over: int = 0
    host: str = ""
    was_away: str = ""
    returned: bool = False
    elsewhere: float = 0.0
    # Resource usage.
    width: float = 1.0
    rss: int = 0
    age: float = 0.0
    peak_rss: int = 0
    peak_age: float = 0.0
    growth: GrowthRate = field(default_factory=GrowthRate, repr=False)
    pids: set[int] = field(default_factory=set, repr=False)
    stuck: int = 0
    # Its exit.
    exited_at: float = math.inf
    last_seen: float = 0.0
    noticed: float = 0.0
    waited: int = 0
    # Computed before, or announced.
    candidate: Candidate | None = field(default=None, repr=False)
    chain: float | None = None
    chain_known_as: tuple[int, str] | None = None
    """The version of the chains that `chain` is of, and the job's name then."""
    curve: Curve | None = field(default=None, repr=False)
    curve_version: int = 0
    announced_peak: int = 0
    announced_guess: bool = False
    wait: Wait | None = field(default=None, repr=False)

    @property
    def lives(self) -> bool:
        """Whether its process has not ended and is not about to."""
        return self.life in LIVING and not self.doom

    @property
    def counts(self) -> bool:
        """Whether it takes one of the level's places and decisions may concern it."""
        return self.life in LIVING and not (self.doom or self.fixed or self.carrier or self.host)

    @property
    def ended(self) -> bool:
        """Whether it is known, and announced, how it ended."""
        return self.life in ENDS

    @property
    def is_stopped(self) -> bool:
        """Whether it is on deck or frozen."""
        return self.life in STOPPED

    @property
    def by_word(self) -> bool:
        """Whether a command about all jobs stopped it: a pause, a level, or another job alone."""
        return self.moved_by in ("word", "alone")

    @property
    def state(self) -> JobState:
        """Its state as viewers see it."""
        if self.life in WAITING:
            return "on_deck"
        return "frozen" if self.life is Life.FROZEN else "running"

    @property
    def name(self) -> str:
        """Its name in its scheduler's log; empty if unknown."""
        return self.edge[0] if self.edge is not None else self.job.output

    @property
    def tool(self) -> Tool:
        """The tool that it runs, according to the newest plan."""
        return self.edge[1] if self.edge is not None else self.job.tool

    @property
    def only_waits(self) -> bool:
        """Whether its launcher waits for a host, or for a place of its engine, and nothing of it works here."""
        return bool(self.seen.launchers) and not self.seen.works_here

    def stopped_for(self, clock: float) -> float:
        """Return the seconds up to `clock` for which it was held or frozen."""
        return self.idle + (clock - self.since if self.is_stopped else 0.0)

    def ran_for(self, clock: float) -> float:
        """Return the seconds up to `clock` for which it ran; 0 until it is released."""
        if self.life in WAITING:
            return 0.0
        return max(0.0, clock - self.arrived - self.stopped_for(clock))

    def begin_here(self) -> None:
        """It compiles here after all: the memory that it held before says nothing about that."""
        self.peak_rss, self.peak_age, self.growth = self.rss, self.age, GrowthRate()

    def measure(self, use: JobUse) -> None:
        """Note what its process tree uses now."""
        self.seen = use
        if use.rss != self.rss:
            self.candidate = None
        self.rss, self.age = use.rss, use.cpu_seconds
        if len(self.pids) > MAX_PIDS:  # a script that runs a thousand programs
            self.pids.clear()
        self.pids.update(use.pids)
        if self.life is Life.FROZEN:
            self.growth.rest(use.cpu_seconds, use.rss)  # it had continued for a moment between the tick and its stop
        else:
            self.growth.note(use.cpu_seconds, use.rss)
        if use.rss > self.peak_rss:
            self.peak_rss, self.peak_age = use.rss, use.cpu_seconds
