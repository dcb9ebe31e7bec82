"""What is known about a build at one instant: the value that every screen renders.

Unaware of events' order, of files and of screens; `reduce` makes these values. Every collection is bounded, so
that a build of 100,000 jobs and ten hours costs no more than a short one. Times are Unix seconds, sizes bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from stoker.model.cache_use import CacheUse, SharedCache
from stoker.model.course import Course
from stoker.model.diagnosis import Diagnosis
from stoker.model.events import JobState, KilledBy, MovedBy, Outcome, Paused, WaitCause
from stoker.model.known_peak import KnownPeak, known_peak
from stoker.model.remote import HOSTLESS, RemoteEngine
from stoker.model.report import Report, Severity
from stoker.model.samples import MachineSample
from stoker.model.timeline import RECENT_SPACING, Timeline
from stoker.model.tool import Tool

STATE_VERSION = 2
"""Version of the state as JSON, in checkpoints; increased when a reader of another version would misread it."""

MAX_DECISIONS = 500
MAX_FAILURES = 100
MAX_KILLED = 200
MAX_LONGEST = 3
MAX_NOTICES = 100
MAX_OCCASIONS = 8
MAX_RECENT = 50
MAX_REPEATED = 100
MAX_SCHEDULERS = 200

Fate = Literal["ok", "failed", "unknown", "killed", "interrupted"]
"""The outcome of a job. killed: somebody or something ended it (`killed_by`); it did not fail by itself.
interrupted: as in events.JobOutcome."""

Phase = Literal["starting", "running", "paused", "frozen", "stopping", "done", "failed", "stopped"]


@dataclass(frozen=True, slots=True)
class Step:
    """The step that runs now, counted from 1."""

    name: str
    index: int
    count: int
    pid: int | None = None
    attempt: int = 1
    oom_kills: int | None = None
    log_start: int = 0
    schedulers: int = 0
    """How many were found in this attempt."""
    tools: tuple[str, ...] = ()
    """What its outermost schedulers are, in all attempts."""
    ungoverned: bool = False
    """Whether compilers were seen that no scheduler had started."""
    ended: bool = False
    """Whether its command has ended, and does not run again."""

    def with_scheduler(self, tool: str, *, outermost: bool) -> Step:
        """One more scheduler has been found."""
        tools = tuple(sorted({*self.tools, tool})) if outermost else self.tools
        return replace(self, schedulers=self.schedulers + 1, tools=tools)


@dataclass(frozen=True, slots=True)
class SchedulerPlan:
    """What a scheduler has to do in this run; `since` is when that was last heard."""

    total: int | None
    source: Literal["dry-run", "status", "percent"]
    tools: Mapping[str, int] = field(default_factory=dict)
    percent: float | None = None
    since: float | None = None
    begun: float | None = None


@dataclass(frozen=True)
class Scheduler:
    """One ninja, samurai or make of this build, running or ended, of this `attempt` at this `step` (both from 1).

    `broken_off`: its attempt failed and the step runs again, but nobody is known to have taken up its work yet.
    `goes_on_with` is the scheduler (sid) of an earlier attempt whose work it takes up.
    """

    sid: int
    tool: Literal["ninja", "samurai", "make"]
    pid: int
    directory: str
    version: str
    width: int | None
    parent: int | None
    started: float
    ended: float | None = None
    plan: SchedulerPlan | None = None
    finished: int = 0
    failed: int = 0
    killed: int = 0
    dropped: int = 0
    finished_by_tool: Mapping[str, int] = field(default_factory=dict)
    log_offset: int | None = None
    start_ticks: int | None = None
    step: int = 1
    attempt: int = 1
    goes_on_with: int | None = None
    broken_off: bool = False
    container: str = ""
    failures: int | None = None
    """How many jobs may fail until it starts nothing more, as in events.SchedulerStarted."""
    interrupted: int = 0
    """How many jobs had begun when a stop of the build, or their scheduler's death, ended them: they have neither
    failed nor finished."""
    blocked: int = 0
    """How many jobs wait for failed ones, as in events.JobsBlocked."""

    @property
    def stops(self) -> bool:
        """Whether it starts nothing more, since jobs have failed, and waits only for those that run."""
        enough = self.failures is not None and self.failed >= self.failures
        return self.ended is None and (enough or self.dropped > 0)

    @property
    def drains(self) -> bool:
        """Whether it starts nothing more because it takes killed jobs for failed ones: these run with the step again
        once it has ended."""
        enough = self.failures is not None and self.failed + self.killed >= self.failures
        return self.ended is None and not self.stops and self.killed > 0 and enough


@dataclass(frozen=True, slots=True)
class Retired:
    """Counts of ended schedulers that are no longer listed one by one: a recursive make has thousands."""

    finished: int = 0
    failed: int = 0
    killed: int = 0


@dataclass(frozen=True)
class Job:
    """A job of a scheduler that has not ended.

    `expected` is the memory it is predicted to need at its peak, if anything predicts it. `running_since` is when it
    was let go, None while it waits on deck; `started` is its process's birth. `moved_by`, `alone` and `alone_by` are
    as in events.JobMoved, `start_ticks` as in events.JobStarted. `waits` says why it waits now, if it is on deck or
    frozen and that is known; `waits_for` says it in one word. `frozen_at` is when it was frozen, None unless it is;
    `stood` for how many seconds it was before that.
    """

    jid: int
    sid: int
    pid: int
    output: str
    tool: Tool
    started: float
    rss: int = 0
    peak_rss: int = 0
    cpu: float = 0.0
    phase: str = ""
    state: JobState = "running"
    expected: int | None = None
    running_since: float | None = None
    moved_by: MovedBy = ""
    alone: bool = False
    alone_by: str = ""
    start_ticks: int | None = None
    waits: str = ""
    waits_for: WaitCause = ""
    waits_since: float = 0.0
    """When that reason was given, with the figures of that moment; of no meaning without one."""
    frozen_at: float | None = None
    stood: float = 0.0
    lasts: float | None = None
    """Seconds that it is predicted to run on a core of its own, as in events.JobStarted."""
    course: Course = field(default_factory=Course)
    held: bool = False
    """Whether it has waited for memory."""
    after_first: bool = False
    """Whether it has waited for the first job of an unknown kind."""
    short: bool = False
    """Whether it has been frozen for lack of memory."""
    host: str = ""
    """The other machine that compiles it now; empty while this one does."""
    elsewhere: float = 0.0
    """For how many seconds it had run when another machine last gave it back: it began again then, here."""
    phase_pid: int = 0
    """The process that `phase` is the name of; 0: `pid` itself, or unknown."""
    guessed: bool = False
    """As in events.JobStarted."""
    is_c: bool = False
    """Whether its command line or its processes show that it compiles C: an output's name does not always say so."""
    cpu_due: bool = False
    """Whether it was let go or thawed a moment ago, so that no sample has its `cpu` yet."""

    def age(self, now: float) -> float:
        """Return the seconds for which it has run at Unix time `now`, without time on deck and frozen."""
        if self.running_since is None:
            return 0.0
        return max(0.0, now - self.running_since - self.frozen_for(now))

    def frozen_for(self, now: float) -> float:
        """Return the seconds for which it was frozen up to Unix time `now`."""
        return self.stood + (max(0.0, now - self.frozen_at) if self.frozen_at is not None else 0.0)

    def age_here(self, now: float) -> float:
        """Return the same since another machine gave it back, if one did."""
        return max(0.0, self.age(now) - self.elsewhere)

    @property
    def shown_pid(self) -> int:
        """The process to name beside it: the one that `phase` is the name of, not the shell around it."""
        return self.phase_pid or self.pid

    @property
    def reason(self) -> str:
        """Why it waits, in words; empty while it runs."""
        if self.state == "running":
            return ""
        if not self.waits and self.moved_by == "person":
            return "frozen by hand until it is thawed"
        return self.waits or ("was born a moment ago" if self.state == "on_deck" else "was frozen a moment ago")


