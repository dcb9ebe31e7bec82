"""The running jobs of the schedulers: their identity, output, and the usage of their process trees.

Unaware of ninja's log and plan (a function passed in knows outputs better than a command line does) and of time except
for the `now` of each scan.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import is_
from pathlib import Path
from typing import Literal

from stoker.contract.process import Key
from stoker.model.remote import RemoteKind
from stoker.model.tool import Tool
from stoker.sense.commands.classify import Work, classify, classify_text, describe, is_helper, link_script, programs_of
from stoker.sense.commands.remote_launchers import LAUNCHERS, sent_by
from stoker.sense.proc.arch_meter import PASSES, ArchMeter
from stoker.sense.proc.containers import root_of
from stoker.sense.proc.hosted_compilers import SERVER, Hosted, HostedFinder, starts_server
from stoker.sense.proc.phase import phase_of
from stoker.sense.proc.processes import (
    CLK_TCK,
    PROC,
    Process,
    children_of,
    read_cmdline,
    read_cwd,
    read_exe,
    start_wall,
)
from stoker.sense.proc.procfs import read_link
from stoker.sense.proc.schedulers import SchedulerProcess

Resolve = Callable[[SchedulerProcess, tuple[str, ...]], tuple[str, Tool] | None]
"""What a scheduler's plan knows about a command line: output and tool, None if nothing."""

MAX_SCRIPT = 64 * 1024
"""Bytes read of a link script: what it makes stands at its start."""

_MAKES = frozenset(("make", "gmake"))


@dataclass(frozen=True, slots=True)
class JobProcess:
    """A scheduler's own child. `started` is Unix seconds. `output` is empty if nothing shows it."""

    pid: int
    start_ticks: int
    scheduler: Key
    started: float
    argv: tuple[str, ...]
    output: str
    tool: Tool
    sends: RemoteKind | None = None
    """The system whose launcher sends its compilation elsewhere, as far as its command line shows."""

    @property
    def key(self) -> Key:
        """This very process, even if its pid is reused later."""
        return (self.pid, self.start_ticks)

    @property
    def label(self) -> str:
        """The output, or else a few words of the command."""
        return self.output or describe(self.argv) or f"process {self.pid}"


@dataclass(frozen=True, slots=True)
class JobUse:
    """What a running job's process tree uses now: bytes, percent of one core, seconds of CPU so far.

    The program that many jobs run is in memory once, and in none of their figures (`processes.held_by`).

    `hosted` are trees of processes elsewhere that work for it: a cache's server runs its compiler. They count in all
    figures.
    """

    job: JobProcess
    rss: int
    peak_rss: int
    cpu_percent: float
    cpu_seconds: float
    phase: str
    state: Literal["running", "frozen"]
    hosted: tuple[tuple[Key, ...], ...] = ()
    starting: bool = False
    """Whether a cache's client in it may be waiting for a server that it has started, which it does not do for long."""
    pids: tuple[int, ...] = ()
    """Its processes, hosted ones included."""
    sends: RemoteKind | None = None
    """The system that sends its compilation elsewhere, as its command line or its processes show."""
    launchers: tuple[Key, ...] = ()
    """Its processes that ask another machine to compile: they must not be stopped while they do."""
    works_here: bool = True
    """Whether anything of it works on this machine: everything except such launchers, and what waits for them."""
    prepares: bool = False
    """Whether that only prepares the request to another machine: a cache's server preprocesses for it."""
    archs: Mapping[str, float] = field(default_factory=dict)
    """CPU seconds of nvcc's passes so far, by GPU architecture (arch_meter.py)."""
    phase_pid: int = 0
    """The process that `phase` is the name of; 0: unknown."""


@dataclass(frozen=True, slots=True)
class JobReport:
    """One scan compared with the previous one: the new jobs, oldest first, all running ones, and the last known use of
    those gone.

    `nested` maps each scheduler inside a job to that job.
    """

    started: tuple[JobProcess, ...]
    running: tuple[JobUse, ...]
    vanished: tuple[JobUse, ...]
    nested: Mapping[Key, Key]


