"""Classifies a job that has just been found: held or running, allowed to be stopped or not.

Reads a little of /proc. Sends no signal.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import NamedTuple

from stoker.act.gate import Target
from stoker.act.tree import shows_stop
from stoker.engine.jobs.managed_job import Life, ManagedJob
from stoker.model import state as state_of
from stoker.model.events import JobState
from stoker.model.remote import HOSTLESS
from stoker.sense.proc.jobs import JobProcess, JobUse
from stoker.sense.proc.processes import CLK_TCK, PROC, Process
from stoker.sense.proc.procfs import read_link
from stoker.sense.proc.schedulers import SchedulerProcess

YOUNG = 3.0
"""Seconds after its birth within which a job that is found late is still held: below a ninja that was itself found only
by the last scan, or after a stall of the machine. An older job has memory to lose, so it runs."""

UNTOUCHED = 0.05
"""CPU seconds that a job stopped at birth may have used: the start of a shell."""


class Birth(NamedTuple):
    """A job that was not known before. `before` is its record in the journal, if an earlier engine knew it."""

    jid: int
    sid: int
    use: JobUse
    process: Process
    scheduler: SchedulerProcess
    before: state_of.Job | None = None

    @property
    def job(self) -> JobProcess:
        """What was found."""
        return self.use.job


class Clocks(NamedTuple):
    """One instant on both clocks, in seconds: jobs born in the same hundredth of a second must have the same age.

    If the clock were read for each of them, the last one read would seem the oldest.
    """

    monotonic: float
    boottime: float

    @classmethod
    def now(cls) -> Clocks:
        """This instant."""
        return cls(time.monotonic(), time.clock_gettime(time.CLOCK_BOOTTIME))

    def arrival(self, start_ticks: int) -> float:
        """Return when a process started, on the monotonic clock."""
        return self.monotonic - max(0.0, self.boottime - start_ticks / CLK_TCK)


def by_age(births: Iterable[Birth]) -> list[Birth]:
    """Oldest first."""
    return sorted(births, key=lambda b: (b.job.start_ticks, b.job.pid))


def managed(birth: Birth, now: float, clocks: Clocks, *, held: bool) -> ManagedJob:
    """Return the job at the start of its life here; `now` is Unix time. `held`: newborn jobs wait on deck.

    A job that an earlier engine knew keeps its state, the order that put it there, the time for which it stood, and the
    other machine that compiles it, until something shows that it does not.
    """
    before, fixed = birth.before, is_fixed(birth)
    state: JobState = "running" if fixed else arrival_state(birth, now, held=held)
    since = before.running_since if before is not None else None
    return ManagedJob(
        birth.jid,
        birth.sid,
        birth.job,
        target_of(birth),
        _life(state, newborn=before is None),
        arrived=clocks.arrival(birth.job.start_ticks),
        admitted=clocks.monotonic - max(0.0, now - since) if since is not None else clocks.monotonic,
        since=clocks.monotonic,
        seen=birth.use,
        known_as=before.state if before is not None else None,
        fixed=fixed,
        whole=before is not None,
        alone=before is not None and before.alone,
        alone_by=before.alone_by if before is not None else "",
        moved_by=before.moved_by if before is not None and before.state == state else "",
        announced_peak=(before.expected or 0) if before is not None else 0,
        announced_guess=before is not None and before.guessed,
        idle=max(0.0, now - birth.job.started - before.age(now)) if before is not None else 0.0,
        host=before.host if before is not None and state == "running" else "",
        was_away=_other_machine(before),
        returned=before is not None and before.elsewhere > 0.0 and not before.host,
        elsewhere=before.elsewhere if before is not None else 0.0,
    )


def _life(state: JobState, *, newborn: bool) -> Life:
    if state == "on_deck":
        return Life.NEWBORN if newborn else Life.ON_DECK
    return Life.FROZEN if state == "frozen" else Life.RUNNING


def left_behind(before: state_of.Job, scheduler: SchedulerProcess, last_seen: float) -> ManagedJob:
    """Return a job of the journal that ended while no engine ran, as far as the journal knows it; an engine last looked
    at Unix time `last_seen`."""
    job = JobProcess(
        before.pid, before.start_ticks or -before.jid, scheduler.key, before.started, (), before.output, before.tool
    )
    use = JobUse(job, before.rss, before.peak_rss, before.cpu, 0.0, before.phase, "running")
    target = Target(job.pid, job.start_ticks, leads=False)
    clock = time.monotonic()
    return ManagedJob(
        before.jid,
        before.sid,
        job,
        target,
        Life.RUNNING,
        clock,
        clock,
        clock,
        use,
        known_as=before.state,
        watched=False,
        was_away=_other_machine(before),
        idle=max(0.0, last_seen - before.started - before.age(last_seen)),
        elsewhere=before.elsewhere,
    )


def _other_machine(before: state_of.Job | None) -> str:
    return before.host if before is not None and before.host not in HOSTLESS else ""


def target_of(birth: Birth) -> Target:
    """Return whom to send signals to."""
    return Target(birth.job.pid, birth.job.start_ticks, birth.process.pgrp == birth.job.pid)


def arrival_state(birth: Birth, now: float, *, held: bool) -> JobState:
    """Say whether it is on deck: it is young and jobs are held at all, or an earlier engine stopped it."""
    process, before = birth.process, birth.before
    if before is not None and before.state == "frozen" and birth.use.state == "frozen":
        return "frozen"  # its launcher, which may be its first process, continues
    # A shell that vforked as it was stopped waits in the kernel (D) for its child; the child shows the stop.
    if process.state in "Tt" or (process.state == "D" and shows_stop(birth.job.key)):
        used = (process.cpu_ticks + process.child_ticks) / CLK_TCK
        if birth.before is not None:
            return "on_deck" if birth.before.state == "on_deck" else "frozen"
        return "on_deck" if used <= UNTOUCHED else "frozen"
    young = birth.before is None and now - birth.job.started < YOUNG
    return "on_deck" if held and young else "running"


def is_fixed(birth: Birth) -> bool:
    """Say whether a job must never be stopped.

    Ninja gives every job a process group of its own, except jobs of the console pool, which may own the terminal. Make
    and samurai create no groups. There, a job whose stdout is not the scheduler's (make) is a $(shell ...) that make
    waits for, and one whose stdout is (samurai) is in the console pool.
    """
    process, tool = birth.process, birth.scheduler.tool
    if tool == "ninja":
        return process.pgrp != process.pid
    own, schedulers = (read_link(f"{PROC}/{pid}/fd/1") for pid in (process.pid, birth.scheduler.pid))
    if own is None or schedulers is None:
        return False
    return own == schedulers if tool == "samurai" else own != schedulers and own.startswith("pipe:")
