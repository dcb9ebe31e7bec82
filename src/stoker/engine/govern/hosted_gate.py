"""Stops and continues hosted compilers, which a compiler cache's server runs for a job, together with that job, as far
as that harms nobody else.

sccache's server runs at most as many compilers as the machine has CPUs (its own jobserver), including those of other
builds, and a stopped one keeps its place. So one place is always left: otherwise jobs that may run, of this or another
build, would wait forever. Unaware of how they are found.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace

from stoker.act import gate
from stoker.contract.process import Key
from stoker.decide.policy.snapshot import Decision
from stoker.engine.jobs.managed_job import Life, ManagedJob
from stoker.engine.jobs.table import JobTable
from stoker.sense.proc.jobs import JobUse


class HostedGate:
    """Which hosted compilers are stopped. `places`: how many may be, at most."""

    def __init__(self, places: int | None = None) -> None:
        self._places = (os.cpu_count() or 1) - 1 if places is None else places
        self._held: dict[Key, Key] = {}
        self.used = False
        """Whether any job so far had a hosted compiler: without one there is nothing to do."""
        self.version = 0
        """Increases when a process that acts in the engine's place must know about a change."""

    def see(self, member: ManagedJob, use: JobUse) -> None:
        """Note a job's hosted compilers. One that an earlier engine stopped continues if its job does."""
        roots = tuple(tree[0] for tree in use.hosted)
        if roots == member.target.hosted:
            return
        self.used = True
        for tree in use.hosted:
            if tree[0] not in member.target.hosted and member.life is Life.RUNNING:
                gate.nudge(tree)
        member.target = replace(member.target, hosted=roots)

    def add(self, member: ManagedJob, hosted: Key) -> None:
        """Note a compiler that has just been started for a job."""
        self.used = True
        if hosted not in member.target.hosted:
            member.target = replace(member.target, hosted=(*member.target.hosted, hosted))

    def settle(self, members: Iterable[ManagedJob]) -> None:
        """Freeze or thaw hosted compilers after their jobs were frozen or thawed, or have ended."""
        frozen = [m for m in members if m.life is Life.FROZEN and m.target.hosted and m.lives]
        wanted = {hosted: m.job.key for m in frozen for hosted in m.target.hosted}
        free = [hosted for hosted in self._held if hosted not in wanted]
        if free:
            gate.release_hosted(free)
        kept = {hosted: job for hosted, job in self._held.items() if hosted in wanted}
        more = [hosted for hosted in wanted if hosted not in kept][: max(0, self._places - len(kept))]
        if more:
            gate.hold_hosted(more)
        held = {**kept, **{hosted: wanted[hosted] for hosted in more}}
        self.version += held != self._held
        self._held = held

    @property
    def held(self) -> Mapping[Key, Key]:
        """The stopped compilers, each with its job."""
        return self._held


def without_starting(decisions: Iterable[Decision], jobs: JobTable) -> tuple[Decision, ...]:
    """Never stop a client that starts a server: it would fail while it waits for the server, and so would its job."""
    return tuple(d for d in decisions if d.action != "freeze" or (m := jobs.get(d.jid)) is None or not m.seen.starting)
