"""A memory limit of the test's own: a version 1 control group below the test's, in which the kernel kills for real.

Knows nothing of stoker and of builds. Needs root and a writable version 1 memory hierarchy, and says so where it has
none: a test of memory must not pass because nothing limited it.
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

from stoker.sense.cgroup import find_cgroups

MIB = 2**20

_ENTER = 'echo $$ > "$0" && exec "$@"'
"""Run by sh with the group's cgroup.procs as $0: the process is in the group before the command's first page is."""

_NUMBERS = itertools.count(1)

PATIENCE_SECONDS = 20.0
"""How long to wait for killed processes to leave and for a build to hold less than a new limit."""


class NoMemoryGroupError(Exception):
    """The machine does not let this test limit memory."""


class Group:
    """A control group that is there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def held(self) -> int:
        """Bytes in use that are not file cache."""
        return _field(self.folder / "memory.stat", "total_rss")

    def pids(self) -> list[int]:
        """Every process in here."""
        return [int(pid) for pid in (self.folder / "cgroup.procs").read_text().split()]


class MemoryGroup(Group):
    """One control group with a limit; a context manager that ends every process in it and removes it."""

    def __init__(self, limit: int) -> None:
        """Make it with room for `limit` bytes. Raises NoMemoryGroupError."""
        super().__init__(own_folder() / f"stoker-{os.getpid()}-{next(_NUMBERS)}")
        try:
            self.folder.mkdir()
            self.set_limit(limit)
        except OSError as err:
            raise NoMemoryGroupError(f"{self.folder}: {err.strerror}; this needs root and cgroup v1") from err

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

        Raises OSError (EBUSY) if they hold more right now and the kernel finds nothing to take away.
        """
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
                return self.set_limit(limit)
            except OSError as err:
                if err.errno != errno.EBUSY or time.monotonic() > deadline:
                    raise
            time.sleep(0.02)

    @property
    def limit(self) -> int:
        """Bytes."""
        return _number(self.folder / "memory.limit_in_bytes")

    @property
    def kills(self) -> int:
        """How many processes the kernel has killed in here for want of memory."""
        fields = dict(line.split() for line in (self.folder / "memory.oom_control").read_text().splitlines())
        return int(fields["oom_kill"])

    @property
    def peak(self) -> int:
        """The most bytes that were in use at once, file cache included."""
        return _number(self.folder / "memory.max_usage_in_bytes")

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
    """The memory group that this process is in."""
    folders = find_cgroups(os.getpid()).memory_v1
    if not folders:
        raise NoMemoryGroupError("no version 1 memory control group can be seen; mount one at /sys/fs/cgroup/memory")
    return folders[0]


def _number(file: Path) -> int:
    return int(file.read_text())


def _field(file: Path, name: str) -> int:
    return next(int(line.split()[1]) for line in file.read_text().splitlines() if line.startswith(f"{name} "))
