"""Finds the ninjas, samurais and makes in a scanned process tree, and parses their command lines.

Unaware of their jobs and logs. Ignores probes: what CMake runs in try_compile, and tool or dry runs. It also ignores
what a linker runs for itself.
"""

from __future__ import annotations

import os.path
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Literal

from stoker.contract.process import Key
from stoker.sense.commands.scheduler_args import Arguments, make_arguments, ninja_arguments, width_of_makeflags
from stoker.sense.proc.containers import container_of, root_of
from stoker.sense.proc.printed import printed
from stoker.sense.proc.processes import PROC, Process, read_cmdline, read_cwd, read_environ, read_exe

SchedulerTool = Literal["ninja", "samurai", "make"]
VERSION_TIMEOUT = 5.0
"""Seconds that `ninja --version` may take; it needs milliseconds, unless its disk hangs."""

SETTLED_SECONDS = 0.5
"""A process that still looks like its parent after so long is what it looks like: a make called by a make."""

_NAME = re.compile(r"(ninja|ninja-build|samu|samurai|make|gmake)(?:-?\d[\d.]*)?")
_TOOLS: dict[str, SchedulerTool] = {
    "ninja": "ninja",
    "ninja-build": "ninja",
    "samu": "samurai",
    "samurai": "samurai",
    "make": "make",
    "gmake": "make",
}
_LINK_DRIVERS = ("lto-wrapper", "collect2", "lto1")

_PROBE_FOLDERS = ("/CMakeFiles/CMakeScratch", "/CMakeFiles/CMakeTmp")
"""Where CMake's try_compile builds."""


@dataclass(frozen=True, slots=True)
class SchedulerProcess:
    """A running ninja, samurai or make.

    `width` is its -j, or its default; None for no limit. `failures`: jobs that may fail until it starts nothing new.
    `parent` is the pid of the scheduler around it. `directory` is where it runs, after any -C. `manifest` is its build
    file, relative to that. Its own paths are read below `root`, which is empty if it sees the same files as we do;
    otherwise `container` is the ID of its container, if it has one.
    """

    pid: int
    start_ticks: int
    tool: SchedulerTool
    directory: str
    exe: str
    argv: tuple[str, ...]
    width: int | None
    manifest: str
    targets: tuple[str, ...]
    parent: int | None = None
    failures: int | None = 1
    root: str = ""
    container: str = ""

    @property
    def folder(self) -> str:
        """Its directory as it can be read from here."""
        return self.root + self.directory

    @property
    def key(self) -> Key:
        """This very process, even if its pid is reused later."""
        return (self.pid, self.start_ticks)


