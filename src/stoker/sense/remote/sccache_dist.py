"""sccache-dist: finds which of sccache's clients wait for a server, and what its scheduler and servers report.

A client asks this machine's own sccache server, and waits. That server preprocesses in a child process, sends the
result away, and compiles in a child process here what no other server has compiled. So a client waits for another
machine if there is a scheduler and nothing runs here for it after its preprocessing. Nothing says which job is on which
server, unless there is only one. Knows neither how the server's children are found, nor its cache, nor what is decided.
"""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from stoker.contract.process import Key
from stoker.model.remote import NO_HOST, NO_HOST_YET, UNNAMED, RemoteEngine, RemoteHost, RemoteKind
from stoker.sense.proc.hosted_compilers import SERVER
from stoker.sense.proc.jobs import JobUse
from stoker.sense.proc.processes import PROC, parse_stat, read_cmdline, read_variables, start_wall
from stoker.sense.proc.procfs import read_once
from stoker.sense.remote.background_question import BackgroundQuestion
from stoker.sense.remote.reach_question import ReachQuestion
from stoker.sense.remote.remote_reader import RemoteLook
from stoker.sense.remote.sccache_text import DistCounts, DistStatus, read_done, read_fleet

ASK_SECONDS, COUNTS_SECONDS = 2.0, 5.0
"""Seconds between two questions for the scheduler's jobs, and between two for what was compiled: each is a process that
takes 5 to 10 ms of CPU time."""

BEGIN_SECONDS = 1.0
"""A client for which nothing has run counts as waiting elsewhere after this many seconds; its preprocessing begins
within 0.2 s if the machine is not busy (sccache 0.16), and may be over before the first look."""

AFTER_SECONDS = 2.5
"""For this many seconds after a compiler ran here for it, a client does not count as waiting elsewhere: it is about to
end, unless nvcc has another pass. Two and a half looks."""

STATUS = ("--dist-status",)
STATS = ("--show-stats", "--stats-format", "json")

BAD_ANSWERS = 2
"""After so many answers in a row in which compilations failed elsewhere and none succeeded, the only server may be
lost. A working server causes such answers too: it refuses more jobs than it has places for, and each of its jobs may
take long (sccache 0.16). So it counts as lost if it no longer accepts connections or, while its address is unknown, if
it has no job. A scheduler keeps listing a killed server for 90 s."""

_KEPT = ("PATH", "HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR")
_OWN = "SCCACHE_"
"""The variables that matter to sccache in a job's environment: these, and all with this prefix."""


@dataclass(slots=True)
class _Client:
    """A client that has been running since Unix time `since`: its birth, or the look that found it no longer stopped;
    infinite while it is stopped. `hosted` are the processes that the server ran for it at the last look; `begun`: it
    has run some; `compiled_at`: Unix time of the last look at which one of them compiled; `waits_since`: Unix time of
    the look that found that nothing of it runs here any more, infinite while something does."""

    since: float
    hosted: tuple[Key, ...] = ()
    begun: bool = False
    compiled_at: float = -math.inf
    waits_since: float = math.inf


