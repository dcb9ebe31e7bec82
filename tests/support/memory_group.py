"""A memory limit of the test's own: a control group of version 1 or 2 in which the kernel kills for real.

Knows nothing of stoker and of builds. Needs a memory hierarchy that it may write to (root's, or on version 2 a
delegated one), and says so where it has none: a test of memory must not pass because nothing limited it.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from stoker.sense.machine.cgroup import Cgroups, find_cgroups

MIB = 2**20

_ENTER = 'echo $$ > "$0" && exec "$@"'
"""Run by sh with the group's cgroup.procs as $0: the process is in the group before the command's first page is."""

_NUMBERS = itertools.count(1)

SLACK = 16 * MIB
"""Version 2 sets a limit at once, whatever is held: room for what is taken between a look and that."""

PATIENCE_SECONDS = 20.0
"""How long to wait for killed processes to leave and for a build to hold less than a new limit."""


class NoMemoryGroupError(Exception):
    """The machine does not let this test limit memory."""


class Files(NamedTuple):
    """What one version of control groups calls its files, and the fields of memory.stat that hold what the kernel
    cannot drop: the processes' own memory, then tmpfs and pages of files that no disk has yet."""

    limit: str
    peak: str
    events: str
    anonymous: str
    unwritten: tuple[str, ...]


VERSION_1 = Files(
    "memory.limit_in_bytes",
    "memory.max_usage_in_bytes",
    "memory.oom_control",
    "total_rss",
    ("total_shmem", "total_dirty", "total_writeback"),
)
VERSION_2 = Files("memory.max", "memory.peak", "memory.events", "anon", ("shmem", "file_dirty", "file_writeback"))


class Group:
    """A control group that is there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def files(self) -> Files:
        """The names of its files."""
        return VERSION_2 if (self.folder / "cgroup.controllers").exists() else VERSION_1

    @property
    def cgroups(self) -> Cgroups:
        """It and the one above, as `sense` sees the groups of a process in here."""
        chain = (self.folder, self.folder.parent)
        return Cgroups(unified=chain) if self.files is VERSION_2 else Cgroups(memory_v1=chain)

    @property
    def held(self) -> int:
        """Bytes in use that are not file cache."""
        return _field(self.folder / "memory.stat", self.files.anonymous)

    @property
    def unwritten(self) -> int:
        """Bytes of shared memory and tmpfs, and of files' pages that no disk has yet."""
        return sum(_field(self.folder / "memory.stat", name) for name in self.files.unwritten)

    def pids(self) -> list[int]:
        """Every process in here."""
        return [int(pid) for pid in (self.folder / "cgroup.procs").read_text().split()]


class MemoryGroup(Group):
    """One control group with a limit; a context manager that ends every process in it and removes it."""

    def __init__(self, limit: int, above: Path | None = None) -> None:
        """Make it with room for `limit` bytes, in the group `above` or beside the test's own. Raises
        NoMemoryGroupError."""
        super().__init__((above or own_folder()) / f"stoker-{os.getpid()}-{next(_NUMBERS)}")
        try:
            self.folder.mkdir()
            self.set_limit(limit)
        except OSError as err:
            raise NoMemoryGroupError(f"{self.folder}: {err.strerror}; this needs root or a delegated group") from err

    def __enter__(self) -> MemoryGroup:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def wrap(self, command: Sequence[str]) -> list[str]:
        """The command that runs `command`, and everything that it starts, in here."""
        return ["sh", "-c", _ENTER, str(self.folder / "cgroup.procs"), *command]

    def set_limit(self, limit: int) -> None:
        """Bytes that all processes together may hold, swap included where the kernel counts it.

        If they hold more right now and the kernel finds nothing to take away, version 2 kills; version 1 raises OSError
        (EBUSY).
        """
        if self.files is VERSION_2:
            (self.folder / "memory.max").write_text(str(limit))
            (self.folder / "memory.swap.max").write_text("0")
            return
        swap = self.folder / "memory.memsw.limit_in_bytes"
        names = ["memory.limit_in_bytes"]
        if swap.exists():
            # The limit with swap may never be the lower one, on the way neither.
            names.insert(0 if limit > _number(swap) else 1, swap.name)
        for name in names:
            (self.folder / name).write_text(str(limit))

    def lower_limit(self, limit: int) -> None:
        """`set_limit` at the first moment when the processes hold so little; raises OSError if there is none."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                if self.files is VERSION_2 and self.held > limit - SLACK:
                    raise OSError(errno.EBUSY, "more is held")
                return self.set_limit(limit)
            except OSError as err:
                if err.errno != errno.EBUSY or time.monotonic() > deadline:
                    raise
            time.sleep(0.02)

    @property
    def limit(self) -> int:
        """Bytes."""
        return _number(self.folder / self.files.limit)

    @property
    def kills(self) -> int:
        """How many processes the kernel has killed in here for want of memory."""
        return _field(self.folder / self.files.events, "oom_kill")

    @property
    def peak(self) -> int:
        """The most bytes that were in use at once, file cache included."""
        return _number(self.folder / self.files.peak)

    def end_all(self) -> None:
        """SIGKILL for every process in here, until there is none."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while pids := self.pids():
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.folder}: {pids} do not end")
            time.sleep(0.01)

    def close(self) -> None:
        """Leave nothing behind."""
        self.end_all()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return self.folder.rmdir()
            except OSError as err:  # the kernel takes a moment to let the last process go
                if err.errno != errno.EBUSY or time.monotonic() > deadline:
                    raise
            time.sleep(0.01)


def own_folder() -> Path:
    """Where this process can make memory groups: in its own one, or beside it in version 2, where a group that holds
    processes passes no memory on to others."""
    groups = find_cgroups(os.getpid())
    if groups.memory_v1:
        return groups.memory_v1[0]
    for folder in groups.unified[1:2]:
        if "memory" in (folder / "cgroup.subtree_control").read_text().split():
            return folder
    raise NoMemoryGroupError("no memory control group can be seen that may have others")


def _number(file: Path) -> int:
    return int(file.read_text())


def _field(file: Path, name: str) -> int:
    return next(int(line.split()[1]) for line in file.read_text().splitlines() if line.startswith(f"{name} "))
