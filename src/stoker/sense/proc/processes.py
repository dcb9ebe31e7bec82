"""The processes below one root process, read from /proc at the cost of one small read each.

Unaware of schedulers and jobs.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Container, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from stoker.sense.proc.procfs import KeptFiles, Notes, read_all, read_link, read_once

PROC = Path("/proc")
CLK_TCK = os.sysconf("SC_CLK_TCK")
"""Clock ticks per second in /proc/PID/stat (sysconf(3))."""
PAGE_SIZE = os.sysconf("SC_PAGE_SIZE")

MAX_CMDLINE = 1024 * 1024
"""Bytes taken of a command line; one argument is at most 128 KiB (MAX_ARG_STRLEN), a whole line 2 MiB and more."""

FORGET_FOREIGN_EVERY = 60
"""Scans after which foreign processes are read again, in case a pid was reused between two scans."""


SHARED_MOST = 128 * 2**20
"""File pages of one process up to this many bytes count as its program and its libraries, which all processes of that
program share (cc1plus maps 33 MiB, clang 100). Anything beyond is its own: a linker's inputs and output."""

EXEC_SECONDS = 2.0
"""Within this time after its birth a process has usually exec'ed its program, and has its final name; wrapper scripts
(pyenv's) take a good part of a second."""

SHARED_STEP = 2**20
"""What a process shares is read again once it has grown or shrunk by this many bytes: /proc/PID/status takes 11 µs, and
a compiler maps its program and libraries in its first moments, in larger steps."""

KEPT_OPEN = 256
"""Most processes whose /proc/PID/stat is kept open: a quarter of the usual limit of open files."""

REST_SCANS = 4
"""Resting processes are read only at every so many scans: a wide machine holds a thousand of them."""


class Process(NamedTuple):
    """One line of /proc/PID/stat. A named tuple because a thousand are made per scan and it is the cheapest value.

    `cpu_ticks` are its own, `child_ticks` those of its children that have ended and were waited for. `rss` counts
    every page that it maps, `shared` of these are file pages that others of its program map as well.
    """

    pid: int
    ppid: int
    pgrp: int
    session: int
    state: str
    comm: str
    start_ticks: int
    cpu_ticks: int
    child_ticks: int
    rss: int
    nthreads: int
    shared: int = 0

    @property
    def held(self) -> int:
        """Bytes that would be free without it."""
        return self.rss - self.shared


def held_by(processes: Iterable[Process]) -> int:
    """Bytes that processes hold together: what they share counts once for each program."""
    own = 0
    programs: dict[str, int] = {}
    for process in processes:
        shared = process.shared
        own += process.rss - shared
        if shared > programs.get(process.comm, 0):
            programs[process.comm] = shared
    return own + sum(programs.values())


def shared_pages(pid: int, proc_root: Path | str = PROC) -> int:
    """Bytes of file pages that a process maps and others of its program share; 0 where the kernel does not say.

    /proc/PID/smaps_rollup would give each page's exact share, but the kernel walks all page tables for it, with the
    memory map locked against the compiler: 5 ms for 400 MiB where this takes 6 µs.
    """
    status = read_once(f"{proc_root}/{pid}/status") or b""
    at = status.find(b"\nRssFile:")
    try:
        return min(SHARED_MOST, int(status[at + 9 : status.index(b"kB", at)]) * 1024) if at >= 0 else 0
    except ValueError:
        return 0


def parse_stat(data: bytes) -> Process | None:
    """Parse the text of /proc/PID/stat (proc(5)); None if it is not of that form."""
    left, right = data.find(b"("), data.rfind(b")")
    fields = data[right + 2 :].split(None, 22)
    try:
        return Process(
            int(data[:left]),
            int(fields[1]),
            int(fields[2]),
            int(fields[3]),
            fields[0].decode(),
            data[left + 1 : right].decode(errors="replace"),
            int(fields[19]),
            int(fields[11]) + int(fields[12]),
            int(fields[13]) + int(fields[14]),
            int(fields[21]) * PAGE_SIZE,
            int(fields[17]),
        )
    except (ValueError, IndexError):
        return None


def again(process: Process, proc_root: Path = PROC) -> Process | None:
    """Return the same process as it is now, None if it has gone or is a zombie."""
    now = parse_stat(read_once(f"{proc_root}/{process.pid}/stat") or b"")
    same = now is not None and now.start_ticks == process.start_ticks and now.state != "Z"
    return now if same else None


