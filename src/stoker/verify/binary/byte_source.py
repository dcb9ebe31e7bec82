"""Bytes by offset: of a file, a part of a file, or a deflated zip member. Unaware of what the bytes mean.

Everything here reads with `pread` and not by mapping: a file that shrinks while it is read then gives fewer bytes and
not a SIGBUS, and a large file read here and there does not fill the process with its pages.
"""

from __future__ import annotations

import os
import stat
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

MAX_SECONDS = 60.0
"""Time for one file. libtorch_cuda.so (1 GB) takes a twentieth of a second when it is cached."""

MAX_INFLATION = 1032
"""Bytes that deflate can make of one, at the very most (zlib's own documentation)."""

_CHUNK = 1 << 18
_CHECKPOINTS = 256
_LEAST_STRIDE = 4 << 20
"""A deflated member keeps up to this many places to restart from, 43 KB each, at least 4 MiB of output apart."""


class UnreadableError(ValueError):
    """A file is not what it claims to be; the message says where, for a person."""


class Deadline:
    """Time for one file, counted from now in seconds."""

    def __init__(self, seconds: float = MAX_SECONDS, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seconds = seconds
        self._end = clock() + seconds

    def check(self) -> None:
        """Raise UnreadableError when the time is used up."""
        if self._clock() > self._end:
            raise UnreadableError(f"gave up after {self._seconds:.0f} s")


class ByteSource(Protocol):
    """Something with a size in bytes that can be read anywhere."""

    @property
    def size(self) -> int:
        """Bytes in all."""
        ...

    def read(self, offset: int, length: int) -> bytes:
        """Up to `length` bytes from `offset`; fewer at the end, none beyond it."""
        ...


class FileSource:
    """A regular file. Raises OSError, and UnreadableError for anything that is not a regular file."""

    def __init__(self, path: Path) -> None:
        # O_NONBLOCK: opening a FIFO that nobody writes to would wait for ever.
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        status = os.fstat(self._fd)
        self.size = status.st_size
        if not stat.S_ISREG(status.st_mode):
            os.close(self._fd)
            raise UnreadableError("not a regular file")

    def read(self, offset: int, length: int) -> bytes:
        """Up to `length` bytes from `offset`."""
        if offset < 0 or length <= 0 or offset >= self.size:
            return b""
        return os.pread(self._fd, min(length, self.size - offset), offset)

    def close(self) -> None:
        """Give the file back."""
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
        """Up to `length` bytes from `offset`."""
        return self._data[offset : offset + length] if offset >= 0 and length > 0 else b""


class PartSource:
    """A window on another source; cut to what the source has."""

    def __init__(self, base: ByteSource, offset: int, size: int) -> None:
        self._base = base
        self._offset = max(0, min(offset, base.size))
        self.size = max(0, min(size, base.size - self._offset))

    def read(self, offset: int, length: int) -> bytes:
        """Up to `length` bytes from `offset` of the window."""
        if offset < 0 or offset >= self.size:
            return b""
        return self._base.read(self._offset + offset, min(length, self.size - offset))


class DeflatedSource:
    """A deflated zip member, read at any offset without writing it to disk.

    The first pass (`scan`) runs through all of it once, hands every chunk to the caller (for its hash) and keeps the
    inflater's state at places on the way; a later read starts again from the nearest one.
    """

    def __init__(self, base: ByteSource, size: int, deadline: Deadline) -> None:
        """`base` holds the deflated bytes alone, `size` is what the archive promises that they become."""
        if size > base.size * MAX_INFLATION + 64:
            raise UnreadableError(f"claims to be {size} bytes, more than {base.size} deflated bytes can hold")
        self.size = size
        self._base = base
        self._deadline = deadline
        self._stride = max(_LEAST_STRIDE, size // _CHECKPOINTS)
        self._marks: list[_Inflater] = []
        self._at = _Inflater(base)

    def scan(self, consume: Callable[[bytes], object], *, keep: bool = True) -> int:
        """Run through the member, passing every chunk on; returns its true size, at most one chunk over the promise.

        `keep` remembers places to restart from. Raises UnreadableError for broken data.
        """
        inflater = _Inflater(self._base)
        following = 0
        while True:
            self._deadline.check()
            if keep and inflater.position >= following:
                self._marks.append(inflater.fork())
                following = inflater.position + self._stride
            chunk = inflater.take(_CHUNK)
            if not chunk:
                return inflater.position
            consume(chunk)
            if inflater.position > self.size:
                return inflater.position

    def whole(self) -> bytes:
        """All of it at once, for members small enough to hold; at most one chunk over the promise."""
        parts: list[bytes] = []
        self.scan(parts.append, keep=False)
        return b"".join(parts)

    def read(self, offset: int, length: int) -> bytes:
        """Up to `length` bytes from `offset`. Forward reads are cheap."""
        if offset < 0 or length <= 0 or offset >= self.size:
            return b""
        self._seek(offset)
        parts = []
        wanted = min(length, self.size - offset)
        while wanted > 0:
            self._deadline.check()
            chunk = self._at.take(min(wanted, _CHUNK))
            if not chunk:
                break
            parts.append(chunk)
            wanted -= len(chunk)
        return b"".join(parts)

    def _seek(self, offset: int) -> None:
        best = max((m for m in self._marks if m.position <= offset), key=lambda m: m.position, default=None)
        if self._at.position > offset or (best is not None and best.position > self._at.position):
            self._at = best.fork() if best is not None else _Inflater(self._base)
        while self._at.position < offset:
            self._deadline.check()
            if not self._at.take(min(offset - self._at.position, _CHUNK)):
                return


class _Inflater:
    """An inflater and where it stands. Never holds more than a chunk of output."""

    def __init__(self, base: ByteSource) -> None:
        self.position = 0
        self._base = base
        self._offset = 0
        self._state = zlib.decompressobj(-15)
        self._pending = b""

    def fork(self) -> _Inflater:
        """The same place once more."""
        copy = _Inflater(self._base)
        copy.position, copy._offset, copy._pending = self.position, self._offset, self._pending
        copy._state = self._state.copy()
        return copy

    def take(self, length: int) -> bytes:
        """The next bytes, at most `length`; none at the end. Raises UnreadableError."""
        while not self._state.eof:
            if not self._pending:
                self._pending = self._base.read(self._offset, _CHUNK)
                self._offset += len(self._pending)
            ended = not self._pending
            try:
                chunk = self._state.decompress(self._pending, length)
            except zlib.error as err:
                raise UnreadableError(f"broken deflated data after {self.position} bytes ({err})") from err
            self._pending = self._state.unconsumed_tail
            if chunk:
                self.position += len(chunk)
                return chunk
            if ended:
                return b""
        return b""


def exactly(source: ByteSource, offset: int, length: int, what: str) -> bytes:
    """Exactly `length` bytes; raises UnreadableError that names `what` is cut off."""
    data = source.read(offset, length) if length > 0 else b""
    if len(data) < length:
        raise UnreadableError(f"cut off: {what} needs {length} bytes at {offset}, the file has {source.size}")
    return data
