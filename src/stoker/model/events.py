"""The vocabulary of the journal: every fact about a build is one of these frozen values.

Unaware of how a fact was obtained and of who will look at it. Times are Unix seconds, sizes are bytes,
shares are percent (0..100). New fields get a default, so that an older journal still reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal, get_args

from stoker.model.cache_use import CacheUse, SharedCache
from stoker.model.diagnosis import Diagnosis
from stoker.model.lessons import Lesson, Stated
from stoker.model.remote import RemoteEngine
from stoker.model.report import Report, Severity
from stoker.model.samples import JobSample, MachineSample
from stoker.model.tool import Tool

JOURNAL_VERSION = 1
"""Version of the journal's format; increased only when an older reader would misread a newer journal."""

Outcome = Literal["done", "failed", "stopped"]
JobOutcome = Literal["ok", "failed", "unknown", "dropped", "interrupted"]
"""dropped: it was on deck when another job failed, and never ran: ninja would not have started it without stoker.
interrupted: its scheduler was killed, or the build stopped, before it ended."""

JobState = Literal["running", "frozen", "on_deck"]
"""on_deck: held at birth, before it did anything; frozen: stopped later, with the memory that it holds."""

MovedBy = Literal["", "person", "word", "alone", "fallback"]
"""person: requested for this very job; word: a person's pause or level holds it; alone: another job runs alone;
fallback: it compiles here after all, and waits for its turn like a newborn; empty: the governor's own decision."""

KilledBy = Literal["memory", "unknown", "shed", "person"]
"""memory: the kernel, for lack of memory, or the compiler itself when it was refused more; unknown: SIGKILL from an
unknown sender; shed: stoker, to save the others; person: somebody through stoker."""

WaitCause = Literal[
    "", "place", "memory", "room", "pressure", "level", "alone", "paused", "person", "rest", "unknown", "host"
]
"""What a job on deck or frozen waits for. place: another job to end, since as many run as may; memory: room for itself;
room: the room that is kept for a job ahead of it; pressure: the build's own group to stall less on memory; level,
paused: a person's number or pause to end; alone: a job that runs alone; person: to be thawed by hand; rest: the effect
of the last freeze to show; unknown: the first job of an unknown kind to show what it needs; host: a slot of another
machine. Empty: not known yet."""

Paused = Literal["no", "soft", "hard"]
"""soft: nothing new starts. hard: everything is frozen."""


@dataclass(frozen=True, slots=True)
class BuildStarted:
    """The build's identity; always the first event of a journal."""

    kind: ClassVar[str] = "build_started"
    id: str
    name: str
    command: tuple[str, ...]
    cwd: str
    log_path: str
    host: str
    cores: int
    memory_total: int
    version: str


@dataclass(frozen=True, slots=True)
class EngineStarted:
    """An engine started to write this journal; `adopted` if the build was already running."""

    kind: ClassVar[str] = "engine_started"
    pid: int
    adopted: bool


@dataclass(frozen=True, slots=True)
class StepStarted:
    """Step `index` of `count` (from 1) runs as process `pid`.

    `attempt` counts from 1: a step whose compilers were killed for memory is run again. `oom_kills` is the number of
    processes that the kernel had killed by then for lack of memory, None where it does not say. What the attempt writes
    begins in the output log at byte `log_start`; what another one said before that is forgiven.
    """

    kind: ClassVar[str] = "step_started"
    index: int
    count: int
    name: str
    command: tuple[str, ...]
    pid: int
    attempt: int = 1
    oom_kills: int | None = None
    log_start: int = 0


@dataclass(frozen=True, slots=True)
class StepEnded:
    """A step ended; `exit_code` is None if it is unknown."""

    kind: ClassVar[str] = "step_ended"
    index: int
    exit_code: int | None