class SchedulerFinder:
    """The schedulers among the processes of one scan after the other; each is examined once."""

    def __init__(self, proc_root: Path = PROC) -> None:
        self._proc = proc_root
        self._known: dict[Key, SchedulerProcess | None] = {}
        self._comm: dict[Key, str] = {}
        self._first_seen: dict[Key, float] = {}

    def find(self, processes: Mapping[int, Process]) -> Mapping[int, SchedulerProcess]:
        """The schedulers of this scan by pid, each with its parent among them."""
        found: dict[int, SchedulerProcess] = {}
        keys: set[Key] = set()
        for process in processes.values():
            if not _is_scheduler(process.comm) or process.state == "Z" or _is_inside_job(process, processes):
                continue
            key = (process.pid, process.start_ticks)
            keys.add(key)
            scheduler = self._examined(key, process, processes.get(process.ppid))
            if scheduler is not None:
                found[process.pid] = scheduler
        self._forget_all_but(keys)
        around = {pid: _enclosing(pid, processes, found) for pid in found}
        return {pid: s if s.parent == around[pid] else replace(s, parent=around[pid]) for pid, s in found.items()}

    def _examined(self, key: Key, process: Process, parent: Process | None) -> SchedulerProcess | None:
        if key in self._known and self._comm.get(key) == process.comm:
            return self._known[key]
        argv = read_cmdline(process.pid, self._proc)
        exe = read_exe(process.pid, self._proc) or (argv[0] if argv else "")
        name = _NAME.fullmatch(os.path.basename(exe)) or _NAME.fullmatch(os.path.basename(argv[0]) if argv else "")
        if not argv or name is None or is_interpreter(exe):
            return None
        arguments = ninja_arguments(argv) if _TOOLS[name[1]] != "make" else make_arguments(argv)
        directory = read_cwd(process.pid, self._proc)
        if not self._settled(key, process, parent, argv, arguments, directory):
            return None
        scheduler = None
        if directory is not None and not arguments.builds_nothing and not _is_probe(directory, arguments.targets):
            scheduler = self._scheduler(process, _TOOLS[name[1]], argv, arguments, directory, exe)
        self._known[key], self._comm[key] = scheduler, process.comm
        return scheduler

    def _settled(
        self,
        key: Key,
        process: Process,
        parent: Process | None,
        argv: tuple[str, ...],
        arguments: Arguments,
        directory: str | None,
    ) -> bool:
        """Say whether a process is what it will be.

        Between fork and exec a child still shows its scheduler's name and arguments (after a vfork its parent waits in
        the kernel for so long), and a scheduler enters its -C folder a moment after its start.
        """
        now = time.monotonic()
        first_seen = self._first_seen.setdefault(key, now)
        newborn = read_cmdline(process.ppid, self._proc) == argv
        if newborn and parent is not None and parent.state == "D":
            return False
        if now - first_seen >= SETTLED_SECONDS:
            return True
        return not newborn and has_entered(directory or "", arguments.directory)

    def _scheduler(
        self,
        process: Process,
        tool: SchedulerTool,
        argv: tuple[str, ...],
        arguments: Arguments,
        directory: str,
        exe: str,
    ) -> SchedulerProcess:
        width = arguments.width
        if not arguments.width_given:
            width = self._default_width(process.pid, tool)
        root = root_of(process.pid, self._proc)
        return SchedulerProcess(
            process.pid,
            process.start_ticks,
            tool,
            directory,
            exe,
            argv,
            width,
            arguments.manifest,
            arguments.targets,
            failures=arguments.failures,
            root=root,
            container=container_of(process.pid, self._proc) if root else "",
        )

    def _default_width(self, pid: int, tool: SchedulerTool) -> int | None:
        if tool == "make":
            flags = read_environ(pid, "MAKEFLAGS", self._proc)
            return width_of_makeflags(flags) if flags else 1
        return default_ninja_width(_cores_of(pid))

    def _forget_all_but(self, keys: set[Key]) -> None:
        for key in self._first_seen.keys() - keys:
            del self._first_seen[key]
        for key in [k for k in self._known if k not in keys]:
            del self._known[key]
            self._comm.pop(key, None)


class Versions:
    """`ninja --version` of each executable, asked once."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    async def read(self, exe: str) -> str:
        """Return the version, empty if the program does not print it within VERSION_TIMEOUT seconds."""
        if exe not in self._known:
            self._known[exe] = version_in(await printed((exe, "--version"), VERSION_TIMEOUT) or "")
        return self._known[exe]


@lru_cache
def _is_scheduler(name: str) -> bool:
    """Say whether a process of that name may be one. Kept, as a build's processes have a few names."""
    return _NAME.fullmatch(name) is not None


def version_in(text: str) -> str:
    """The version that `ninja --version` ("1.13.2") or `make --version` ("GNU Make 4.3 ...") prints."""
    first = text.strip().splitlines()[:1]
    match = re.search(r"\d[\w.+-]*", first[0]) if first else None
    return match[0] if match else ""


def default_ninja_width(cores: int) -> int:
    """Ninja's own default for -j (GuessParallelism in ninja.cc)."""
    return {0: 2, 1: 2, 2: 3}.get(cores, cores + 2)


def _cores_of(pid: int) -> int:
    try:
        return len(os.sched_getaffinity(pid))
    except OSError:
        return os.cpu_count() or 1


def _enclosing(pid: int, processes: Mapping[int, Process], found: Mapping[int, SchedulerProcess]) -> int | None:
    process = processes.get(pid)
    while process is not None and process.ppid != process.pid:
        if process.ppid in found:
            return process.ppid
        process = processes.get(process.ppid)
    return None


def is_interpreter(exe: str) -> bool:
    """A script named ninja (the wrapper of older PyPI wheels) is not ninja: it starts or becomes it."""
    return re.match(r"python|pypy|sh$|dash|bash|perl", os.path.basename(exe)) is not None


def _is_inside_job(process: Process, processes: Mapping[int, Process]) -> bool:
    """The make with which gcc's link-time optimisation compiles its parts is a piece of one link."""
    parent = processes.get(process.ppid)
    return parent is not None and parent.comm in _LINK_DRIVERS


def has_entered(directory: str, asked: str) -> bool:
    """Say whether a scheduler that works in `directory` may have entered the folder that its -C asks for; a relative
    one is known by its last names alone."""
    names = [name for name in os.path.normpath(asked).split("/") if name not in ("", ".", "..")]
    return not names or directory.split("/")[-len(names) :] == names


def _is_probe(directory: str, targets: Sequence[str]) -> bool:
    return any(f in directory for f in _PROBE_FOLDERS) or any(t.startswith("cmTC_") for t in targets)
