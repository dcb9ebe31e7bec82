"""Bytes by offset: of a file, of memory, or of a part of either. Knows nothing of what the bytes mean.

Reads with `pread`, not through a mapping: a file that shrinks meanwhile then returns fewer bytes instead of causing
SIGBUS, and reading a large file here and there does not fill the process with its pages.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

MAX_SECONDS = 60.0
"""CPU seconds for one file. libtorch_cuda.so (1 GB) takes a twentieth of a second."""

_CHECKS = 16
"""Calls per look at the clock, which is a system call: pieces have at most 256 KiB."""


class UnreadableError(ValueError):
    """A file is not what it claims to be; the message says where, for a person."""


class Deadline:
    """A time limit for one file, in seconds from now. Uses this process's CPU time unless a clock is given, so that no
    verdict depends on how busy the machine is."""

    def __init__(self, seconds: float = MAX_SECONDS, clock: Callable[[], float] = time.process_time) -> None:
        self._clock = clock
        self._seconds = seconds
        self._end = clock() + seconds
        self._checks = 0

    def check(self) -> None:
        """Raise UnreadableError if the time is used up. Called for each piece of a file."""
        self._checks += 1
        if self._checks % _CHECKS == 1 and self._clock() > self._end:
            raise UnreadableError(f"gave up after {self._seconds:.0f} s: not all could be read")


class ByteSource(Protocol):
    """Something with a size in bytes that can be read at any offset."""

    @property
    def size(self) -> int:
        """The number of bytes."""
        ...

    def read(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from `offset`; fewer at the end, none beyond it."""
        ...


class FileSource:
    """A regular file. Raises OSError, and UnreadableError for anything but a regular file."""

    def __init__(self, path: Path) -> None:
        # O_NONBLOCK: opening a FIFO without a writer would block forever.
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        status = os.fstat(self._fd)
        self.size = status.st_size
        if not stat.S_ISREG(status.st_mode):
            os.close(self._fd)
            raise UnreadableError("not a regular file")

    def read(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from `offset`."""
        if offset < 0 or length <= 0 or offset >= self.size:
            return b""
        return os.pread(self._fd, min(length, self.size - offset), offset)

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)

    def __enter__(self) -> FileSource:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class MemorySource:
    """Bytes in memory."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size = len(data)

    def read(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from `offset`."""
        return self._data[offset : offset + length] if offset >= 0 and length > 0 else b""


class PartSource:
    """A window on another source, cut to that source's size."""

    def __init__(self, base: ByteSource, offset: int, size: int) -> None:
        self._base = base
        self._offset = max(0, min(offset, base.size))
        self.size = max(0, min(size, base.size - self._offset))

    def read(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from `offset` in the window."""
        if offset < 0 or offset >= self.size:
            return b""
        return self._base.read(self._offset + offset, min(length, self.size - offset))


def exactly(source: ByteSource, offset: int, length: int, what: str) -> bytes:
    """Return exactly `length` bytes; raises UnreadableError, which names `what` is cut off."""
    data = source.read(offset, length) if length > 0 else b""
    if len(data) < length:
        raise UnreadableError(f"cut off: {what} needs {length} bytes at {offset}, the file has {source.size}")
    return data