class SccacheDistReader:
    """Reads the clients of one build."""

    kind: RemoteKind = "sccache"

    def __init__(self, proc_root: Path = PROC) -> None:
        self._proc = proc_root
        self._clients: dict[Key, _Client] = {}
        self._command: tuple[str, Mapping[str, str]] | None = None
        self._questions = BackgroundQuestion(ASK_SECONDS), BackgroundQuestion(COUNTS_SECONDS)
        self._fleet: DistStatus | None = None
        self._asked_at = self._known_at = -math.inf
        """Unix times of the last look, and of the one that asked what the scheduler answered last."""
        self._has_begun = False
        """Whether the scheduler has had any job of this build."""
        self._hostless: dict[Key, str] = {}
        """Clients that wait, and that no server has, as of the last look."""
        self._done = DistCounts()
        self._before: DistCounts | None = None
        self._bad_answers = 0
        self._failed_in_a_row = 0
        self._reach = ReachQuestion(COUNTS_SECONDS)
        self._reached: bool | None = None
        """Whether the only server accepted the last connection; None while unknown."""
        self._most = DistStatus()
        """The scheduler's answer with the most servers so far."""
        self._adopted = DistCounts()
        """What an earlier reader had counted."""
        self._left = DistCounts()
        """What the server had counted for all builds when that reader last asked."""

    def adopt(self, known: RemoteEngine, _at: float, /) -> None:
        """Continue counting, by the counts of sccache's server at that time."""
        named = {host.name: host.compiled for host in known.hosts if host.compiled}
        self._adopted = DistCounts(named, max((host.errors for host in known.hosts), default=0))
        total = {host.name: host.total for host in known.hosts if host.total}
        self._left = DistCounts(total, max((host.total_errors for host in known.hosts), default=0))

    def look(self, jobs: Sequence[JobUse], now: float) -> RemoteLook:
        """Return which clients of these jobs wait for another machine, and the servers."""
        self._follow(jobs, now)
        # Asking would start a server if there is none; if sccache-dist is not configured, asking once is enough.
        is_there = any(use.launchers and not use.starting for use in jobs)
        if is_there and (self._fleet is None or self._fleet.meant):
            self._ask(jobs, now)
        self._hostless = self._without_a_host(now)
        waits = self.glance(tuple(self._clients), now)
        return RemoteLook(self._engine(len(waits.keys() - self._hostless.keys())), waits)

    def _without_a_host(self, now: float) -> dict[Key, str]:
        """Return the clients that wait while no server has their job: the compiler is still packed and sent, or they
        were refused, and wait until this machine's own server compiles them.

        The scheduler only says how many jobs it has. Of the clients that waited when it last answered, no more than
        these are elsewhere; those that have begun to wait since may be, up to the number of places.
        """
        fleet = self._fleet
        if fleet is None:
            return {}
        waiting = []
        for key, client in self._clients.items():
            client.waits_since = min(client.waits_since, now) if self._waits(client, now) else math.inf
            if client.waits_since < math.inf:
                waiting.append(key)
        self._has_begun = self._has_begun or fleet.used > 0 or bool(self._names())
        if not self._has_begun:
            return dict.fromkeys(waiting, NO_HOST_YET)
        then = [key for key in waiting if self._clients[key].waits_since <= self._known_at]
        since = [key for key in waiting if self._clients[key].waits_since > self._known_at]
        then.sort(key=lambda key: key in self._hostless)  # who was there stays there
        places = max(fleet.places, fleet.used) - min(len(then), fleet.used)
        return dict.fromkeys([*then[fleet.used :], *since[max(0, places) :]], NO_HOST)

    def glance(self, launchers: Sequence[Key], now: float) -> dict[Key, str]:
        """Return which of these wait: nothing ran for them at the last look, or what ran has ended.

        While the only server is lost, none does: attempts there fail, and the jobs must obey the level here.
        """
        if self._fleet is None or self._why_lost(self._fleet):
            return {}
        host = self._host()
        clients = ((key, self._clients.get(key)) for key in launchers)
        waiting = [key for key, client in clients if client is not None and self._waits(client, now)]
        return {key: self._hostless.get(key, host) for key in waiting}

    def compiled_by(self, _argv: Sequence[str], _folder: str, /) -> str:
        """Return nothing: sccache counts by itself what was compiled where."""
        return ""

    async def finish(self) -> RemoteEngine | None:
        """Ask what was compiled until now."""
        if self._command is None or self._fleet is None or not self._fleet.meant:
            return None
        program, env = self._command
        self._take(read_done(await self._questions[1].again((program, *STATS), env) or ""))
        return self._engine(self._fleet.used)

    def close(self) -> None:
        """End all open questions."""
        for question in (*self._questions, self._reach):
            question.close()

    def _waits(self, client: _Client, now: float) -> bool:
        """Return whether nothing runs for a client any more, as far as visible without another scan."""
        if now - client.compiled_at < AFTER_SECONDS:
            return False
        if client.begun:
            return not any(map(self._lives, client.hosted))
        return now - client.since >= BEGIN_SECONDS

    def _lives(self, key: Key) -> bool:
        process = parse_stat(read_once(f"{self._proc}/{key[0]}/stat") or b"")
        return process is not None and process.start_ticks == key[1] and process.state != "Z"

    def _follow(self, jobs: Sequence[JobUse], now: float) -> None:
        clients: dict[Key, _Client] = {}
        for use in jobs:
            hosted = tuple(tree[0] for tree in use.hosted)
            for key in use.launchers:
                client = clients[key] = self._clients.get(key) or _Client(start_wall(key[1], now))
                client.hosted, client.begun = hosted, client.begun or bool(hosted)
                if use.state == "frozen":  # held at birth: it has not asked its server for anything
                    client.since = math.inf
                elif client.since == math.inf:
                    client.since = now
                if hosted and not use.prepares:
                    client.compiled_at = now
        self._clients = clients

    # -- what is there -----------------------------------------------------------------------------------------

    def _engine(self, mine: int) -> RemoteEngine | None:
        """Return the engine; None before the first answer, or if sccache-dist is not configured: then sccache is only a
        cache. `mine` is how many of the scheduler's jobs belong to this build."""
        fleet = self._fleet
        if fleet is None or not fleet.meant:
            return None
        note = f"sccache-dist: {fleet.obstacle}" if fleet.obstacle else ""
        if not self._most.servers:
            return RemoteEngine("sccache", note=note)
        taken = 0 if fleet.obstacle else max(0, fleet.used - mine)
        names = self._names()
        places = fleet.places or self._most.places
        why = self._why_lost(fleet)
        every = RemoteHost(self._host(), places, taken, self._errors(), why_unused=why, lost=bool(why))
        every = replace(every, total_errors=self._done.errors)
        if self._most.servers == 1:
            return RemoteEngine("sccache", (self._with_counts(every, names[-1]) if names else every,), note)
        each = tuple(self._with_counts(RemoteHost(name, 0), name) for name in names)
        if not note:
            gone = self._most.servers - fleet.servers
            few = f" of {self._most.servers}, {gone} lost" if gone else ""
            note = f"sccache-dist: {fleet.servers} servers{few}; the scheduler does not say which has how many places"
        return RemoteEngine("sccache", (every, *each), note)

    def _why_lost(self, fleet: DistStatus) -> str:
        """Say why nothing is compiled elsewhere any more; empty while it may be."""
        if fleet.obstacle:
            return fleet.obstacle
        serves = self._reached if self._reached is not None else fleet.used > 0
        if self._bad_answers < BAD_ANSWERS or serves:
            return ""
        failed = self._failed_in_a_row
        return f"its last {failed} compilations failed; sccache does them here until it answers"

    def _host(self) -> str:
        names = self._names()
        return names[-1] if self._most.servers == 1 and names else UNNAMED

    def _names(self) -> list[str]:
        """Return the servers that have compiled something for this build."""
        names = dict.fromkeys((*self._adopted.by_server, *self._done.by_server))
        return [name for name in names if self._done_by(name)]

    def _done_by(self, name: str) -> int:
        before = self._before.by_server.get(name, 0) if self._before is not None else 0
        return self._adopted.by_server.get(name, 0) + max(0, self._done.by_server.get(name, 0) - before)

    def _with_counts(self, host: RemoteHost, name: str) -> RemoteHost:
        return replace(host, compiled=self._done_by(name), total=self._done.by_server.get(name, 0))

    def _errors(self) -> int:
        before = self._before.errors if self._before is not None else 0
        return self._adopted.errors + max(0, self._done.errors - before)

    # -- asking ------------------------------------------------------------------------------------------------

    def _ask(self, jobs: Sequence[JobUse], now: float) -> None:
        if self._command is None:
            self._command = self._find(jobs)
        program, env = self._command
        status, stats = self._questions
        if (answer := status.look((program, *STATUS), env)) is not None:
            known, self._known_at = self._fleet is not None, self._asked_at
            self._fleet = read_fleet(answer) or DistStatus(
                obstacle="this machine's server does not answer", meant=known
            )
            self._most = max(self._most, self._fleet, key=lambda answered: answered.servers)
        if (answer := stats.look((program, *STATS), env)) is not None:
            self._take(read_done(answer))
        self._asked_at = now
        names = self._names()
        if self._bad_answers and len(names) == 1 and (reached := self._reach.look(names[0])) is not None:
            self._reached = reached

    def _take(self, done: DistCounts | None) -> None:
        """Take in the current counts. What a server had counted before this build is subtracted; a restarted server
        counts from zero."""
        if done is None:
            return
        if self._before is None:
            self._before, self._done = _begun_from(self._left, done), done
        if done.errors < self._done.errors or sum(done.by_server.values()) < sum(self._done.by_server.values()):
            self._adopted = DistCounts({name: self._done_by(name) for name in self._names()}, self._errors())
            self._before = DistCounts()
        elif sum(done.by_server.values()) > sum(self._done.by_server.values()):
            self._bad_answers = self._failed_in_a_row = 0
            self._reached = None
        elif done.errors > self._done.errors:
            self._bad_answers += 1
            self._failed_in_a_row += done.errors - self._done.errors
        self._done = done

    def _find(self, jobs: Sequence[JobUse]) -> tuple[str, dict[str, str]]:
        """Return the program that the jobs run, and the variables that matter to it in their environment."""
        env = read_variables(jobs[0].job.pid, _matters, self._proc)
        launcher = next(key for use in jobs for key in use.launchers)
        named = (read_cmdline(launcher[0], self._proc) or (SERVER,))[0]
        return named if os.path.isabs(named) else shutil.which(SERVER, path=env.get("PATH")) or SERVER, env


def _begun_from(left: DistCounts, now: DistCounts) -> DistCounts:
    """Return from what to count: from `left`, of an earlier reader, if known; from 0 if the server has restarted."""
    if not left.by_server:
        return now
    if now.errors < left.errors or any(now.by_server.get(name, 0) < done for name, done in left.by_server.items()):
        return DistCounts()
    return DistCounts({**now.by_server, **left.by_server}, left.errors)


def _matters(name: str) -> bool:
    return name in _KEPT or name.startswith(_OWN)
