"""Notices new children of some processes within milliseconds, at the cost of one small read while nothing is born.

Unaware of schedulers and jobs.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from pathlib import Path

from stoker.sense.proc.processes import PROC, Process, parse_stat
from stoker.sense.proc.procfs import read_all, read_once

MAX_RANGE = 4096
"""More new pids than this since the last look are cheaper to find by listing /proc."""


class BirthWatch:
    """Children that were born since the last look.

    The kernel lists a process's children if it was built to (CONFIG_PROC_CHILDREN). Otherwise /proc/loadavg has the
    last pid that was assigned, and only pids since then are examined; if that is not reliable (a container's own
    /proc), /proc is listed.
    """

    def __init__(self, proc_root: Path = PROC, *, by_pid: bool = False) -> None:
        """`by_pid`: never use the lists of children, of which there is one per parent: there are many parents."""
        self._proc = str(proc_root)
        me = os.getpid()
        self._lists_children = not by_pid and read_once(f"{self._proc}/{me}/task/{me}/children") is not None
        self._seen: dict[int, set[int]] = {}
        self._lists: dict[int, bytes] = {}
        self._last = self._last_pid()
        self._trusts_last_pid = self._last is not None and self._last >= me

    def look(self, parents: Collection[int]) -> list[Process]:
        """The children of `parents` that are new since the last look, in the order of their pids."""
        found = self._new_children(parents) if self._lists_children else self._new_pids()
        born = (parse_stat(read_once(f"{self._proc}/{pid}/stat") or b"") for pid in found)
        wanted = frozenset(parents)
        return [p for p in born if p is not None and p.ppid in wanted and p.state != "Z" and self._is_process(p.pid)]

    def _new_children(self, parents: Iterable[int]) -> list[int]:
        """By the kernel's own lists. A parent's children at its first look are new, too."""
        lists = {p: read_all(f"{self._proc}/{p}/task/{p}/children") or b"" for p in parents}
        if lists == self._lists:  # most looks are in vain
            return []
        seen, found = {}, []
        for parent, data in lists.items():
            seen[parent] = {int(pid) for pid in data.split()}
            found += sorted(seen[parent] - self._seen.get(parent, set()))
        self._lists, self._seen = lists, seen
        return found

    def _new_pids(self) -> Iterable[int]:
        before, self._last = self._last, self._last_pid()
        if before is None or self._last is None or not self._trusts_last_pid:
            return self._listed()
        if before <= self._last <= before + MAX_RANGE:
            return range(before + 1, self._last + 1)
        return self._listed()

    def _listed(self) -> list[int]:
        """All pids that were not there at the last listing."""
        now = {int(name) for name in os.listdir(self._proc) if name.isdigit()}
        before = self._seen.get(0, set())
        self._seen[0] = now
        return sorted(now - before)

    def _last_pid(self) -> int | None:
        fields = (read_once(f"{self._proc}/loadavg", 128) or b"").split()
        return int(fields[4]) if len(fields) == 5 and fields[4].isdigit() else None

    def _is_process(self, pid: int) -> bool:
        """Threads use the same numbers, and /proc/TID/stat can be read like a process's."""
        if self._lists_children:
            return True
        for line in (read_once(f"{self._proc}/{pid}/status") or b"").splitlines():
            if line.startswith(b"Tgid:"):
                return int(line[5:]) == pid
        return False
