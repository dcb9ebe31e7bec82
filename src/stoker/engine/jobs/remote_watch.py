"""Finds which jobs another machine compiles, through the readers of the engines that the build's launchers belong to.

Reads nothing if no job has a launcher. Moves and stops no job.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from stoker.contract.process import Key
from stoker.engine.jobs.managed_job import ManagedJob
from stoker.model import events as ev
from stoker.model.remote import UNNAMED, RemoteEngine, RemoteKind, got_its_name
from stoker.sense.proc.jobs import JobUse
from stoker.sense.remote.exchange import in_exchange
from stoker.sense.remote.remote_reader import RemoteReader

REMEDIES: dict[RemoteKind, str] = {
    "distcc": "Look whether distccd runs there",
    "icecream": "Look whether iceccd runs there, and the scheduler",
    "sccache": "Look whether `sccache-dist server` runs there",
}
"""What a user can do about a lost host."""

NEWS_SECONDS = 5.0
"""Minimum time between two events about hosts: the slots that other builds use change all the time."""


class RemoteWatch:
    """The remote engines of one build."""

    def __init__(
        self, make_readers: Callable[[], Iterable[RemoteReader]], known: Sequence[RemoteEngine] = (), at: float = 0.0
    ) -> None:
        """`make_readers` is called before the first job with a launcher is looked at. `known` is what the predecessor
        had announced by Unix time `at`."""
        self._make_readers = make_readers
        self._engines: dict[RemoteKind, RemoteEngine] = {engine.kind: engine for engine in known}
        self._here: frozenset[Key] = frozenset()
        self._fallbacks: Counter[str] = Counter()
        self._announced: tuple[RemoteEngine, ...] = tuple(known)
        self._announced_at = 0.0
        for engine in known:
            self._fallbacks.update({host.name: host.fallbacks for host in engine.hosts})
            if (reader := self._readers.get(engine.kind)) is not None:
                reader.adopt(engine, at)

    @cached_property
    def _readers(self) -> dict[RemoteKind, RemoteReader]:
        return {reader.kind: reader for reader in self._make_readers()}

    @property
    def _made(self) -> dict[RemoteKind, RemoteReader]:
        """The readers, if any has been needed."""
        return self._readers if "_readers" in self.__dict__ else {}

    @property
    def slots(self) -> int:
        """How many jobs other machines can take at once, as far as known."""
        return sum(engine.slots for engine in self._engines.values())

    @property
    def engaged(self) -> bool:
        """Whether any job of this build had a launcher."""
        return bool(self._engines)

    def has_engine(self, kind: RemoteKind | None) -> bool:
        """Return whether jobs with that launcher may go elsewhere."""
        return kind in self._engines

    def may_leave(self, job: ManagedJob) -> bool:
        """Return whether a job that works here may still go to another machine."""
        launches_here = any(key in self._here for key in job.seen.launchers)
        return self.has_engine(job.seen.sends) and not (job.returned or launches_here)

    def has_begun(self, job: ManagedJob, use: JobUse) -> bool:
        """Return whether a job on deck was stopped only after its launcher had taken another machine's slot.

        While it waits, no other job gets that slot, and the machine waits for it. Checked once, when the whole job is
        stopped.
        """
        if use is job.seen or use.state != "frozen" or use.sends is None:
            return False
        known = use.sends != "sccache" or self.has_engine(use.sends)  # without one it only asks a cache on this machine
        return known and any(in_exchange(pid) for pid, _ in use.launchers)

    def look(self, uses: Iterable[JobUse], now: float) -> dict[Key, str]:
        """Return which jobs, by first process, another machine compiles at Unix time `now`, and its name."""
        by_kind: dict[RemoteKind, list[JobUse]] = {}
        for use in uses:
            if use.sends is not None:
                by_kind.setdefault(use.sends, []).append(use)
        hosts: dict[Key, str] = {}
        here: set[Key] = set()
        for kind, reader in self._readers.items() if by_kind else ():
            jobs = by_kind.get(kind)
            if not jobs:
                continue
            look = reader.look(jobs, now)
            if look.engine is not None:
                self._engines[kind] = look.engine
            here |= look.here
            hosts.update(_away(jobs, look.waits, kind))
        self._here = frozenset(here)
        return hosts

    def glance(self, jobs: Iterable[ManagedJob], now: float) -> dict[ManagedJob, str]:
        """Return which of these jobs, which worked here at the last look, another machine compiles now."""
        found: dict[ManagedJob, str] = {}
        for job in jobs:
            reader = self._readers.get(job.seen.sends) if job.seen.sends is not None else None
            if reader is None:
                continue
            for host in reader.glance(job.seen.launchers or (job.job.key,), now).values():
                found[job] = host or reader.kind
        return found

    def compiled_by(self, job: ManagedJob, folder: str) -> str:
        """Return the host that compiled an exited job of a scheduler in `folder`, if no look has found it there but the
        engine says so."""
        reader = self._readers.get(job.job.sends) if job.job.sends is not None else None
        if reader is None or job.was_away or job.returned:
            return ""
        return reader.compiled_by(job.job.argv, folder)

    def fell_back(self, host: str) -> None:
        """Count a job that this host had taken and that is compiled here after all."""
        self._fallbacks[host] += 1

    def news(self, now: float) -> list[ev.Event]:
        """Return events for the engines and their hosts if they differ from what was announced last."""
        if named := got_its_name(self._announced, self._engines.values()):
            self._fallbacks[named] += self._fallbacks.pop(UNNAMED, 0)
        engines = tuple(self._counted(engine) for engine in self._engines.values())
        if engines == self._announced or 0 <= now - self._announced_at < NEWS_SECONDS:
            return []
        lost = [ev.Noticed("warning", text) for text in _newly_lost(self._announced, engines)]
        self._announced, self._announced_at = engines, now
        return [ev.RemoteSeen(engines), *lost]

    async def finish(self) -> list[ev.Event]:
        """Return events for the final figures, at the end of the build, if they have changed."""
        for kind, reader in self._made.items():
            if kind in self._engines and (engine := await reader.finish()) is not None:
                self._engines[kind] = engine
        self._announced_at = 0.0
        return [*self.news(time.time())]

    def _counted(self, engine: RemoteEngine) -> RemoteEngine:
        """Return the engine with its jobs that fell back: those seen here, or sccache's own count if that is higher."""
        own = engine.kind == "sccache"
        counts = (max(self._fallbacks[h.name], h.errors if own else 0) for h in engine.hosts)
        return replace(engine, hosts=tuple(replace(h, fallbacks=n) for h, n in zip(engine.hosts, counts, strict=True)))

    def close(self) -> None:
        """Close the readers."""
        for reader in self._made.values():
            reader.close()


def _newly_lost(before: Iterable[RemoteEngine], now: Iterable[RemoteEngine]) -> list[str]:
    """Return the notices about newly lost hosts; about a host that distcc avoids now and then, only one."""
    known = {(engine.kind, host.name): host for engine in before for host in engine.hosts}
    said = []
    for engine in now:
        for host in engine.hosts:
            old = known.get((engine.kind, host.name))
            is_new = not (old and old.lost) and not (engine.kind == "distcc" and old and old.errors)
            if host.lost and is_new:
                said.append(f"lost host {host.name}: {host.why_unused}. {REMEDIES[engine.kind]}")
    return said


def _away(jobs: Iterable[JobUse], waits: Mapping[Key, str], kind: RemoteKind) -> dict[Key, str]:
    """Return the jobs that wait and do no work here."""
    found = {}
    for use in jobs:
        host = next((waits[key] or kind for key in use.launchers if key in waits), None)
        if host is not None and not use.works_here:
            found[use.job.key] = host
    return found
