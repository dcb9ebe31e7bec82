"""icecream: finds which clients wait for another machine, according to its scheduler, and which hosts there are.

The scheduler identifies a job by its client's machine and the end of its source's path, by which a local job is found
in the list. Knows neither the format of the scheduler's answers nor what is decided.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from stoker.contract.process import Key
from stoker.model.remote import NO_HOST, NO_HOST_YET, RemoteEngine, RemoteHost, RemoteKind
from stoker.sense.commands.shell import shell_text, split_commands
from stoker.sense.proc.hosted_compilers import SOURCE_ENDS
from stoker.sense.proc.jobs import JobUse
from stoker.sense.proc.processes import PROC, read_cmdline, read_cwd, read_variables
from stoker.sense.proc.procfs import read_once
from stoker.sense.remote.icecream_scheduler import SchedulerAddress, SchedulerLink, find_scheduler, own_names
from stoker.sense.remote.icecream_text import MAX_HOSTS, IcecreamJob, Listing
from stoker.sense.remote.remote_reader import RemoteLook

ASK_SECONDS, ASK_SHARE = 0.25, 0.0025
"""Minimum seconds between two questions, and the share of one core that parsing the answers may take."""

LOST_SECONDS = 10.0
"""Seconds between two attempts to reach a scheduler that does not answer or is not known."""

LOOK_SECONDS = 3.0
"""Questions end this many seconds after the last look: the build has no client any more."""

MAX_GIVEN = 4096
"""Names of sources for which is remembered who was given them, until their clients have ended."""

STALE_SECONDS = 15.0
"""Seconds after which an answer is no longer used: a question is given up long before that."""

WAITING_SECONDS = 0.5
"""Seconds after which a client that has no host and runs nothing here counts as waiting for one: an idle machine starts
the preprocessor within a few hundredths of a second."""

_NAMES = ("ICECC_SCHEDULER", "USE_SCHEDULER")


class IcecreamReader:
    """Reads the clients of one build. Its questions run on the caller's event loop."""

    kind: RemoteKind = "icecream"

    def __init__(
        self, proc_root: Path = PROC, find: Callable[[Mapping[str, str]], SchedulerAddress | None] = find_scheduler
    ) -> None:
        self._proc = proc_root
        self._find = find
        self._files: dict[Key, str] = {}
        self._met_at: dict[Key, float] = {}
        self._link: SchedulerLink | None = None
        self._asking: asyncio.Task[None] | None = None
        self._ask_at = 0.0
        self._listing: Listing | None = None
        self._listed_at = 0.0
        self._matched: Listing | None = None
        self._note = ""
        self._given: dict[Key, IcecreamJob] = {}
        self._had_source: dict[str, dict[str, str]] = {}
        """By name and listed path of a source, the last host that was given it; empty for this machine."""
        self._looked_at = 0.0
        self._had: dict[Key, str] = {}
        """The last host of each client; NO_HOST once that host is gone."""
        self._own: frozenset[str] = frozenset()
        self._hosts: dict[str, RemoteHost] = {}
        """All hosts that were ever listed."""

    def adopt(self, known: RemoteEngine, _at: float, /) -> None:
        """Remember the hosts: lost ones stay in the list."""
        self._hosts = {host.name: host for host in known.hosts}

    def look(self, jobs: Sequence[JobUse], now: float) -> RemoteLook:
        """Return what the clients of these jobs wait for, and the hosts."""
        self._looked_at = time.monotonic()
        self._meet(jobs, now)
        self._ask_when_due(jobs)
        self._match()
        here = frozenset(key for key, job in self._given.items() if job.host in self._own)
        waits = {key: job.host for key, job in self._given.items() if self._is_elsewhere(job, now)}
        engine = self._engine()
        before = dict(self._had)
        waits |= self._without_a_host(waits)
        return RemoteLook(engine, {**self._without_a_host_yet(before, now), **waits}, here)

    def _without_a_host_yet(self, had: Mapping[Key, str], now: float) -> dict[Key, str]:
        """Return the clients that have had no host and run nothing here, by a fresh answer: each waits for one, for the
        compiler to be sent there, or for the place of this machine."""
        if self._listing is None or now - self._listed_at > STALE_SECONDS:
            return {}
        begun = {key for key, job in self._given.items() if job.compiles}
        known = [key for key, met in self._met_at.items() if met <= self._listed_at - WAITING_SECONDS]
        waiting = [key for key in known if key not in begun and key not in had and not self._has_child(key)]
        return dict.fromkeys(waiting, NO_HOST_YET)

    def _without_a_host(self, elsewhere: Mapping[Key, str]) -> dict[Key, str]:
        """Return the clients whose host the scheduler no longer lists, and which have no other host and no compiler
        here."""
        had = {key: host for key, host in self._had.items() if key in self._files and key not in self._given}
        listed = {host.name for host in self._listing.hosts} if self._listing is not None else had.values()
        for key, host in had.items():
            had[key] = host if host in listed else NO_HOST
        without = {key: host for key, host in had.items() if host == NO_HOST and not self._has_child(key)}
        self._had = {**had, **elsewhere}
        return without

    def glance(self, launchers: Sequence[Key], now: float) -> dict[Key, str]:
        """Return which of these another machine compiles, by the last answer: they no longer run a preprocessor."""
        known = ((key, self._given.get(key)) for key in launchers)
        elsewhere = ((key, job) for key, job in known if job is not None and self._is_elsewhere(job, now))
        return {key: job.host for key, job in elsewhere if not self._has_child(key)}

    def _is_elsewhere(self, job: IcecreamJob, now: float) -> bool:
        """Return whether another host has begun the job. Before that, its client still preprocesses and must not be
        stopped."""
        return job.compiles and job.host not in self._own and now - self._listed_at <= STALE_SECONDS

    def _has_child(self, key: Key) -> bool:
        pid = key[0]
        return bool(read_once(f"{self._proc}/{pid}/task/{pid}/children", 64))

    def compiled_by(self, argv: Sequence[str], folder: str, /) -> str:
        """Return the host that was given the source last. The client may have been too short for any look."""
        text = shell_text(argv)
        commands = [tuple(argv)] if text is None else split_commands(text)
        path = next((_source(words, folder) for words in commands if _source(words, folder)), "")
        listed = self._had_source.get(os.path.basename(path), {})
        found = next((file for file in listed if _is_end(file, path)), None)
        return listed.pop(found) if found is not None else ""

    async def finish(self) -> None:
        """Return None: a last look shows all counts."""

    def close(self) -> None:
        """Close the connection."""
        if self._asking is not None:
            self._asking.cancel()
        if self._link is not None:
            self._link.close()

    # -- who compiles what -------------------------------------------------------------------------------------

    def _meet(self, jobs: Iterable[JobUse], now: float) -> None:
        """Find out once for each client which source it compiles. One that is stopped has yet to ask for a host."""
        launchers = {key for use in jobs for key in use.launchers}
        asking = {key for use in jobs if use.state == "running" for key in use.launchers}
        self._met_at = {key: self._met_at.get(key, now) for key in asking}
        if launchers == self._files.keys():
            return
        self._matched = None
        self._files = {key: file for key, file in self._files.items() if key in launchers}
        for key in launchers - self._files.keys():
            self._files[key] = _source(read_cmdline(key[0], self._proc), read_cwd(key[0], self._proc) or "/")

    def _match(self) -> None:
        """Match the clients with the scheduler's jobs, each job once, if either has changed."""
        if self._listing is not None and self._listing is self._matched:
            return
        self._matched = self._listing
        by_name: dict[str, list[IcecreamJob]] = {}
        for job in self._listing.jobs if self._listing is not None else ():
            if not self._own or job.client in self._own:
                by_name.setdefault(os.path.basename(job.file), []).append(job)
        self._given = {}
        for key, path in self._files.items():
            listed = by_name.get(os.path.basename(path), []) if path else []
            found = next((job for job in listed if _is_end(job.file, path)), None)
            if found is not None:
                listed.remove(found)
                self._given[key] = found

    def _engine(self) -> RemoteEngine | None:
        """Return the hosts except this machine, with the places that others use."""
        if self._listing is None:
            lost = tuple(_lost(host, "the scheduler is lost") for host in self._hosts.values())
            return RemoteEngine("icecream", lost, self._note) if self._note else None
        mine = Counter(job.host for job in self._given.values())
        listed = {
            h.name: RemoteHost(h.name, h.places, max(0, h.used - mine[h.name]), why_unused=h.obstacle)
            for h in self._listing.hosts
            if h.name not in self._own
        }
        gone = {name: _lost(host, "the scheduler no longer lists it") for name, host in self._hosts.items()}
        self._hosts = dict(list({**gone, **listed}.items())[:MAX_HOSTS])
        note = "" if listed else "icecream's scheduler knows no other machine"
        return RemoteEngine("icecream", tuple(self._hosts.values()), note)

    # -- asking ------------------------------------------------------------------------------------------------

    def _ask_when_due(self, jobs: Sequence[JobUse]) -> None:
        if time.monotonic() < self._ask_at or (self._asking is not None and not self._asking.done()):
            return
        if self._link is None:
            address = self._find(read_variables(jobs[0].job.pid, _NAMES.__contains__, self._proc)) if jobs else None
            if address is None:
                self._lose("icecream's scheduler is not known here; USE_SCHEDULER=HOST names it")
                return
            self._link = SchedulerLink(address)
        self._asking = asyncio.get_running_loop().create_task(self._ask(self._link))

    async def _ask(self, link: SchedulerLink) -> None:
        """Ask again and again while there are looks: a short compilation is only in answers between two of them."""
        while time.monotonic() - self._looked_at < LOOK_SECONDS:
            listing = await link.ask()
            if listing is None:
                self._link = None
                lost = "scheduler lost: " if self._hosts else ""
                self._lose(f"{lost}icecream's scheduler at {link.address} does not answer")
                return
            self._listing, self._note, self._listed_at = listing, "", time.time()
            self._own = own_names(((h.name, h.address) for h in listing.hosts), link.own_address)
            self._note_sources(listing)
            await asyncio.sleep(max(ASK_SECONDS, link.took / ASK_SHARE))

    def _note_sources(self, listing: Listing) -> None:
        """Remember which host has been given which source of this machine, and forget hosts that are gone."""
        hosts = {host.name for host in listing.hosts} - self._own
        for listed in self._had_source.values():
            listed.update({file: "" for file, host in listed.items() if host and host not in hosts})
        for job in listing.jobs:
            if job.client in self._own:
                named = self._had_source.setdefault(os.path.basename(job.file), {})
                named[job.file] = job.host if job.host in hosts else ""
        self._had_source = dict(list(self._had_source.items())[-MAX_GIVEN:])

    def _lose(self, note: str) -> None:
        self._listing, self._given = None, {}
        self._note, self._ask_at = note, time.monotonic() + LOST_SECONDS


def _source(words: Sequence[str], folder: str) -> str:
    """Return the absolute path of the source in a client's command line; empty if it does not show it."""
    named = next((w for w in words[1:] if w.endswith(SOURCE_ENDS) and not w.startswith("-")), "")
    return os.path.normpath(os.path.join(folder, named)) if named else ""


def _is_end(listed: str, path: str) -> bool:
    return path.endswith("/" + listed.lstrip("/"))


def _lost(host: RemoteHost, why: str) -> RemoteHost:
    return replace(host, taken=0, why_unused=why, lost=True)