@dataclass(frozen=True, slots=True)
class SchedulerStarted:
    """A ninja, samurai or make was found below the build. `sid` numbers it within this journal, from 1.

    `width` is its -j as far as its command line or its default says. `parent` is the scheduler (sid) below which
    it runs, for an ExternalProject or a sub-make. `start_ticks` is when its process started, in clock ticks since
    boot: that and its pid identify it, however clocks are set; None in older journals. `container` is the ID of the
    one that it runs in, beside the engine; its directory is one of that container's. `failures` is how many jobs may
    fail until it starts nothing more, None where it goes on however many do, or in an older journal.
    """

    kind: ClassVar[str] = "scheduler_started"
    sid: int
    tool: Literal["ninja", "samurai", "make"]
    pid: int
    directory: str
    version: str
    width: int | None
    parent: int | None = None
    start_ticks: int | None = None
    container: str = ""
    failures: int | None = None


@dataclass(frozen=True, slots=True)
class SchedulerPlanned:
    """How many jobs a scheduler has in all for this run, and of which tools (those still to come and done).

    `source` says how this is known: a dry run on copies of ninja's logs, ninja's own status line, or make's
    percentage (then `total` is absent and `percent` is set). That counts what has begun (`begun`), also jobs that run
    or wait on deck, which `percent` leaves out. Edges by which ninja renews its own manifest are in no total, as ninja
    restarts its count after them. `after` says for each group of jobs (JobFinished.group) which groups,
    with lower numbers, must all have ended before; empty where that is not known, or too much to record.
    """

    kind: ClassVar[str] = "scheduler_planned"
    sid: int
    total: int | None
    source: Literal["dry-run", "status", "percent"]
    tools: Mapping[str, int] = field(default_factory=dict)
    percent: float | None = None
    after: tuple[tuple[int, ...], ...] = ()
    begun: float | None = None


@dataclass(frozen=True, slots=True)
class SchedulerEnded:
    """A scheduler's process is gone."""

    kind: ClassVar[str] = "scheduler_ended"
    sid: int


@dataclass(frozen=True, slots=True)
class WorkLost:
    """What this step's schedulers had built in a folder is gone: the attempt that begins builds it again."""

    kind: ClassVar[str] = "work_lost"
    directory: str


@dataclass(frozen=True, slots=True)
class JobStarted:
    """A job (one of a scheduler's own children) was seen. `jid` numbers it within this journal, from 1.

    `expected` is the memory it is predicted to need at its peak, if anything predicts it, and `lasts` the seconds that
    it is predicted to run on a core of its own. `start_ticks` is as in SchedulerStarted. `guessed`: jobs like it differ
    so much that `expected` says little about one of them. `is_c`: its command line shows that it compiles C.
    """

    kind: ClassVar[str] = "job_started"
    jid: int
    sid: int
    pid: int
    output: str
    tool: Tool
    started: float
    state: JobState = "running"
    expected: int | None = None
    start_ticks: int | None = None
    lasts: float | None = None
    guessed: bool = False
    is_c: bool = False


@dataclass(frozen=True, slots=True)
class JobMoved:
    """A job was let go from the deck, frozen or thawed, or another peak is `expected` of it than was recorded before.

    `by` says who decided; an engine that takes over goes by it. `alone`: nothing runs beside it; `alone_by` is the
    login name of the person who said so, empty where stoker did. `lasts` and `guessed` are as in JobStarted, where
    `expected` is news.
    """

    kind: ClassVar[str] = "job_moved"
    jid: int
    state: JobState
    expected: int | None = None
    by: MovedBy = ""
    alone: bool = False
    alone_by: str = ""
    lasts: float | None = None
    guessed: bool = False


@dataclass(frozen=True, slots=True)
class LevelSet:
    """How many jobs may run from now on: `target`, chosen by stoker ("auto") or by a person ("manual").

    `guarded` is False when a person has switched off the care for memory in so many words.
    """

    kind: ClassVar[str] = "level_set"
    mode: Literal["auto", "manual"]
    target: int
    paused: Paused = "no"
    guarded: bool = True


@dataclass(frozen=True, slots=True)
class JobsExited:
    """The processes of these jobs have ended. The result of each is in its JobFinished."""

    kind: ClassVar[str] = "jobs_exited"
    jids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class JobsWaiting:
    """Why these jobs, on deck or frozen, wait: `why` in words and numbers, `cause` in one word. It holds until the
    next word about them, or until they go on."""

    kind: ClassVar[str] = "jobs_waiting"
    jids: tuple[int, ...]
    cause: WaitCause
    why: str