@dataclass(frozen=True, slots=True)
class FinishedJob:
    """One of the jobs that ended last. `killed_by` is set if its outcome is "killed", and only then. `seconds` are
    those for which it ran; before its end it was frozen for `stood` seconds more. `limit` is what it can have held at
    most, as far as that is known."""

    output: str
    tool: Tool
    seconds: float
    ended: float
    outcome: Fate
    peak_rss: int | None
    jid: int | None = None
    sid: int = 0
    killed_by: KilledBy | None = None
    stood: float = 0.0
    is_c: bool = False
    limit: int | None = None

    @property
    def peak(self) -> KnownPeak | None:
        """What is known of the most that it held; None where it was too short to be measured."""
        return known_peak(self.seconds, self.peak_rss, self.limit)


@dataclass(frozen=True, slots=True)
class Lost:
    """How many jobs were killed, and how many seconds they had run by then: work that is done again."""

    count: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Estimate:
    """Remaining seconds, with a band, when that was estimated, and the job on the critical path."""

    seconds: float
    low: float
    high: float
    time: float
    critical: int | None = None


@dataclass(frozen=True, slots=True)
class DecisionEntry:
    """A line of the decisions panel."""

    time: float
    who: str
    what: str
    why: str
    since: float | None = None
    """When a job that was held came on deck: stoker decides about it only when its turn comes. None if unknown."""


