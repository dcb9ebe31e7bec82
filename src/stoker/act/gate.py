"""Stops jobs and sets them going, whole trees at a time.

Does what it is told and does not know why. A job is known by its first process; every signal goes out only if that
is still the same process.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterable
from dataclasses import dataclass

from stoker.act.tree import descendants, start_ticks, stat_fields

SCORE = 500
"""oom_score_adj of jobs: half of the machine's memory on top of what they hold (proc(5)), so that the kernel, if it
must kill, takes a compiler and neither the scheduler nor a person's shell."""

ROUNDS = 5
"""A process may fork while its tree is being stopped: look again until nothing of it runs, but not for ever."""


@dataclass(frozen=True, slots=True)
class Target:
    """A job's first process. `leads` says that it leads a process group of its own, as ninja's jobs do."""

    pid: int
    start_ticks: int
    leads: bool

    @property
    def lives(self) -> bool:
        """Whether this very process is still there, and not a zombie."""
        return start_ticks(self.pid) == self.start_ticks


def hold(target: Target) -> bool:
    """Stop a newborn, which has hardly a child yet; True if it was there to be stopped."""
    return target.lives and _send(target, signal.SIGSTOP)


def freeze(target: Target) -> bool:
    """Stop the whole tree; True if there was anything to stop.

    What left the job's process group is stopped one by one.
    """
    if not hold(target):
        return False
    for _ in range(ROUNDS):
        going = [pid for pid in descendants(target.pid) if _goes(pid)]
        if not going:
            break
        _each(going, signal.SIGSTOP)
    return True


def release(target: Target) -> bool:
    """Set a newborn going that was held; True if it was there. It had no time for a tree."""
    return target.lives and _send(target, signal.SIGCONT)


def thaw(target: Target) -> bool:
    """Set the whole tree going; True if it was there. Children first, so that nobody waits for one still stopped."""
    if not target.lives:
        return False
    _each(reversed(descendants(target.pid)), signal.SIGCONT)
    return _send(target, signal.SIGCONT)


def kill(target: Target) -> bool:
    """SIGKILL to the whole tree; True if it was there."""
    if not target.lives:
        return False
    below = descendants(target.pid)
    sent = _send(target, signal.SIGKILL)
    _each(below, signal.SIGKILL)
    return sent


def offer_to_the_kernel(target: Target) -> None:
    """Raise the score by which the kernel picks whom to kill; what is born below inherits it."""
    path = f"/proc/{target.pid}/oom_score_adj"
    with contextlib.suppress(OSError, ValueError):
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            if int(os.read(fd, 16)) < SCORE:
                os.pwrite(fd, str(SCORE).encode(), 0)
        finally:
            os.close(fd)


def _goes(pid: int) -> bool:
    fields = stat_fields(pid)
    return bool(fields) and fields[0] not in (b"T", b"t", b"Z", b"X")


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
