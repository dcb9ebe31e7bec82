"""Compilers that a cache's server runs for jobs: which job each of them works for.

sccache's client, the job's own process, only waits; its server, which may serve other builds too, starts the compilers
as its own children, in the client's folder. They are found by what they compile. Unaware of what they use.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from stoker.contract.process import Key
from stoker.sense.proc.processes import PROC, Process, ProcessTable, children_of, read_cmdline, read_cwd, start_wall
from stoker.sense.proc.procfs import read_once

SERVER = "sccache"
"""The kernel's name for both the server and its clients."""

SEARCH_EVERY = 5.0
"""Seconds between two scans of all of the machine's processes for a server that this build did not start: one small
read each."""

LEAST_STEM = 3
"""Characters of a source's name that distinguish it in the passes of nvcc, which work on files of their own."""

STARTING_SECONDS = 15.0
"""A client that has started a server waits for it for ten seconds, and fails then (sccache 0.16)."""

SOURCE_ENDS = (".c", ".cc", ".cpp", ".cxx", ".c++", ".cu", ".m", ".mm", ".i", ".ii", ".s", ".S")
"""How the names of sources end."""


_PREPARES = frozenset(("-E", "--preprocess", "-M", "-MM", "--dryrun"))
"""Options with which a compiler compiles nothing: what sccache runs here before it asks another machine (0.16)."""


@dataclass(frozen=True, slots=True)
class Client:
    """A job's own call of sccache: what it compiles into what, and the folder that those are relative to."""

    job: Key
    output: str
    sources: tuple[str, ...]
    folder: str


class Hosted(NamedTuple):
    """A server's child that works for a job, and all its descendants. `prepares`: it only preprocesses, or plans."""

    job: Key
    key: Key
    tree: tuple[Process, ...]
    prepares: bool = False


class _Work(NamedTuple):
    """What one of a server's children does: for which client, None if it belongs to nobody in this build."""

    host: Key | None
    prepares: bool = False


