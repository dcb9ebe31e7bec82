"""The kernel's kills for lack of memory: how many, by the memory group's count, and which, by the kernel's log.

Unaware of builds and of the consequences of a death.
"""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import NamedTuple

from stoker.sense.machine.cgroup import Cgroups
from stoker.sense.proc.processes import PROC
from stoker.sense.proc.procfs import read_all

KERNEL_LOG = Path("/dev/kmsg")
RECORD = 8192
"""Longest record that reading /dev/kmsg gives; a shorter buffer may be refused (ABI/testing/dev-kmsg)."""

MAX_RECORDS = 2000
"""Records of the kernel's log read in one call: one death comes with about a hundred."""

KERNEL_FACILITY = 8
"""Lower priorities are the kernel's own; a record that a process writes into the log gets a higher one (syslog(2))."""

_KILLED = re.compile(rb"ut of memory: Kill(?:ed)? process (\d{1,10}) \((.{0,64}?)\)(?: total-vm:| score |, )")
_HELD = re.compile(rb"anon-rss:(\d{1,15})kB")
_GROUP = re.compile(rb"^oom-kill:.{0,4096},task_memcg=(/.{0,4095}),task=.{0,64},pid=(\d{1,10}),uid=\d")
"""mm/oom_kill.c: "oom-kill:constraint=..,task_memcg=/PATH,task=NAME,pid=N,uid=U" (since Linux 5.0), then
"Out of memory: Killed process N (name) total-vm:..kB, anon-rss:..kB, ..", with "Memory cgroup out of memory" where a
group's limit was met."""


INITIAL_PID_NAMESPACE = 0xEFFFFFFC
"""Inode of the pid namespace in which the kernel names pids (PROC_PID_INIT_INO in include/linux/proc_ns.h)."""


class Victim(NamedTuple):
    """A process that the kernel killed for lack of memory; `rss` is the bytes it held, 0 if unknown.

    The pid is the kernel's own, which in a container is not the one seen there (`pids_are_ours`).
    """

    pid: int
    program: str
    rss: int


def pids_are_ours(proc_root: Path = PROC) -> bool:
    """Say whether the pids in the kernel's log are those that are seen here."""
    try:
        return os.stat(f"{proc_root}/self/ns/pid").st_ino == INITIAL_PID_NAMESPACE
    except OSError:
        return False


class OomCounter:
    """How many processes the kernel has killed for lack of memory, in the memory group of a process.

    Version 2 counts a group and all below it, version 1 the group alone; both also count deaths when the whole machine
    runs out. If no group can be read it is the whole machine's count.
    """

    def __init__(self, groups: Cgroups, proc_root: Path = PROC) -> None:
        self._paths = [path for path in _count_files(groups) if _count(path) is not None] or [proc_root / "vmstat"]
        self._apart: dict[Path, tuple[int, int]] = {}

    def include(self, groups: Cgroups, since: float) -> None:
        """Count the deaths in a container's group too; in a group older than the Unix time `since` only future ones."""
        for path in _count_files(groups):
            if path not in self._apart and path not in self._paths and (count := _count(path)) is not None:
                # The kernel creates a group's folder when it creates the group.
                self._apart[path] = (count if path.parent.stat().st_ctime < since else 0, count)

    def read(self) -> int | None:
        """Return the count since the group, or the machine, exists; None if the kernel does not report it.

        The last count of a container's group stays included when the group is gone.
        """
        counts = [count for path in self._paths if (count := _count(path)) is not None]
        for path, (before, last) in self._apart.items():
            count = _count(path)
            self._apart[path] = (before, last if count is None else count)
        apart = sum(now - before for before, now in self._apart.values())
        return sum(counts) + apart if counts or self._apart else None


def _count_files(groups: Cgroups) -> list[Path]:
    """Return the files with the counts of a process's group, one per version."""
    return [
        *(folder / "memory.events" for folder in groups.unified[:1]),
        *(folder / "memory.oom_control" for folder in groups.memory_v1[:1]),
    ]


def _count(path: Path) -> int | None:
    for line in (read_all(str(path)) or b"").splitlines():
        name, _, value = line.partition(b" ")
        if name == b"oom_kill" and value.strip().isdigit():
            return int(value)
    return None


class KernelLog:
    """Deaths in the kernel's log from now on. Most systems let only root read it: then it reports nothing.

    The log is the whole machine's. With `group`, the path of a memory group as in /proc/PID/cgroup, it ignores deaths
    that the kernel places in another group.
    """

    def __init__(self, path: Path = KERNEL_LOG, group: str = "") -> None:
        self._groups = {os.fsencode(group.rstrip("/"))}
        self._of_others: set[int] = set()
        self._fd = -1
        with contextlib.suppress(OSError):
            self._fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.lseek(self._fd, 0, os.SEEK_END)

    def include(self, group: str) -> None:
        """Accept deaths in that group too."""
        self._groups.add(os.fsencode(group))

    def victims(self) -> list[Victim]:
        """Return who was killed since the last call."""
        found = []
        for _ in range(MAX_RECORDS if self._fd >= 0 else 0):
            try:
                record = os.read(self._fd, RECORD)
            except BrokenPipeError:  # the next record has been overwritten; continue with the one after it
                continue
            except OSError:
                break
            if not record:
                break
            found += self._victims(record)
        return found

    def _victims(self, record: bytes) -> list[Victim]:
        """Return the victim in a record, if that is one of ours: the log names its group just before its death."""
        placed = placed_in(record)
        if placed is not None and not any(is_within(placed[1], group) for group in self._groups):
            self._of_others.add(placed[0])
        victim = victim_of(record)
        if victim is None or victim.pid in self._of_others:
            self._of_others -= {victim.pid} if victim is not None else set()
            return []
        return [victim]

    def close(self) -> None:
        """Close the log."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def is_within(path: bytes, group: bytes) -> bool:
    """Say whether a group's path, as the kernel logs it, is that of `group` or below it; "" contains all.

    In a container the path of a group as seen there is only the end of the one that the kernel logs.
    """
    return not group or group + b"/" in path + b"/"


def placed_in(record: bytes) -> tuple[int, bytes] | None:
    """Return the pid that a record of the kernel's log places in a memory group, and the group's path."""
    match = _GROUP.match(_kernel_message(record))
    return (int(match[2]), match[1]) if match is not None else None


def _kernel_message(record: bytes) -> bytes:
    """Return the text of a record, empty if it is not the kernel's own."""
    prefix, _, message = record.partition(b";")
    priority = prefix.partition(b",")[0]
    return message if priority.isdigit() and int(priority) < KERNEL_FACILITY else b""


def victim_of(record: bytes) -> Victim | None:
    """Return the process that a record of the kernel's log says was killed, if it does."""
    message = _kernel_message(record)
    match = _KILLED.search(message)
    if match is None:
        return None
    held = _HELD.search(message, match.end())
    return Victim(int(match[1]), match[2].decode(errors="replace"), int(held[1]) * 1024 if held else 0)