@dataclass(frozen=True, slots=True)
class JobFinished:
    """A job ended. `jid` is None when it was too short to be seen running.

    `log_offset` is the place in the scheduler's .ninja_log behind this job's record, so that an engine that
    starts later counts no job twice; None for jobs that ninja does not record. `lesson` is what the engine learnt from
    the job, None where it learnt nothing; `stated` is how long the job was expected to take. `counted` is False where
    the job is not one of those in the total: ninja renewed its own manifest by it, or its record was counted before it
    was recognised as this job's. `group` is its group in the scheduler's graph (SchedulerPlanned.after), None where no
    plan knows it. `host` is the other machine that compiled it, empty where this one did. `archs` are the CPU
    seconds of nvcc's passes by GPU architecture (`80`, `90a`), as far as they were seen. `elsewhere`: how many of
    `seconds` had passed when another machine last gave it back, 0 where none did.
    """

    kind: ClassVar[str] = "job_finished"
    jid: int | None
    sid: int
    output: str
    tool: Tool
    seconds: float
    outcome: JobOutcome
    peak_rss: int | None = None
    cpu_seconds: float | None = None
    log_offset: int | None = None
    lesson: Lesson | None = None
    stated: Stated | None = None
    counted: bool = True
    group: int | None = None
    host: str = ""
    archs: Mapping[str, float] = field(default_factory=dict)
    elsewhere: float = 0.0


@dataclass(frozen=True, slots=True)
class JobsUncounted:
    """Jobs that were counted as finished and do not count: by them ninja renewed its own manifest, and then it began
    to count again. `tools` says how many, by tool.
    """

    kind: ClassVar[str] = "jobs_uncounted"
    sid: int
    tools: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class JobsBlocked:
    """So many jobs of a scheduler wait for jobs that have failed: it will not start them, however long it goes on. The
    last one counts.
    """

    kind: ClassVar[str] = "jobs_blocked"
    sid: int
    jobs: int


@dataclass(frozen=True, slots=True)
class Sampled:
    """Everything that was measured at one tick.

    `build_rss` and `build_processes` cover the whole process tree of the build. `activity` is a short description of
    what runs when no scheduler does (`cmake -S . -B build`), else empty. `log_size` is the output log's length, and
    all of it up to byte `log_read` has been recorded.
    `promised` is the memory that the running and frozen jobs together are expected to hold, at most at one moment;
    `reserve` is what is kept free of promises, with `ramdisk_reserve`, by which the RAM disk is expected to grow.
    `build_written` is what the build wrote to disks so far, less what was deleted before it got there. `ungoverned`
    counts, by program, the compilers that run while no scheduler does, which nobody can hold. `outlook` is the most
    that the running jobs are expected to hold in each stretch of time to come (samples.OUTLOOK_SECONDS), in bytes;
    empty if none runs.
    `build_cpu` is the build's CPU use in percent of one core, also by jobs that have ended since the last sample; None
    if that is not known. `compiled_alone` is how many compilations were seen so far while no scheduler ran: nobody has
    governed them.
    """

    kind: ClassVar[str] = "sampled"
    machine: MachineSample
    jobs: tuple[JobSample, ...]
    build_rss: int
    build_processes: int
    build_written: int
    activity: str
    log_size: int
    promised: int = 0
    reserve: int = 0
    ramdisk_reserve: int = 0
    log_read: int = 0
    ungoverned: Mapping[str, int] = field(default_factory=dict)
    outlook: tuple[int, ...] = ()
    build_cpu: float | None = None
    compiled_alone: int = 0


@dataclass(frozen=True, slots=True)
class RemoteSeen:
    """The engines that have other machines compile for this build, with their hosts; the last one counts."""

    kind: ClassVar[str] = "remote_seen"
    engines: tuple[RemoteEngine, ...]


@dataclass(frozen=True, slots=True)
class CacheUsed:
    """What the compiler cache did for this build so far; the last one counts."""

    kind: ClassVar[str] = "cache_used"
    found: CacheUse


@dataclass(frozen=True, slots=True)
class CacheReached:
    """Whether a cache that several machines share answers, when that changes."""

    kind: ClassVar[str] = "cache_reached"
    found: SharedCache


