"""The policy's input and output: frozen values, sizes in bytes, times in seconds.

Knows neither how the figures were measured nor who carries out a decision.
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
    hold and `peak_age` its age then. `rise` is its latest growth in bytes per CPU second; `stale` means that `rise` was
    measured before the job was stopped and not again since it continued. `width` is the number of cores it keeps busy,
    `wants` the same at most, by what it does now: less than one if it sleeps or waits for a disk in between.
    `started` orders jobs by age: the smallest is the oldest. `alone` requires that nothing runs next to it.

    `by_person`: a user froze this very job, and only a user thaws it; on a running job: a user thawed it, so the level
    stops others first. `by_word`: it was frozen by a decision with `Decision.by_word`. `early`: it was admitted by a
    decision with `Decision.early` and has not been stopped since. `returned`: another machine had it, and it was
    stopped when it began here; it waits like a candidate. `idle`: none of its processes has worked here for some
    seconds; its launcher waits for a host, or for one of its engine's places on this machine.
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
    wants: float = math.inf

    @property
    def cores(self) -> float:
        """The cores that it will keep busy in the next seconds, if it gets them."""
        return min(self.width, self.wants)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A job on deck, and what is expected of it.

    `width` is the number of cores it will keep busy. `passed_over` counts younger jobs that were admitted before it;
    `alone` requires that it runs before all others with nothing next to it, `first` only the former; `held` means that
    its hold was already announced. `rss` is what it holds: next to nothing, unless it was stopped only after its
    compiler had begun. `chain` is the seconds from its start to the end of the longest chain of jobs that begins with
    it, None if no graph shows that. `remote`: its launcher will have another machine compile it.
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
    kept free of promises, and so is the expected growth of `ramdisk`. The emergency begins below `floor`. `pressure` is
    the share (0..100) of time in which some task stalled on memory, in the build's own group (`pressure_own`) or on the
    whole machine, None if the kernel does not report it; from `pressure_line` on it may hold back starts. `cores` is
    how many the build may use, and `cpu_slots` the number of jobs that they can run, `spare` of them only while memory
    is plenty; `tokens` is how many more the jobserver has given to tools inside jobs. `level` is the user's number, or
    None for automatic. `last_freeze` and `last_shed` are times on the clock of `now`, and count only decisions about
    memory (without `by_word`): a job that a user command stopped continues as soon as that is withdrawn. `guarded` is
    False if a user has said to ignore memory. `costly`: ending a job also costs the work of others. `remote_slots` is
    how many jobs other machines take at once; `remote_jobs` counts the jobs that they compile, which are not in
    `running`, and those in `running` that are about to go there; `remote_waiting` counts those among them that wait for
    a host and have yet to preprocess here. `cores_taken`: other programs keep the cores busy, of which the build uses
    little; it only explains why places stay taken.
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
    remote_waiting: int = 0
    cores_taken: bool = False
    cores: float = math.inf

    @property
    def kept(self) -> float:
        """Bytes that are kept free of promises: the reserve, and the expected growth of a RAM disk."""
        return self.reserve + self.ramdisk.growth


@dataclass(frozen=True, slots=True)
class Decision:
    """One action on one job, and the reason, with the numbers that decided it.

    admit: start a candidate. hold: a candidate waits for memory (announced once). freeze, thaw: stop a running job,
    continue a frozen one. shed: kill a frozen job, which runs again later. `by_word` marks a freeze that carries out a
    user's command about all jobs (level, pause, another one alone) and has nothing to do with memory; `announced`: the
    report of that command covers this freeze, which needs no report of its own. `early` marks an admission for which
    there is room only at first: the job will be stopped before the rest matters.
    """

    action: Action
    jid: int
    why: str
    by_word: bool = False
    early: bool = False
    announced: bool = False