class ProcessTable:
    """All live descendants of one process, scan after scan, and permanently: the root may be killed at any moment, even
    while its children are being read, and its descendants stay known.

    Foreign processes are read until they have exec'ed their program, and then left alone: a process can only come below
    the root by being born there, or by being reparented to it (subreaper), and then it was below it before. Those whose
    names are `noticed` are returned by `take_outsiders`.
    """

    def __init__(self, root_pid: int, proc_root: Path = PROC, noticed: Container[str] = ()) -> None:
        self.root_pid = root_pid
        self.notes = Notes()
        self._proc = str(proc_root)
        self._noticed = noticed
        self._outsiders: list[Process] = []
        self._foreign: set[str] = set()
        self._ours: Mapping[int, Process] = {}
        self._scans = 0
        self._stats = KeptFiles(KEPT_OPEN)
        self._weighed_at: dict[int, int] = {}
        self._texts: dict[int, bytes] = {}

    def include(self, pid: int) -> None:
        """Count a process and all below it as well, whoever its parent is."""
        process = parse_stat(read_once(f"{self._proc}/{pid}/stat") or b"")
        if process is not None:
            self._ours = {**self._ours, pid: process}
            self._foreign.clear()  # what is below it may be among them: docker's daemon is its parent

    def take_outsiders(self) -> list[Process]:
        """Return foreign processes with such names that were seen since the last call: each once, and again every
        minute."""
        outsiders, self._outsiders = self._outsiders, []
        return outsiders

    def scan(self, resting: Iterable[int] = ()) -> Mapping[int, Process]:
        """Return the current descendants, by pid, without the root itself unless included; including zombies (state
        "Z").

        `resting` are pids of processes that were stopped, and whose end would be noticed elsewhere. Once they show the
        stop, each is read only at every fourth scan, and is the same object in between.
        """
        try:
            names = {name for name in os.listdir(self._proc) if name.isdigit()}
        except OSError as err:
            self.notes.say(f"cannot list {self._proc}: {err.strerror}; no processes can be seen")
            return {}
        self._scans += 1
        if self._scans % FORGET_FOREIGN_EVERY == 0:
            self._foreign.clear()
        self._foreign &= names
        kept = self._resting(resting, names)
        read = {**kept, **self._read(names - self._foreign - {str(pid) for pid in kept})}
        ours = self._weighed(self._descendants(read))
        if ours.keys() != self._ours.keys():
            self._stats.keep({self._stat(pid) for pid in ours})
        self._ours = ours
        self._remember_foreign(read, ours)
        return ours

    def _resting(self, pids: Iterable[int], names: Container[str]) -> dict[int, Process]:
        """Those that need not be read this time. One whose parent has gone has another one now."""
        known = (self._ours.get(pid) for pid in pids if (pid + self._scans) % REST_SCANS)
        return {
            p.pid: p for p in known if p is not None and p.state == "T" and str(p.pid) in names and str(p.ppid) in names
        }

    def _read(self, names: Iterable[str]) -> dict[int, Process]:
        processes: dict[int, Process] = {}
        texts: dict[int, bytes] = {}
        for name in names:
            path, before = self._stat(name), self._ours.get(int(name))
            # Only of those that were there at the last scan: most processes of a build are gone by the second.
            data = self._stats.read(path) if before is not None else read_once(path)
            if not data:
                continue
            # A shell or a compiler's driver that only waits for its child reads the same time after time.
            same = before is not None and data == self._texts.get(before.pid)
            process = before if same else parse_stat(data)
            if process is not None:
                processes[process.pid] = process
                texts[process.pid] = data
        self._texts = texts
        return processes

    def _stat(self, pid: int | str) -> str:
        return f"{self._proc}/{pid}/stat"

    def _descendants(self, read: Mapping[int, Process]) -> dict[int, Process]:
        before = self._ours.items()
        ours = {pid: p for pid, was in before if (p := read.get(pid)) and p.start_ticks == was.start_ticks}
        others = [p for pid, p in read.items() if pid not in ours]
        while born := [p for p in others if p.ppid in ours or p.ppid == self.root_pid]:
            ours.update((p.pid, p) for p in born)
            others = [p for p in others if p.pid not in ours]
        return ours

    def _weighed(self, ours: Mapping[int, Process]) -> dict[int, Process]:
        """Return the same with what they share, read again only for those that have grown or shrunk: most only wait."""
        weighed, weighed_at = {}, {}
        for pid, process in ours.items():
            before, at = self._ours.get(pid), self._weighed_at.get(pid)
            if at is not None:
                weighed_at[pid] = at
            if process is before or not process.rss:
                weighed[pid] = process
                continue
            same = before is not None and before.start_ticks == process.start_ticks
            if before is not None and at is not None and same and abs(process.rss - at) < SHARED_STEP:
                shared = before.shared
            else:
                shared, weighed_at[pid] = shared_pages(pid, self._proc), process.rss
            weighed[pid] = Process._make((*process[:-1], min(shared, process.rss)))
        self._weighed_at = weighed_at
        return weighed

    def _remember_foreign(self, read: Mapping[int, Process], ours: Mapping[int, Process]) -> None:
        """Remember only what is provably below somebody else: one of ours whose parent ended while we read must stay
        unknown."""
        children = children_of(p for p in read.values() if p.pid not in ours and p.pid != self.root_pid)
        queue = deque(ppid for ppid in children if ppid == 0 or str(ppid) in self._foreign)
        settled = (time.clock_gettime(time.CLOCK_BOOTTIME) - EXEC_SECONDS) * CLK_TCK
        while queue:
            for process in children.get(queue.popleft(), ()):
                queue.append(process.pid)
                if process.start_ticks <= settled:
                    self._foreign.add(str(process.pid))
                    if process.comm in self._noticed:
                        self._outsiders.append(process)