@dataclass(frozen=True, slots=True)
class Notice:
    """A notice that the user should know about and nobody decided."""

    time: float
    severity: Severity
    text: str


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed step in the output; offsets are bytes of the output log.

    `killed_by` is set where the step did not fail by itself.
    """

    time: float
    output: str
    command: str
    exit_code: int | None
    excerpt: tuple[str, ...]
    log_start: int
    log_end: int
    killed_by: KilledBy | None = None


@dataclass(frozen=True, slots=True)
class KilledJob:
    """A job that was killed, in which attempt of the step; the other fields as in events.JobKilled."""

    time: float
    output: str
    by: KilledBy
    attempt: int
    rss: int | None
    jid: int | None = None
    who: str = ""
    why: str = ""
    log_start: int | None = None
    """Where the output shows it, in bytes, once its attempt is over and `failures` no longer has it."""


@dataclass(frozen=True, slots=True)
class Level:
    """How many jobs may run (`target`), and how many the scheduler may start (`window`).

    `guarded` is False when a person has switched off the care for memory. `ungoverned` counts the compilers that no
    scheduler started, as in events.Sampled.
    """

    mode: Literal["auto", "manual"] = "auto"
    target: int | None = None
    window: int | None = None
    paused: Paused = "no"
    guarded: bool = True
    ungoverned: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Memory in bytes: the `build`'s own, the peak of all that counts against the budget (`used_peak`), and what is
    `promised` to jobs, kept in `reserve` and expected to be held in the minutes to come (`outlook`), as in
    events.Sampled."""

    build: int = 0
    build_peak: int = 0
    used_peak: int = 0
    promised: int = 0
    reserve: int = 0
    outlook: tuple[int, ...] = ()
    over_seconds: float = 0.0
    """How long the budget was exceeded."""
    over_at: float | None = None
    """When it was last seen exceeded; None if it is not now."""


def build_cpu(measured: float | None, jobs: Iterable[Job]) -> float:
    """Return the CPU use of a build in percent of one core; in an older journal that of its running jobs."""
    return measured if measured is not None else sum(job.cpu for job in jobs)


@dataclass(frozen=True, slots=True)
class HeldJob:
    """A job that waited for memory, and the seconds that it was on deck, for whatever reason."""

    output: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Restraint:
    """How many jobs waited for memory, on deck or frozen, and how many for the first one of an unknown kind; how often
    one was frozen for lack of memory, and how many were."""

    held: int = 0
    after_first: int = 0
    frozen: int = 0
    frozen_jobs: int = 0
    longest: tuple[HeldJob, ...] = ()
    """Those that started and were on deck longest before, MAX_LONGEST at most."""

    def with_longest(self, job: HeldJob) -> Restraint:
        """A job that waited for memory has started."""
        longest = sorted((*self.longest, job), key=lambda held: -held.seconds)[:MAX_LONGEST]
        return replace(self, longest=tuple(longest))

    @property
    def freezes(self) -> str:
        """The freezes in words, as several may be of one job; empty if there were none."""
        if not self.frozen:
            return ""
        freezes = f"{self.frozen} {'freeze' if self.frozen == 1 else 'freezes'}"
        if self.frozen == self.frozen_jobs:
            return freezes
        return f"{freezes} of {self.frozen_jobs} {'job' if self.frozen_jobs == 1 else 'jobs'}"


@dataclass(frozen=True, slots=True)
class RemoteUse:
    """The engines that have other machines compile, and how many jobs these have finished, by host."""

    engines: tuple[RemoteEngine, ...] = ()
    finished: Mapping[str, int] = field(default_factory=dict)

    @property
    def slots(self) -> int:
        """How many jobs can be elsewhere at once."""
        return sum(engine.slots for engine in self.engines)


@dataclass(frozen=True, slots=True)
class RamDiskUse:
    """The most that the RAM disk held, and by how much it is expected to grow, in bytes."""

    peak: int = 0
    reserve: int = 0