class JobTracker:
    """Turns consecutive scans into jobs that start, run and vanish."""

    def __init__(self, proc_root: Path = PROC, resolve: Resolve | None = None) -> None:
        self._proc = proc_root
        self._resolve = resolve
        self._uses: dict[Key, JobUse] = {}
        self._ticks: dict[Key, tuple[float, int]] = {}
        self._wrappers: set[Key] = set()
        self._newborn: set[Key] = set()
        self._held_schedulers: set[Key] = set()
        self._hosted_finder = HostedFinder(proc_root)
        self._arch_meter = ArchMeter(proc_root)
        self._has_clients = False
        self._hosted: dict[Key, tuple[Key, int]] = {}
        self._spent: dict[Key, int] = {}
        self._pids: Collection[int] = ()
        self._unchanged: dict[Key, list[Process]] = {}
        """The processes of each job, as long as the scans return the very same ones."""

    def command_of(self, process: Process, scheduler: SchedulerProcess) -> tuple[str, ...]:
        """Return what a scheduler's child executes; nothing while it is not that far: ask again in a moment.

        Between vfork and exec it has its parent's memory and command line, and the parent waits in the kernel: then it
        must be left alone. In the middle of exec it has none.
        """
        argv = read_cmdline(process.pid, self._proc)
        return () if argv == scheduler.argv else argv

    def newborn(
        self, process: Process, scheduler: SchedulerProcess, argv: tuple[str, ...], now: float
    ) -> JobUse | None:
        """Return a scheduler's child that was born between two scans, at Unix time `now`; None if it is known or not a
        job."""
        key = (process.pid, process.start_ticks)
        if key in self._uses or key in self._wrappers:
            return None
        job = self._job(key, argv, scheduler, start_wall(key[1], now))
        if job is None:
            return None
        use = self._uses[key] = JobUse(
            job, process.held, process.held, 0.0, 0.0, process.comm, "running", sends=job.sends
        )
        return use

    def update(
        self, processes: Mapping[int, Process], schedulers: Mapping[int, SchedulerProcess], now: float
    ) -> JobReport:
        """Return what this scan, made at Unix time `now`, shows about jobs."""
        children = children_of(processes.values())
        boottime = time.clock_gettime(time.CLOCK_BOOTTIME)
        started: list[JobProcess] = []
        found: dict[Key, tuple[JobProcess, list[Process], list[Key]]] = {}
        nested: dict[Key, Key] = {}
        running: dict[Key, JobUse] = {}
        for scheduler in schedulers.values():
            for process in children.get(scheduler.pid, ()):
                key = (process.pid, process.start_ticks)
                if process.state == "Z" or process.pid in schedulers or key in self._wrappers:
                    continue
                old = self._uses.get(key)
                job = old.job if old else self._new_job(key, process, scheduler, start_wall(key[1], now, boottime))
                if job is None:
                    continue
                if old is None:
                    started.append(job)
                tree, inner = _tree(process, children, schedulers)
                if old is not None and _are_same(tree, self._unchanged.get(key, ())):
                    # It sleeps, or is stopped: what it used before is not what it uses now.
                    running[key] = replace(old, cpu_percent=0.0) if old.cpu_percent else old
                    self._ticks[key] = (now, self._ticks[key][1])
                    continue
                nested.update(dict.fromkeys(inner, key))
                found[key] = (job, tree, inner)
        hosted = self._hosted_by_job({key: tree for key, (_, tree, _) in found.items()}, processes)
        for key, (job, tree, inner) in found.items():
            running[key] = self._use(job, tree, inner, now, hosted.get(key, []))
        self._remember_unchanged(found, running)
        vanished = tuple(use for key, use in self._uses.items() if key not in running)
        self._uses = running
        self._forget_dead(processes)
        # A scheduler starts first what the rest of the build waits for.
        started.sort(key=lambda job: (job.start_ticks, job.pid))
        return JobReport(tuple(started), tuple(running.values()), vanished, nested)

    def server_pids(self) -> frozenset[int]:
        """Cache's servers that may run compilers for jobs, as of the last scan."""
        return self._hosted_finder.server_pids

    def new_hosted(self, process: Process) -> Hosted | None:
        """Return a new child of a server; None while it has not exec'ed its command, or if it belongs to no job."""
        return self._hosted_finder.new_child(process)

    def still(self, key: Key) -> Iterable[int]:
        """Return the pids of all processes of a job that were stopped at the last scan; none if one of them was not."""
        tree = self._unchanged.get(key, ())
        return [process.pid for process in tree] if all(p.state == "T" for p in tree) else []

    def _remember_unchanged(
        self, found: Mapping[Key, tuple[JobProcess, list[Process], list[Key]]], alive: Container[Key]
    ) -> None:
        """Remember the processes of jobs that use nothing as long as these do not change.

        But a cache's client may have asked its server for something that has yet to start.
        """
        self._unchanged = {key: tree for key, tree in self._unchanged.items() if key in alive and key not in found}
        for key, (_, tree, inner) in found.items():
            if not inner and all(p.comm != SERVER for p in tree):
                self._unchanged[key] = tree

    def _new_job(self, key: Key, process: Process, scheduler: SchedulerProcess, started: float) -> JobProcess | None:
        """None while the child still shows its scheduler's command line (between fork and exec), or is not a job."""
        argv = read_cmdline(process.pid, self._proc)
        if (not argv or argv == scheduler.argv) and key not in self._newborn:
            self._newborn.add(key)
            return None
        return self._job(key, argv, scheduler, started)

    def _job(self, key: Key, argv: tuple[str, ...], scheduler: SchedulerProcess, started: float) -> JobProcess | None:
        """None for what make starts only to run another make, to print and tidy for a recipe, or to read.

        What it reads, by `$(shell ...)`, is part of its makefile.
        """
        if scheduler.tool == "make" and (
            not _MAKES.isdisjoint(programs_of(argv)) or is_helper(argv) or self._is_read(key[0], scheduler.pid)
        ):
            self._wrappers.add(key)
            return None
        planned = self._resolve(scheduler, argv) if self._resolve else None
        output, tool = planned or (None, None)
        if tool is None:
            tool, output = classify(argv)
            script = link_script(argv)
            if script:
                tool, output = self._linked(key[0], script)
        return JobProcess(*key, scheduler.key, started, argv, output or "", tool, sent_by(argv))

    def _is_read(self, pid: int, make: int) -> bool:
        """Whether it writes into a pipe that is not make's own output: then that make reads it."""
        own, outer = (read_link(f"{self._proc}/{p}/fd/1") for p in (pid, make))
        return own is not None and own.startswith("pipe:") and outer is not None and own != outer

    def _linked(self, pid: int, script: str) -> Work:
        """Return the output of CMake's link script; if it cannot be read, guess it from the name of its folder."""
        path = Path(read_cwd(pid, self._proc) or "/", script)
        try:
            with open(f"{root_of(pid, self._proc)}{path}", "rb") as file:
                work = classify_text(os.fsdecode(file.read(MAX_SCRIPT)))
        except OSError:
            work = Work("link", None)
        target = path.parent.name.removesuffix(".dir")
        folder = os.path.dirname(os.path.normpath(script)).rpartition("CMakeFiles/")[0]
        return work._replace(output=os.path.join(folder, work.output or target))

    def _hosted_by_job(
        self, trees: Mapping[Key, list[Process]], processes: Mapping[int, Process]
    ) -> dict[Key, list[Hosted]]:
        """Return what a cache's server runs for each job; usage of such compilers stays with the job they ran for."""
        clients = [(key, p) for key, tree in trees.items() for p in tree if p.comm == SERVER]
        if not (clients or self._has_clients):
            return {}
        self._has_clients = bool(clients)
        hosted = self._hosted_finder.find(processes, clients)
        now = {each.key: (each.job, _ticks(each)) for each in hosted}
        for key, (job, ticks) in self._hosted.items():
            if key not in now:
                self._spent[job] = self._spent.get(job, 0) + ticks
        self._hosted = now
        found: dict[Key, list[Hosted]] = {}
        for each in hosted:
            found.setdefault(each.job, []).append(each)
        return found

    def _use(self, job: JobProcess, tree: list[Process], inner: list[Key], now: float, hosted: list[Hosted]) -> JobUse:
        old = self._uses.get(job.key)
        if inner:
            self._held_schedulers.add(job.key)
        ticks = _cpu_ticks(tree, held_scheduler=job.key in self._held_schedulers)
        before, ticks_before = self._ticks.get(job.key, (job.started, 0))
        ticks = max(ticks + sum(map(_ticks, hosted)) + self._spent.get(job.key, 0), ticks_before)
        elapsed = now - before
        percent = 100.0 * (ticks - ticks_before) / CLK_TCK / elapsed if elapsed > 1 / CLK_TCK else 0.0
        self._ticks[job.key] = (now, ticks)
        both = [*tree, *(p for each in hosted for p in each.tree)] if hosted else tree
        rss = sum([p.held for p in both])
        names = {p.comm for p in both}
        launches = job.sends is not None or not names.isdisjoint(LAUNCHERS)
        launchers = [p for p in tree if self._launches(job, p)] if launches else []
        itself, meter = _works_here(tree, launchers), self._arch_meter
        phase, phase_pid = phase_of(both)
        # A launcher continues when its job is stopped.
        here = [p for p in tree if p not in launchers] if launchers else tree
        states = {p.state for p in here or tree} - {"Z"}
        # A shell that vforked as it was stopped waits in the kernel (D) for its stopped child to exec.
        stopped = not states or (not states.isdisjoint("Tt") and states <= {"T", "t", "D"})
        return JobUse(
            job,
            rss,
            max(rss, old.peak_rss if old else 0),
            round(percent, 1),
            ticks / CLK_TCK,
            phase,
            "frozen" if stopped else "running",
            tuple(tuple((p.pid, p.start_ticks) for p in each.tree) for each in hosted),
            self._has_clients and starts_server(tree, now),
            tuple(p.pid for p in both),
            next((LAUNCHERS[p.comm] for p in launchers if p.comm in LAUNCHERS), job.sends),
            tuple((p.pid, p.start_ticks) for p in launchers),
            itself or bool(hosted),
            not itself and bool(hosted) and all(each.prepares for each in hosted),
            meter.measure(job.key, both, now) if meter.used or not names.isdisjoint(PASSES) else {},
            phase_pid,
        )

    def _launches(self, job: JobProcess, process: Process) -> bool:
        """Say whether a process asks another machine to compile; a launcher may have a compiler's name."""
        if process.comm in LAUNCHERS or job.sends is None or process.state == "Z":
            return process.comm in LAUNCHERS and process.state != "Z"
        return os.path.basename(read_exe(process.pid, self._proc) or "") in LAUNCHERS

    def _forget_dead(self, processes: Mapping[int, Process]) -> None:
        if processes.keys() == self._pids:
            return
        self._pids = processes.keys()
        alive = {(p.pid, p.start_ticks) for p in processes.values()}
        self._wrappers &= alive
        self._newborn &= alive
        self._held_schedulers &= alive
        for key in [k for k in self._ticks if k not in alive]:
            del self._ticks[key]
        for key in [k for k in self._spent if k not in alive]:
            del self._spent[key]
        if self._arch_meter.used:
            self._arch_meter.forget_all_but(alive)


