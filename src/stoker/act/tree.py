"""Processes as /proc shows them, and signals to many of them at once. Stdlib only: the supervisor uses it.

Unaware of builds and of stoker's files.
"""

import os
import re
import signal
import time
from collections.abc import Iterable
from typing import NamedTuple

from stoker.contract.process import Key, start_ticks, stat_fields

LISTS_CHILDREN = os.path.exists(f"/proc/self/task/{os.getpid()}/children")
"""Whether this kernel was built to list a process's children (CONFIG_PROC_CHILDREN)."""

STOP_PENDING = 1 << (signal.SIGSTOP - 1)
_PENDING = re.compile(rb"^S(?:ig|hd)Pnd:\s*([0-9a-f]+)", re.MULTILINE)

PART = 1 << 16
"""Bytes read at once; the kernel hands out a page at a time."""

SERVER = b"sccache"
"""The command of sccache's server: any client starts it, and it serves all clients, of this build or another."""


class ScannedProcess(NamedTuple):
    """One process at the moment of a scan."""

    state: bytes
    parent: int
    group: int
    start: int


class Processes:
    """All processes of the machine at one moment."""

    def __init__(self) -> None:
        self._known: dict[int, ScannedProcess] = {}
        self._children: dict[int, list[int]] = {}
        self._groups: dict[int, list[int]] = {}
        for name in os.listdir("/proc"):
            if name.isdigit() and (fields := stat_fields(int(name))):
                process = ScannedProcess(fields[0], int(fields[1]), int(fields[2]), int(fields[19]))
                self._known[int(name)] = process
                self._children.setdefault(process.parent, []).append(int(name))
                self._groups.setdefault(process.group, []).append(int(name))

    def children(self, pid: int) -> list[int]:
        """Return the direct children that are not zombies."""
        return [child for child in self._children.get(pid, ()) if self._known[child].state != b"Z"]

    def heirs(self, pid: int) -> list[Key]:
        """Return the direct children, including zombies."""
        return [self.key(child) for child in self._children.get(pid, ())]

    def below(self, root: int, *spared: int) -> list[int]:
        """Return the pids of all descendants of `root` that are not zombies, without `spared` and their descendants."""
        found: list[int] = []
        todo = [root]
        while todo:
            below = [pid for pid in self._children.get(todo.pop(), ()) if pid not in spared]
            todo += below
            found += [pid for pid in below if self._known[pid].state != b"Z"]
        return found

    def key(self, pid: int) -> Key:
        """Return the identity of a process of this scan."""
        return pid, self._known[pid].start

    def lives(self, key: Key) -> bool:
        """Say whether that very process exists and is not a zombie."""
        process = self._known.get(key[0])
        return process is not None and process.start == key[1] and process.state != b"Z"

    def job(self, key: Key) -> list[int]:
        """Return the processes of a job: its first, all descendants, and the group if it leads one. Empty if it is
        gone."""
        if not self.lives(key):
            return []
        found = {key[0], *self.below(key[0])}
        if self._known[key[0]].group == key[0]:
            found.update(pid for pid in self._groups[key[0]] if self._known[pid].state != b"Z")
        return sorted(found)

    def trees(self, keys: Iterable[Key]) -> list[int]:
        """Return the pids of those of these processes that are alive, and of all their descendants."""
        return sorted({pid for key in keys if self.lives(key) for pid in (key[0], *self.below(key[0]))})

    def servers(self, root: int) -> list[int]:
        """Return children of `root` that also serve others, and that it inherited when they went into the background.

        A client of such a server has arguments after its name, and the server has none.
        """
        named = [pid for pid in self.children(root) if _read(pid, "comm") == SERVER]
        return [pid for pid in named if b"\0" not in _read(pid, "cmdline")]

    def strays(self, root: int) -> list[int]:
        """Return the pids of descendants of `root`, without zombies, that are not in the process group led by it."""
        return [pid for pid in self.below(root) if self._known[pid].group != root]

    def goes(self, pid: int) -> bool:
        """Say whether that process is not stopped."""
        return self._known[pid].state not in (b"T", b"t")

    def is_stopped(self, key: Key) -> bool:
        """Say whether a job, or a part of it, was stopped by a signal.

        Its first process need not show it: a shell that has vforked waits in the kernel for its stopped child to exec.
        """
        return any(self._known[pid].state == b"T" for pid in self.job(key))