@dataclass(frozen=True, slots=True)
class OutputUse:
    """The output log: its size, up to which byte all events of it are recorded, and where its last failure ends, those
    of earlier attempts included."""

    size: int = 0
    read: int = 0
    failures_end: int = 0


@dataclass(frozen=True, slots=True)
class LogPart:
    """A part of the output: from byte `start` up to byte `end`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class JobHistory:
    """Jobs that have ended: the last ones, the largest, the slowest, and how many did not fail, by tool."""

    recent: tuple[FinishedJob, ...] = ()
    heaviest: tuple[FinishedJob, ...] = ()
    slowest: tuple[FinishedJob, ...] = ()
    finished_by_tool: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class BuildState:
    """The whole of what is known; see the module's header for the bounds. Without slots, so that `evolve` is cheap."""

    id: str = ""
    name: str = ""
    command: tuple[str, ...] = ()
    cwd: str = ""
    log_path: str = ""
    host: str = ""
    cores: int = 0
    memory_total: int = 0
    version: str = ""
    phase: Phase = "starting"
    seq: int = 0
    time: float = 0.0
    """When the last event was written: the state's own clock."""
    started: float = 0.0
    ended: float | None = None
    outcome: Outcome | None = None
    exit_code: int | None = None
    reason: str = ""
    step: Step | None = None
    engine_pid: int | None = None
    engine_starts: int = 0
    schedulers: Mapping[int, Scheduler] = field(default_factory=dict)
    retired: Retired = field(default_factory=Retired)
    jobs: Mapping[int, Job] = field(default_factory=dict)
    leaving: Mapping[int, Job] = field(default_factory=dict)
    """Jobs whose process has ended, until their end is recorded: ninja does that a moment later."""
    last_jid: int = 0
    history: JobHistory = field(default_factory=JobHistory)
    level: Level = field(default_factory=Level)
    activity: str = ""
    """What runs while no scheduler does, as in events.Sampled."""
    machine: MachineSample | None = None
    cpu: float | None = None
    """The CPU use of the build's processes, as `build_cpu` in events.Sampled."""
    memory: MemoryUse = field(default_factory=MemoryUse)
    restraint: Restraint = field(default_factory=Restraint)
    ramdisk: RamDiskUse = field(default_factory=RamDiskUse)
    remote: RemoteUse = field(default_factory=RemoteUse)
    disk_written: int = 0
    """Bytes that the build wrote to disks, less what was deleted before it got there."""
    compiled_alone: int = 0
    """Compilations that were seen while no scheduler ran, as in events.Sampled."""
    output: OutputUse = field(default_factory=OutputUse)
    repeated: tuple[LogPart, ...] = ()
    """The output of attempts after which their step ran again: a step does only if nothing in it failed by itself."""
    estimate: Estimate | None = None
    timeline: Timeline = field(default_factory=Timeline)
    recent: Timeline = field(default_factory=lambda: Timeline(spacing=RECENT_SPACING))
    """The last minutes of it, however long it is."""
    decisions: tuple[DecisionEntry, ...] = ()
    failures: tuple[Failure, ...] = ()
    killed: tuple[KilledJob, ...] = ()
    """Of the present step, all its attempts."""
    lost: Mapping[str, Lost] = field(default_factory=dict)
    """What kills have cost in the whole build, by who killed (events.KilledBy)."""
    notices: tuple[Notice, ...] = ()
    announced: tuple[str, ...] = ()
    """The occasions for which the person's notify command was called."""
    cache: CacheUse | None = None
    """What a compiler cache did; None while none was seen in use."""
    shared_caches: Mapping[str, SharedCache] = field(default_factory=dict)
    """Those of which there was something to say, by their addresses."""
    verification: Report | None = None
    diagnosis: Diagnosis | None = None
    """Why it failed; None while it has not, or if no engine lived to find out."""

    @property
    def used_hosts(self) -> Mapping[str, int]:
        """How many jobs each other machine compiles now."""
        return Counter(j.host for j in self.jobs.values() if j.host not in HOSTLESS and j.state == "running")

    @property
    def governed(self) -> bool:
        """Whether a scheduler runs, whose jobs can be held."""
        return any(s.ended is None for s in self.schedulers.values())

    @property
    def ending(self) -> bool:
        """Whether the last command has ended, and the engine still looks at what it made, or why it failed."""
        return not self.over and self.step is not None and self.step.ended

    @property
    def over(self) -> bool:
        """True once the build has ended, however it ended."""
        return self.outcome is not None