def _tree(
    root: Process, children: Mapping[int, list[Process]], schedulers: Mapping[int, SchedulerProcess]
) -> tuple[list[Process], list[Key]]:
    """Return a job's processes, down to the schedulers inside it, whose own jobs count instead."""
    tree: list[Process] = []
    inner: list[Key] = []
    stack = [root]
    while stack:
        process = stack.pop()
        tree.append(process)
        if process.pid in schedulers:
            inner.append((process.pid, process.start_ticks))
        else:
            stack += children.get(process.pid, ())
    return tree, inner


def _works_here(tree: Sequence[Process], launchers: Sequence[Process]) -> bool:
    """Say whether a job does anything on this machine except launchers, which wait, and what waits for these."""
    if not launchers:
        return True
    parents = {p.pid: p.ppid for p in tree}
    waiting: set[int] = set()
    for launcher in launchers:
        pid = launcher.pid
        while pid in parents and pid not in waiting:
            waiting.add(pid)
            pid = parents[pid]
    return any(p.pid not in waiting and p.state != "Z" for p in tree)


def _are_same(tree: Sequence[Process], before: Sequence[Process]) -> bool:
    return len(tree) == len(before) and all(map(is_, tree, before))


def _ticks(each: Hosted) -> int:
    return _cpu_ticks(list(each.tree), held_scheduler=False)


def _cpu_ticks(tree: list[Process], *, held_scheduler: bool) -> int:
    """CPU of the tree and of what ended in it, so that short compilers inside count.

    Where a scheduler ran inside, its ended jobs were counted for themselves and would be counted twice.
    """
    if held_scheduler:
        return sum(p.cpu_ticks for p in tree)
    return sum(p.cpu_ticks + p.child_ticks for p in tree)
