"""Bytes that a tree of processes has written to disks, including ended processes.

Unaware of builds, and of which disk it was. The kernel adds what an ended process has written to its parent's figure
when the parent waits for it (proc_pid_io(5)), so a root that adopts orphans, as the supervisor does, has the whole of
it.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from stoker.sense.proc.processes import PROC
from stoker.sense.proc.procfs import read_once


class Io(NamedTuple):
    """Bytes made dirty that a disk is behind (tmpfs is not), and those of them that were deleted before they got there.

    Both in pages: a file of one byte counts as 4 KiB.
    """

    written: int = 0
    cancelled: int = 0


class WrittenReader:
    """Counts for the tree below `root`; `known` are bytes that were counted before this.

    With `adopted`, root never had some of what wrote the known bytes, and has written the others: both together are
    what is known.
    """

    def __init__(self, root: int, known: int = 0, *, adopted: bool = False, proc_root: Path = PROC) -> None:
        self._root = root
        self._adopted: int | None = known if adopted else None
        self._proc = proc_root
        self._elsewhere = 0
        self._most = Io()

    def read(self, pids: Iterable[int]) -> int:
        """Return bytes on disk or on their way there, given the root's descendants, parents before their children.

        In that order a process that ends meanwhile is missed until the next time, and none is counted twice. So of all
        readings the largest is right.
        """
        found = [read_io(pid, self._proc) for pid in dict.fromkeys((self._root, *pids))]
        written, cancelled = sum(io.written for io in found), sum(io.cancelled for io in found)
        self._most = Io(max(written, self._most.written), max(cancelled, self._most.cancelled))
        here = max(0, self._most.written - self._most.cancelled)
        if self._adopted is not None:
            self._elsewhere, self._adopted = max(0, self._adopted - here), None
        return self._elsewhere + here

    def go_on_from(self, root: int, known: int) -> None:
        """The root is gone with what was charged to it: from now on count what is below another process."""
        self._root, self._adopted, self._most = root, known, Io()


def read_io(pid: int, proc_root: Path = PROC) -> Io:
    """Return what a process has written, including its ended children; nothing if we may not read that."""
    fields: dict[bytes, int] = {}
    for line in (read_once(f"{proc_root}/{pid}/io") or b"").splitlines():
        name, _, value = line.partition(b": ")
        if value.isdigit():
            fields[name] = int(value)
    return Io(fields.get(b"write_bytes", 0), fields.get(b"cancelled_write_bytes", 0))
