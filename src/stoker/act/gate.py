"""Stops jobs and sets them going, whole trees at a time. Unaware of why.

A job is known by its first process; every signal goes out only if that is still the same process.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stoker.act.tree import Processes, descendants, listed_children, signal_tree
from stoker.contract.process import Key, start_ticks, stat_fields, was_killed

SCORE = 500
"""oom_score_adj of jobs: half of the machine's memory on top of what they hold (proc(5)), so that the kernel, if it
must kill, takes a compiler and neither the scheduler nor a person's shell. All processes of a job have the same score:
among them the largest goes, and not the shell that waits for it."""

ROUNDS = 5
"""A process may fork while its tree is being stopped: look again until nothing of it runs, but not for ever."""


@dataclass(frozen=True, slots=True)
class Target:
    """A job's first process. `leads` says that it leads a process group of its own, as ninja's jobs do.

    `hosted` are processes elsewhere that work for it, below a server that must never be stopped itself. `spared` are
    processes of it that talk to another machine, and must not be stopped either.
    """

    pid: int
    start_ticks: int
    leads: bool
    hosted: tuple[Key, ...] = ()
    spared: tuple[Key, ...] = ()

    @property
    def lives(self) -> bool:
        """Whether this very process is still there, and not a zombie."""
        return start_ticks(self.pid) == self.start_ticks


def hold(target: Target) -> bool:
    """Stop a newborn, which has hardly a child yet; True if it was there to be stopped."""
    return target.lives and _send(target, signal.SIGSTOP)


def freeze(targets: Sequence[Target]) -> list[bool]:
    """Stop whole trees; for each, whether there was anything to stop.

    A group is stopped at one stroke: the kernel lets nobody fork out of a group that has a signal pending. What left
    the group, or never had one (make's jobs), is looked for until all of it is stopped. So is all of a job of which
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
    """Set a newborn going that was held; True if it was there. It had no time for a tree."""
    return target.lives and _send(target, signal.SIGCONT)


def thaw(targets: Sequence[Target]) -> list[bool]:
    """Set whole trees going; for each, whether it was there. Strays first: nobody shall wait for one still stopped."""
    living = [target.lives for target in targets]
    processes = Processes()
    there = [target.pid for target, lives in zip(targets, living, strict=True) if lives]
    _each((pid for first in there for pid in reversed(processes.strays(first))), signal.SIGCONT)
    return [lives and _send(target, signal.SIGCONT) for target, lives in zip(targets, living, strict=True)]


def kill(target: Target) -> bool:
    """SIGKILL to the whole tree; True if it was there."""
    if not target.lives:
        return False
    below = descendants(target.pid)
    sent = _send(target, signal.SIGKILL)
    _each([*below, *Processes().trees(target.hosted)], signal.SIGKILL)
    return sent


def leave(target: Target, pids: Iterable[int]) -> None:
    """A job's first process has ended, and these were seen to be its others: no one that lives may stay stopped.

    Where that one was killed the rest is of no use to anybody, and holds memory, and the pipe that ninja reads to its
    end: it is killed too.
    """
    rest = [pid for pid in pids if pid != target.pid and _is_of(target, pid)]
    if not rest:
        return
    if was_killed(target.pid):
        _each(rest if target.leads else _handed_to(rest, {os.getppid()}), signal.SIGKILL)
    # Where a watchdog has taken the supervisor's place, orphans go to init.
    _each(rest if target.leads else _handed_to(rest, {os.getppid(), 1}), signal.SIGCONT)


def _is_of(target: Target, pid: int) -> bool:
    """Say whether the process is as old as the job at the most and, if that has a group, in it: pids are used again."""
    fields = stat_fields(pid)
    if not fields or fields[0] == b"Z" or int(fields[19]) < target.start_ticks:
        return False
    return not target.leads or int(fields[2]) == target.pid


def _handed_to(pids: Iterable[int], heirs: set[int]) -> set[int]:
    """Return those of them that the kernel has handed to one of the heirs when their job ended, and those below these.

    The others are processes that have got the pid of one that was the job's: in an hour pids are used again.
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
    """Set it going, also where its job has ended: nobody else would."""
    _each(reversed(Processes().trees(hosted)), signal.SIGCONT)


def nudge(processes: Iterable[Key]) -> None:
    """Set going processes that were seen just now, and only them; cheap where they are not stopped."""
    _each((pid for pid, _ in processes), signal.SIGCONT)


def end_hosted(targets: Iterable[Target]) -> None:
    """SIGTERM to what works elsewhere for jobs that are being ended."""
    signal_tree(Processes().trees(key for target in targets for key in target.hosted), signal.SIGTERM)


def raise_oom_score(pids: Iterable[int]) -> list[int]:
    """Raise the score by which the kernel picks whom to kill: for these processes and all below them, whose pids are
    returned. What any of them forks from now on inherits it.

    Parents come first, or a child that is forked meanwhile would keep the lower score.
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
