"""What was measured of the machine and of a job at one instant: frozen values, in the units of the journal.

Unaware of how they were measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

OUTLOOK_SECONDS = (10, 20, 40, 60, 90, 120, 180, 300)
"""Seconds from now that bound the stretches of an outlook: near ones are known best and matter most."""


@dataclass(frozen=True, slots=True)
class GpuSample:
    """One GPU at one instant. A figure that the driver does not report is None."""

    index: int
    name: str
    utilisation: float | None
    memory_used: int | None
    memory_total: int | None
    temperature: float | None = None
    power_watts: float | None = None


@dataclass(frozen=True, slots=True)
class Pressure:
    """PSI of one resource: share of the last 10 s in which some, or all, tasks stalled.

    `own`: those were tasks of a control group in which nothing but the build lives, and not of the whole machine.
    """

    some: float
    full: float
    own: bool = False


@dataclass(frozen=True, slots=True)
class RamDisk:
    """A folder in memory for temporary files. Sizes in bytes: `used` of `size` allowed; `free` is what its file system
    has left, None if that has no limit.

    `used` counts as memory in use already: it is part of MachineSample.memory_used.
    """

    path: str
    used: int
    size: int
    free: int | None = None


@dataclass(frozen=True, slots=True)
class MachineSample:
    """The machine at one instant, as far as it concerns the build.

    `memory_budget` is the tightest of the machine and every enclosing cgroup limit; `memory_limit_source`
    names it ("machine", or the cgroup's path). `memory_used` is what counts against that limit and cannot be
    reclaimed; `memory_available` is what is left of it. `cpu_available` is the number of cores the build may use
    (affinity and cgroup quota). `load_held` is the part of `load` that jobs make which stoker has stopped.
    """

    cpu_percent: float
    cpu_cores: tuple[int, ...]
    cpu_available: float
    memory_budget: int
    memory_used: int
    memory_available: int
    memory_limit_source: str
    swap_used: int = 0
    swap_total: int = 0
    load: float = 0.0
    pressure_cpu: Pressure | None = None
    pressure_memory: Pressure | None = None
    pressure_io: Pressure | None = None
    disk_free: int | None = None
    disk_write_rate: float | None = None
    gpus: tuple[GpuSample, ...] = ()
    gpu_note: str = ""
    ramdisk: RamDisk | None = None
    load_held: float = 0.0

    @property
    def limiting_group(self) -> str:
        """The path of the control group whose limit is the budget; empty if the machine's is, or a person's."""
        return self.memory_limit_source if self.memory_limit_source.startswith("/") else ""

    def share_of_cpu(self, used: float) -> float:
        """Return CPU use in percent of one core as percent of the whole machine, at most what all programs use."""
        return min(self.cpu_percent, used / max(1, len(self.cpu_cores)))

    def stalls_by_others(self, reserve: float) -> bool:
        """Whether others than the build stall on memory: it has a group of its own that shows it, or it does not, and
        has more left than the `reserve` in bytes that is kept free of promises."""
        stall = self.pressure_memory
        return stall is not None and not stall.own and self.memory_available >= reserve


@dataclass(frozen=True, slots=True)
class JobSample:
    """A running job at one instant: its process tree's memory and CPU (percent of one core), the innermost process."""

    jid: int
    rss: int
    cpu: float
    phase: str
    state: Literal["running", "frozen"] = "running"
    """By the process's own state: somebody else may have stopped it."""
    host: str = ""
    """The other machine that compiles it now; empty while this one does."""
    phase_pid: int = 0
    """The process that `phase` is the name of; 0: the job's own, or unknown."""