class Ending:
    """Ends processes: SIGTERM once to each, and SIGKILL after `seconds`."""

    def __init__(self, seconds: float) -> None:
        self.kill_at = time.monotonic() + seconds
        self._asked: set[int] = set()

    def hurry(self) -> None:
        """Send SIGKILL from now on."""
        self.kill_at = time.monotonic()

    def press(self, pids: list[int]) -> None:
        """Call this repeatedly, because a process may fork while the tree is being read."""
        if time.monotonic() >= self.kill_at:
            signal_tree(pids, signal.SIGKILL)
            return
        signal_tree([pid for pid in pids if pid not in self._asked], signal.SIGTERM)
        self._asked.update(pids)


def _read(pid: int, name: str) -> bytes:
    """Return one of a process's files in /proc, without its terminator; empty if the process is gone.

    Not by open(), for the reason that `stat_fields` has.
    """
    try:
        fd = os.open(f"/proc/{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    parts = []
    try:
        while part := os.read(fd, PART):
            parts.append(part)
    except OSError:
        return b""
    finally:
        os.close(fd)
    return b"".join(parts).rstrip(b"\0\n")


def command_line(pid: int) -> list[bytes]:
    """Return the words of its command line; empty for a zombie or a process that is gone."""
    words = _read(pid, "cmdline")
    return words.split(b"\0") if words else []


def command_name(pid: int) -> bytes:
    """Return the short name of the program that a process runs; empty if it is gone."""
    return _read(pid, "comm")


def that_name(word: bytes) -> dict[int, list[bytes]]:
    """Return the command lines that contain `word`, by pid."""
    lines = {int(name): command_line(int(name)) for name in os.listdir("/proc") if name.isdigit()}
    return {pid: words for pid, words in lines.items() if word in words}


def shows_stop(key: Key) -> bool:
    """Return `Processes.is_stopped` of a job that is too young to have orphans, without scanning all processes.

    Also true if the job was sent a stop and has had no core since on which to act on it.
    """
    if start_ticks(key[0]) != key[1]:
        return False
    if not LISTS_CHILDREN:
        return _is_stopping(key[0]) or Processes().is_stopped(key)
    todo = [key[0]]
    while todo:
        pid = todo.pop()
        if _is_stopping(pid):
            return True
        todo += listed_children(pid)
    return False


def listed_children(pid: int) -> list[int]:
    """Return the children of a process's first thread, if the kernel lists them; otherwise nothing."""
    return [int(child) for child in _read(pid, f"task/{pid}/children").split()]


def _is_stopping(pid: int) -> bool:
    """Say whether a process is stopped, or will be as soon as it runs: a SIGSTOP is pending (proc(5))."""
    status = _read(pid, "status")
    return b"\nState:\tT" in status or any(int(mask, 16) & STOP_PENDING for mask in _PENDING.findall(status))


def descendants(root: int, *spared: int) -> list[int]:
    """Return the pids of all descendants of `root` that are not zombies, without `spared` and their descendants."""
    return Processes().below(root, *spared)


def signal_tree(pids: Iterable[int], signum: int) -> None:
    """Send `signum`; continue stopped processes, which could not act on it otherwise."""
    for pid in pids:
        try:
            os.kill(pid, signum)
            if signum != signal.SIGCONT:
                os.kill(pid, signal.SIGCONT)
        except (ProcessLookupError, PermissionError):
            continue