@dataclass(frozen=True, slots=True)
class Estimated:
    """The remaining time in seconds: a middle and a band. `critical` is the running job (jid) from which the longest
    chain of jobs leads to the end, None where no plan says so."""

    kind: ClassVar[str] = "estimated"
    seconds: float
    low: float
    high: float
    critical: int | None = None


@dataclass(frozen=True, slots=True)
class FailureFound:
    """A step that failed, as the build's own output reports it. Offsets are bytes of the output log.

    `excerpt` holds the first lines of its output, sanitised.
    """

    kind: ClassVar[str] = "failure_found"
    output: str
    command: str
    exit_code: int | None
    excerpt: tuple[str, ...]
    log_start: int
    log_end: int


@dataclass(frozen=True, slots=True)
class JobKilled:
    """A job did not fail but was killed; if the step runs again, `output` is made again.

    `rss` is the most that it was seen to hold, None if nobody saw it. `jid` is the job's number where it was killed
    on purpose, which identifies it even before its `output` is known (empty then); `who` is a person's login name, and
    `why` the reason in words.
    """

    kind: ClassVar[str] = "job_killed"
    output: str
    by: KilledBy
    rss: int | None = None
    jid: int | None = None
    who: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision and its reason. `who` is "governor", "engine" or the person's login name."""

    kind: ClassVar[str] = "decided"
    who: str
    what: str
    why: str


@dataclass(frozen=True, slots=True)
class Noticed:
    """Something the person should know that is nobody's decision: a fallback in use, a limit met."""

    kind: ClassVar[str] = "noticed"
    severity: Severity
    text: str


@dataclass(frozen=True, slots=True)
class HookCalled:
    """The person's notify command is called for an occasion (occasions.Occasion)."""

    kind: ClassVar[str] = "hook_called"
    occasion: str


@dataclass(frozen=True, slots=True)
class HookEnded:
    """It has ended, with `exit_code` (negative for a signal, None: it could not be started), after so many seconds."""

    kind: ClassVar[str] = "hook_ended"
    occasion: str
    exit_code: int | None
    seconds: float


@dataclass(frozen=True, slots=True)
class StopRequested:
    """Somebody asked to end the build."""

    kind: ClassVar[str] = "stop_requested"
    who: str
    force: bool


@dataclass(frozen=True, slots=True)
class Verified:
    """What the binaries that the build wrote are good for; before the end of a build that ended well."""

    kind: ClassVar[str] = "verified"
    found: Report


@dataclass(frozen=True, slots=True)
class Diagnosed:
    """Why the build failed, as far as its output shows; before the end of a build that failed."""

    kind: ClassVar[str] = "diagnosed"
    found: Diagnosis


@dataclass(frozen=True, slots=True)
class BuildEnded:
    """The build's end; the last event that changes what a viewer shows.

    `exit_code` follows the shell's convention (128 + signal) and is None when it was lost. `written` is the last count
    of what was written to disks, None if that could not be taken; so is `log_size`, the output log's length in bytes.
    """

    kind: ClassVar[str] = "build_ended"
    outcome: Outcome
    exit_code: int | None
    reason: str
    written: int | None = None
    log_size: int | None = None


Event = (
    BuildStarted
    | EngineStarted
    | StepStarted
    | StepEnded
    | SchedulerStarted
    | SchedulerPlanned
    | SchedulerEnded
    | WorkLost
    | JobStarted
    | JobMoved
    | LevelSet
    | JobsExited
    | JobsWaiting
    | JobFinished
    | JobsUncounted
    | JobsBlocked
    | Sampled
    | RemoteSeen
    | CacheUsed
    | CacheReached
    | Estimated
    | FailureFound
    | JobKilled
    | Decided
    | Noticed
    | HookCalled
    | HookEnded
    | StopRequested
    | Verified
    | Diagnosed
    | BuildEnded
)

EVENT_TYPES: tuple[type[Event], ...] = get_args(Event)


@dataclass(frozen=True, slots=True)
class Record:
    """One line of the journal: an event, its number (from 1; a gap is what a full disk cost) and its Unix time."""

    seq: int
    time: float
    event: Event