def children_of(processes: Iterable[Process]) -> dict[int, list[Process]]:
    """Processes grouped by their parent's pid."""
    children: dict[int, list[Process]] = {}
    for process in processes:
        children.setdefault(process.ppid, []).append(process)
    return children


def start_wall(start_ticks: int, now: float, boottime: float | None = None) -> float:
    """Return when a process started, in Unix seconds, given the Unix time `now`.

    Counted back from now on CLOCK_BOOTTIME, the clock of start_ticks: btime in /proc/stat is whole seconds and goes
    wrong when the wall clock is set, and /proc/uptime may be a container's own.
    """
    boot = time.clock_gettime(time.CLOCK_BOOTTIME) if boottime is None else boottime
    return now - max(0.0, boot - start_ticks / CLK_TCK)


def read_cmdline(pid: int, proc_root: Path = PROC) -> tuple[str, ...]:
    """A process's arguments (undecodable bytes by surrogateescape); empty for a zombie or a process that is gone."""
    data = read_all(f"{proc_root}/{pid}/cmdline", MAX_CMDLINE)
    if not data:
        return ()
    return tuple(os.fsdecode(part) for part in data.removesuffix(b"\0").split(b"\0"))


def read_cwd(pid: int, proc_root: Path = PROC) -> str | None:
    """Return a process's current directory, None if we may not read it."""
    return read_link(f"{proc_root}/{pid}/cwd")


def read_exe(pid: int, proc_root: Path = PROC) -> str | None:
    """Return the file a process executes, None if we may not read it."""
    exe = read_link(f"{proc_root}/{pid}/exe")
    return exe.removesuffix(" (deleted)") if exe else None


def read_variables(pid: int, wanted: Callable[[str], bool], proc_root: Path = PROC) -> dict[str, str]:
    """The wanted variables of the environment a process was started with, by name."""
    data = read_all(f"{proc_root}/{pid}/environ", MAX_CMDLINE) or b""
    pairs = (os.fsdecode(part).partition("=") for part in data.split(b"\0"))
    return {name: value for name, _, value in pairs if wanted(name)}


def read_environ(pid: int, name: str, proc_root: Path = PROC) -> str | None:
    """Return a variable of the environment a process was started with, None if it is not set or we may not read it."""
    data = read_all(f"{proc_root}/{pid}/environ", MAX_CMDLINE) or b""
    prefix = os.fsencode(name) + b"="
    for part in data.split(b"\0"):
        if part.startswith(prefix):
            return os.fsdecode(part[len(prefix) :])
    return None
