"""Jobs of a table, without processes: what they are expected to take is fixed."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

from stoker.act.gate import Target
from stoker.decide.memory.curves import Curve, flat
from stoker.engine.jobs.interruptions import Interruptions
from stoker.engine.jobs.managed_job import Life, ManagedJob
from stoker.sense.proc.jobs import JobProcess, JobUse

GIB = 2**30

NOT_INTERRUPTED = Interruptions(lambda: False, lambda: None)
"""Nobody stops the build, and the supervisor has found nothing left over."""


@dataclass
class FixedExpectations:
    """Expectations by output; 0.1 GiB for all others. Keeps what it should learn."""

    sizes: dict[str, float] = field(default_factory=dict)
    learnt: list[tuple[str, bool, float]] = field(default_factory=list)
    adopted_jobs: list[int] = field(default_factory=list)
    curves: dict[str, Curve] = field(default_factory=dict)
    sampled: list[tuple[int, float]] = field(default_factory=list)
    version: int = 0

    def set_cores(self, cores: float) -> None:
        pass

    def expect(self, jid: int | None, output: str, tool: str, argv: tuple[str, ...], pid: int) -> Curve:
        return self.curves.setdefault(output, flat(self.sizes.get(output, 0.1 * GIB), 60.0))

    def width(self, argv: tuple[str, ...]) -> float:
        return 1.0

    def sample(self, jid: int, cpu_seconds: float, rss: float, phase: str, ran: float) -> None:
        self.sampled.append((jid, ran))

    def adopted(self, jid: int) -> None:
        self.adopted_jobs.append(jid)

    def finished(self, jid: int, output: str, tool: str, argv: tuple[str, ...], ok: bool, seconds: float) -> None:
        self.learnt.append((output, ok, seconds))

    def lost(self, jid: int) -> None:
        self.learnt.append(("lost", False, 0.0))


def use_of(job: JobProcess, *, rss: int = 0, cpu_seconds: float = 0.0) -> JobUse:
    """What a job uses."""
    return JobUse(job, rss, rss, 0.0, cpu_seconds, "", "running")


def managed_job(jid: int, life: Life = Life.RUNNING, *, use: JobUse | None = None, sid: int = 1) -> ManagedJob:
    """A job whose process has the number of the job."""
    seen = use or use_of(JobProcess(jid, jid, (1, 1), 0.0, ("cc",), f"{jid}.o", "cxx"))
    job = replace(seen.job, pid=jid, start_ticks=jid)
    now = time.monotonic()
    return ManagedJob(jid, sid, job, Target(jid, jid, leads=False), life, now, now, now, replace(seen, job=job))
