"""Stops and continues jobs, whole process trees at a time. Does not know why.

A job is identified by its first process; a signal is sent only if that is still the same process.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stoker.act.tree import Processes, descendants, listed_children, signal_tree
from stoker.contract.process import Key, death_signal, start_ticks, stat_fields

SCORE = 500
"""oom_score_adj of jobs: half of the machine's memory in addition to what they hold (proc(5)), so that the kernel, if
it must kill, takes a compiler rather than the scheduler or the user's shell. All processes of a job have the same
score: among them the largest is killed, not the shell that waits for it."""

ROUNDS = 5
"""A process may fork while its tree is being stopped: repeat until nothing of it runs, but not forever."""


@dataclass(frozen=True, slots=True)
class Target:
    """A job's first process. `leads` says that it leads a process group of its own, as ninja's jobs do.

    `hosted` are processes elsewhere that work for it, below a server that must never be stopped itself. `spared` are
    its processes that talk to another machine and must not be stopped either.
    """

    pid: int
    start_ticks: int
    leads: bool
    hosted: tuple[Key, ...] = ()
    spared: tuple[Key, ...] = ()

    @property
    def lives(self) -> bool:
        """Say whether this very process still exists and is not a zombie."""
        return start_ticks(self.pid) == self.start_ticks


def hold(target: Target) -> bool:
    """Stop a newborn, which hardly has children yet; True if it still existed."""
    return target.lives and _send(target, signal.SIGSTOP)


def freeze(targets: Sequence[Target]) -> list[bool]:
    """Stop whole trees; for each, return whether there was anything to stop.

    A group is stopped atomically: the kernel lets no process fork out of a group that has a signal pending. Processes
    that left the group, or jobs without one (make's), are stopped one by one until all are. So is every job of which
    something is spared.
    """
    stopped = [target.lives if target.spared else hold(target) for target in targets]
    there = [target for target, was in zip(targets, stopped, strict=True) if was]
    for _ in range(ROUNDS if there else 0):
        processes = Processes()
        strays = [pid for target in there for pid in _to_stop(processes, target) if processes.goes(pid)]
        if not strays:
            break
        _each(strays, signal.SIGSTOP)
    return stopped


def _to_stop(processes: Processes, target: Target) -> list[int]:
    if not target.spared:
        return processes.strays(target.pid)
    return [pid for pid in processes.job((target.pid, target.start_ticks)) if processes.key(pid) not in target.spared]


def release(target: Target) -> bool:
    """Continue a held newborn; True if it still existed. It had no time to grow a tree."""
    return target.lives and _send(target, signal.SIGCONT)


def thaw(targets: Sequence[Target]) -> list[bool]:
    """Continue whole trees; for each, return whether it still existed. Strays first, so that nothing waits for a
    stopped one."""
    living = [target.lives for target in targets]
    processes = Processes()
    there = [target.pid for target, lives in zip(targets, living, strict=True) if lives]
    _each((pid for first in there for pid in reversed(processes.strays(first))), signal.SIGCONT)
    return [lives and _send(target, signal.SIGCONT) for target, lives in zip(targets, living, strict=True)]


def kill(target: Target) -> bool:
    """Send SIGKILL to the whole tree; True if it still existed."""
    if not target.lives:
        return False
    below = descendants(target.pid)
    sent = _send(target, signal.SIGKILL)
    _each([*below, *Processes().trees(target.hosted)], signal.SIGKILL)
    return sent


def leave(target: Target, pids: Iterable[int]) -> None:
    """A job's first process has ended; `pids` were seen to belong to it: none that is alive may stay stopped.

    If the first one was killed, the rest is useless, and holds memory and the pipe that ninja reads to its end: it is
    killed too.
    """
    rest = [pid for pid in pids if pid != target.pid and _is_of(target, pid)]
    if not rest:
        return
    if death_signal((target.pid, target.start_ticks)) == signal.SIGKILL:
        _each(rest if target.leads else _handed_to(rest, {os.getppid()}), signal.SIGKILL)
    # If a watchdog has replaced the supervisor, orphans go to init.
    _each(rest if target.leads else _handed_to(rest, {os.getppid(), 1}), signal.SIGCONT)


def _is_of(target: Target, pid: int) -> bool:
    """Say whether the process is no older than the job and, if that has a group, in it: pids are reused."""
    fields = stat_fields(pid)
    if not fields or fields[0] == b"Z" or int(fields[19]) < target.start_ticks:
        return False
    return not target.leads or int(fields[2]) == target.pid


def _handed_to(pids: Iterable[int], heirs: set[int]) -> set[int]:
    """Return those that the kernel has reparented to one of the heirs when their job ended, and their descendants.

    The others are unrelated processes that have reused a pid of the job: within an hour pids are reused.
    """
    parents = {pid: int(fields[1]) for pid in pids if (fields := stat_fields(pid))}
    found = {pid for pid, parent in parents.items() if parent in heirs}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def hold_hosted(hosted: Iterable[Key]) -> None:
    """Stop what works elsewhere for jobs that are stopped."""
    _each(Processes().trees(hosted), signal.SIGSTOP)


def release_hosted(hosted: Iterable[Key]) -> None:
    """Continue it, even if its job has ended: nobody else would."""
    _each(reversed(Processes().trees(hosted)), signal.SIGCONT)


def nudge(processes: Iterable[Key]) -> None:
    """Continue processes that were seen just now, and only them; cheap if they are not stopped."""
    _each((pid for pid, _ in processes), signal.SIGCONT)


def end_hosted(targets: Iterable[Target]) -> None:
    """Send SIGTERM to what works elsewhere for jobs that are being ended."""
    signal_tree(Processes().trees(key for target in targets for key in target.hosted), signal.SIGTERM)


def raise_oom_score(pids: Iterable[int]) -> list[int]:
    """Raise the OOM score of these processes and their descendants; return their pids. Later children inherit it.

    Parents come first; otherwise a child that is forked meanwhile would keep the lower score.
    """
    todo, raised = list(pids), []
    while todo:
        pid = todo.pop()
        raised.append(pid)
        _raise_score(pid)
        todo += listed_children(pid)
    return raised


def _raise_score(pid: int) -> None:
    with contextlib.suppress(OSError, ValueError):
        fd = os.open(f"/proc/{pid}/oom_score_adj", os.O_RDWR | os.O_CLOEXEC)
        try:
            if int(os.read(fd, 16)) < SCORE:
                os.pwrite(fd, str(SCORE).encode(), 0)
        finally:
            os.close(fd)


def _send(target: Target, signum: signal.Signals) -> bool:
    try:
        if target.leads:
            os.killpg(target.pid, signum)
        else:
            os.kill(target.pid, signum)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _each(pids: Iterable[int], signum: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signum)