class HostedFinder:
    """The hosted compilers of a build's jobs, scan after scan; each process is examined until its job is known."""

    def __init__(self, proc_root: Path = PROC) -> None:
        self._proc = proc_root
        self._clients: dict[Key, Client] = {}
        self._work: dict[Key, _Work] = {}
        self._server_pids: frozenset[int] = frozenset()
        self._outside: dict[Key, ProcessTable] = {}
        self._search_at = 0.0

    def find(self, processes: Mapping[int, Process], clients: Iterable[tuple[Key, Process]]) -> list[Hosted]:
        """Return the current ones. `processes` are those of the build, `clients` jobs and processes below them by that
        name."""
        known = {_key(process): (job, process) for job, process in clients if process.state != "Z"}
        self._clients = {key: client for key, client in self._clients.items() if key in known}
        for key, (host, process) in known.items():
            if key not in self._clients and (client := self._client(host, process)) is not None:
                self._clients[key] = client
        if not known:
            self._work.clear()
            self._outside.clear()
            self._server_pids = frozenset()
            return []
        trees = [tree for server in self._servers(processes, set(known)) for tree in server]
        there = {_key(tree[0]) for tree in trees}
        self._work = {key: work for key, work in self._work.items() if key in there}
        return [hosted for tree in trees if (hosted := self._hosted(tuple(tree))) is not None]

    @property
    def server_pids(self) -> frozenset[int]:
        """The servers that were found by the last search."""
        return self._server_pids

    def new_child(self, process: Process) -> Hosted | None:
        """Return what a new child of a server does; None while it has not exec'ed its command, or if it works for
        nobody in this build."""
        return self._hosted((process,))

    def _client(self, job: Key, process: Process) -> Client | None:
        """None for the server while it detaches itself, when it is briefly below its first client."""
        argv = read_cmdline(process.pid, self._proc)
        if len(argv) < 2:
            return None
        words = argv[2:]
        sources = tuple(w for w in words if w.endswith(SOURCE_ENDS) and not w.startswith("-"))
        return Client(job, _output(words), sources, read_cwd(process.pid, self._proc) or "")

    def _hosted(self, tree: tuple[Process, ...]) -> Hosted | None:
        """A server's child with the job that it works for; it stays that."""
        key = _key(tree[0])
        work = self._work.get(key)
        if work is None or work.host is None:
            argv = read_cmdline(tree[0].pid, self._proc)
            if not argv or os.path.basename(argv[0]) == SERVER:  # it is still between fork and exec
                return None
            folder = read_cwd(tree[0].pid, self._proc) or ""
            work = self._work[key] = _Work(self._host(argv, folder), not _PREPARES.isdisjoint(argv))
        client = self._clients.get(work.host) if work.host is not None else None
        return Hosted(client.job, key, tree, work.prepares) if client is not None else None

    def _host(self, argv: Sequence[str], folder: str) -> Key | None:
        """Return the client whose compilation this is, None if it belongs to nobody in this build."""
        sure = {key: likeness(client, argv, folder) for key, client in self._clients.items()}
        best = max(sure.values(), default=0)
        found = [key for key, value in sure.items() if value == best > 0]
        busy = {work.host for work in self._work.values()}
        return min(found, key=lambda key: (key in busy, key[1]), default=None)

    # -- servers -----------------------------------------------------------------------------------------------

    def _servers(self, processes: Mapping[int, Process], clients: set[Key]) -> list[list[list[Process]]]:
        """For each server the trees of its children: of servers that the build started, and of others' ones."""
        children = children_of(processes.values())
        inside = [p for p in processes.values() if p.comm == SERVER and p.state != "Z" and _key(p) not in clients]
        servers = [[_tree(child, children) for child in children.get(s.pid, ())] for s in inside]
        pids = {s.pid for s in inside}
        if not inside:
            self._search(processes)
        for table in list(self._outside.values()):
            found = table.scan()
            below = children_of(found.values())
            servers.append([_tree(child, below) for child in below.get(table.root_pid, ())])
            pids.add(table.root_pid)
        self._server_pids = frozenset(pids)
        return servers

    def _search(self, processes: Mapping[int, Process]) -> None:
        """Look for servers that run outside of the build."""
        now = time.monotonic()
        if now < self._search_at:
            return
        self._search_at = now + SEARCH_EVERY
        try:
            names = [name for name in os.listdir(self._proc) if name.isdigit()]
        except OSError:
            return
        found = {}
        for name in names:
            comm = read_once(f"{self._proc}/{name}/comm", 64)
            pid = int(name)
            # A client has its compiler's command line behind its own name.
            if comm == SERVER.encode() + b"\n" and pid not in processes and len(read_cmdline(pid, self._proc)) == 1:
                found[pid, 0] = self._outside.get((pid, 0)) or ProcessTable(pid, self._proc)
        self._outside = found


def starts_server(tree: Iterable[Process], now: float) -> bool:
    """Say whether a client in a job's tree has started a server less than STARTING_SECONDS before Unix time `now`.

    The server puts itself into the background, so what the client had started is soon dead; but it stays.
    """
    named = [p for p in tree if p.comm == SERVER]
    clients = {p.pid for p in named}
    return any(p.ppid in clients and now - start_wall(p.start_ticks, now) < STARTING_SECONDS for p in named)


def _tree(root: Process, children: Mapping[int, list[Process]]) -> list[Process]:
    tree = [root]
    for process in tree:
        tree += children.get(process.pid, ())
    return tree


def _key(process: Process) -> Key:
    return process.pid, process.start_ticks


def _output(words: Sequence[str]) -> str:
    return next((b for a, b in pairwise(words) if a in ("-o", "--output-file")), "")


def likeness(client: Client, argv: Sequence[str], folder: str) -> int:
    """How sure it is that a command line is of a client's compilation; 0: it is not.

    The compilation itself has the client's words; a pass of nvcc, which sccache runs one by one, only a file named
    after its source.
    """
    if client.output and client.output in argv:
        return 4 if folder == client.folder else 0
    if any(source in argv for source in client.sources):
        return 3 if folder == client.folder else 2
    stems = [os.path.splitext(os.path.basename(source))[0] for source in client.sources]
    files = [os.path.basename(word) for word in argv[1:] if not word.startswith("-")]
    named = any(f.startswith(f"{stem}.") for stem in stems if len(stem) >= LEAST_STEM for f in files)
    return 1 if named else 0
