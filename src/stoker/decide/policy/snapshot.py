"""What the policy is given and what it answers: frozen values, sizes in bytes, times in seconds.

Unaware of how the figures were measured and of who carries a decision out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from stoker.decide.memory.curves import Curve
from stoker.decide.memory.ramdisk_growth import NO_RAMDISK, SeenRamDisk
from stoker.decide.policy.thresholds import PRESSURE
from stoker.model.events import Paused

Action = Literal["admit", "hold", "freeze", "thaw", "shed"]


@dataclass(frozen=True, slots=True)
class LiveJob:
    """A job that was admitted and has not ended: running, or frozen since then.

    `age` is the CPU seconds it has used, `rss` what its process tree holds now, `peak_rss` the most it was seen to
    hold and `peak_age` its age then; `rise` is the bytes by which it has just grown in a CPU second; `stale`: that was
    before it was stopped, and nothing has been measured since it goes on. `width` is the number of cores it keeps busy.
    `started` orders jobs by age: the least is the oldest. `alone` asks that nothing runs beside it.

    `by_person`: a person froze this very job, and a person thaws it; on a running job: a person set it going, so the
    level stops others first. `by_word`: it was frozen by a decision that says so (`Decision.by_word`). `early`: it was
    admitted by a decision that says so, and has not been stopped since. `returned`: another machine had it, and it was
    stopped as it began here; it waits as a candidate does. `idle`: for some seconds nothing of it has worked here; its
    launcher waits for a host, or for a place that its engine has here.
    """

    jid: int
    name: str
    started: float
    age: float
    rss: float
    curve: Curve
    peak_rss: float = 0.0
    peak_age: float = 0.0
    phase: str = ""
    rise: float = 0.0
    width: float = 1.0
    alone: bool = False
    by_person: bool = False
    by_word: bool = False
    early: bool = False
    stale: bool = False
    returned: bool = False
    idle: bool = False


@dataclass(frozen=True, slots=True)
class Candidate:
    """A job on deck, and what is expected of it.

    `width` is the number of cores it will keep busy. `passed_over` counts younger ones that were admitted before it;
    `alone` asks that it runs before all others and that nothing runs beside it, `first` only the former; `held` says
    that its hold was announced already. `rss` is what it holds: next to nothing, unless it was stopped only after its
    compiler had begun. `chain` is the seconds from its start to the end of the longest chain of jobs that begins with
    it, None where no graph says so. `remote`: its launcher will have another machine compile it.
    """

    jid: int
    name: str
    arrived: float
    curve: Curve
    passed_over: int = 0
    alone: bool = False
    held: bool = False
    width: float = 1.0
    first: bool = False
    rss: float = 0.0
    chain: float | None = None
    remote: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """Everything that a decision depends on.

    `budget` is the tightest memory limit and `available` what is left of it now, whoever uses the rest. `reserve` is
    kept free of promises, and so is what `ramdisk` is expected to grow by. `floor` is where the emergency begins.
    `pressure` is the share (0..100) of time in which some task stalled for memory, None where the kernel does not say,
    of the build's own group (`pressure_own`) or of the whole machine; from `pressure_line` on it may hold back starts.
    `cpu_slots` is how many jobs the cores are for,
    `spare` of them only while memory is plenty; `tokens` is how many more the jobserver has given to tools inside jobs.
    `level` is a person's number, or None for automatic.
    `last_freeze` and `last_shed`, in the time of `now`, are those for memory's sake
    (decisions without `by_word`): what a person's word stopped goes on the moment that it is taken back. `guarded` is
    False where a person said that memory is to be ignored. `costly`: ending a job costs the work of others as well.
    `remote_slots` is how many jobs other machines take at once; `remote_jobs` are those that they compile, which are
    not among `running`, and those of `running` that are about to go there.
    """

    budget: float
    available: float
    reserve: float
    floor: float
    cpu_slots: float
    level: int | None = None
    paused: Paused = "no"
    pressure: float | None = None
    pressure_own: bool = False
    running: tuple[LiveJob, ...] = ()
    frozen: tuple[LiveJob, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    last_freeze: float = -math.inf
    last_shed: float = -math.inf
    guarded: bool = True
    ramdisk: SeenRamDisk = NO_RAMDISK
    pressure_line: float = PRESSURE
    spare: int = 0
    tokens: int = 0
    costly: bool = False
    remote_slots: int = 0
    remote_jobs: int = 0

    @property
    def kept(self) -> float:
        """Bytes that are kept free of promises: the reserve, and what a RAM disk is expected to grow by."""
        return self.reserve + self.ramdisk.growth


@dataclass(frozen=True, slots=True)
class Decision:
    """One thing to do to one job, and why, with the numbers that decided it.

    admit: let a candidate start. hold: a candidate waits for memory (announced once). freeze, thaw: stop a running job,
    let a frozen one go on. shed: kill a frozen job, which runs again later. `by_word` marks a freeze that carries out a
    person's word about all jobs (level, pause, another one alone) and has nothing to do with memory. `early` marks an
    admission for which there is room at first, and not for all of the job: it will be stopped before that matters.
    """

    action: Action
    jid: int
    why: str
    by_word: bool = False
    early: bool = False
