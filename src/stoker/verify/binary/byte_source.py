"""Bytes by offset: of a file, a part of a file, or a deflated zip member. Unaware of what the bytes mean.

Everything here reads with `pread` and not by mapping: a file that shrinks while it is read then gives fewer bytes and
not a SIGBUS, and a large file read here and there does not fill the process with its pages.
"""

from __future__ import annotations

import os
import stat
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from zlib_ng import zlib_ng

MAX_SECONDS = 60.0
"""CPU time for one file. libtorch_cuda.so (1 GB) takes a twentieth of a second."""

MAX_INFLATION = 1032
"""Bytes that deflate can make of one, at the very most (zlib's own documentation)."""

_CHECKS = 16
"""Calls for each look at the clock, which is a system call: pieces have at most 256 KiB."""

_CHUNK = 1 << 18
_CHECKPOINTS = 256
_LEAST_STRIDE = 4 << 20
"""A deflated member keeps up to this many places to restart from, 43 KB each, at least 4 MiB of output apart."""
_RECENT_CHUNKS = 16
"""Chunks behind the place where a deflated member is read that are kept: together as much as lies between two places to
restart from. Most machine code for one GPU is smaller, and its headers point back and forth."""


class UnreadableError(ValueError):
    """A file is not what it claims to be; the message says where, for a person."""


class Deadline:
    """Time for one file, counted from now in seconds: this process's CPU time unless a clock is given, so that no
    verdict depends on how busy the machine is."""

    def __init__(self, seconds: float = MAX_SECONDS, clock: Callable[[], float] = time.process_time) -> None:
        self._clock = clock
        self._seconds = seconds
        self._end = clock() + seconds
        self._checks = 0

    def check(self) -> None:
        """Raise UnreadableError when the time is used up. Called for each piece of a file."""
        self._checks += 1
        if self._checks % _CHECKS == 1 and self._clock() > self._end:
            raise UnreadableError(f"gave up after {self._seconds:.0f} s: not all could be read")


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

    Every byte is inflated once as long as reads go forward, and passed on (for a hash) on its way. A little of what was
    read is kept, so that a few steps back are free; for a longer way back the inflater's state was kept here and there.
    """

    def __init__(
        self, base: ByteSource, size: int, deadline: Deadline, consume: Callable[[bytes], object] | None = None
    ) -> None:
        """`base` holds the deflated bytes alone, `size` is what the archive promises that they become. `consume` gets
        all of these in order, each once."""
        if size > base.size * MAX_INFLATION + 64:
            raise UnreadableError(f"claims to be {size} bytes, more than {base.size} deflated bytes can hold")
        self.size = size
        self._deadline = deadline
        self._consume = consume
        self._stride = max(_LEAST_STRIDE, size // _CHECKPOINTS)
        self._at = self._front = _Inflater(base)
        self._marks = [self._at.fork()]
        self._recent: list[tuple[int, bytes]] = []

    def finish(self) -> int:
        """Go through what was not read yet; the true size, at most one chunk over the promise.

        Raises UnreadableError for broken data.
        """
        self._at, self._recent = self._front, []
        while self._at.position <= self.size and self._step():
            pass
        return self._front.position

    def read(self, offset: int, length: int) -> bytes:
        """Up to `length` bytes from `offset`; raises UnreadableError for broken data."""
        end = min(offset + length, self.size)
        if offset < 0 or end <= offset:
            return b""
        self._seek(offset)
        first = max(0, bisect_right(self._recent, offset, key=_start) - 1)
        last = bisect_left(self._recent, end, key=_start)
        parts = [data[max(0, offset - at) : end - at] for at, data in self._recent[first:last]]
        while self._at.position < end and (data := self._step()):
            at = self._at.position - len(data)
            parts.append(data[max(0, offset - at) : end - at])
        return b"".join(parts)

    def _seek(self, offset: int) -> None:
        """Stand where the next step, or what is kept, holds `offset`."""
        if self._recent and self._recent[0][0] <= offset < self._at.position:
            return
        places = [m for m in (*self._marks, self._front) if m.position <= offset]
        best = max(places, key=lambda m: m.position)
        if self._at.position > offset or best.position > self._at.position:
            self._at = best if best is self._front else best.fork()
            self._recent = []
        while self._at.position + _CHUNK <= offset and self._step():
            pass

    def _step(self) -> bytes:
        """The next chunk; none at the end."""
        self._deadline.check()
        if self._at is not self._front and self._at.position == self._front.position:
            self._at = self._front
        new = self._at is self._front
        chunk = self._at.take(_CHUNK if new else min(_CHUNK, self._front.position - self._at.position))
        if not chunk:
            return chunk
        if new:
            if self._consume is not None:
                self._consume(chunk)
            if self._at.position >= self._marks[-1].position + self._stride:
                self._marks.append(self._at.fork())
        self._recent.append((self._at.position - len(chunk), chunk))
        if len(self._recent) > _RECENT_CHUNKS:
            del self._recent[0]
        return chunk


def _start(piece: tuple[int, bytes]) -> int:
    return piece[0]


class _Inflater:
    """An inflater and where it stands. Never holds more than a chunk of output."""

    def __init__(self, base: ByteSource) -> None:
        self.position = 0
        self._base = base
        self._offset = 0
        self._state = zlib_ng.decompressobj(-15)
        self._pending = b""

    def fork(self) -> _Inflater:
        """The same place once more."""
        copy = _Inflater(self._base)
        copy.position, copy._offset, copy._pending = self.position, self._offset, self._pending
        copy._state = self._state.copy()  # type: ignore[attr-defined]  # missing in its stubs
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
            except zlib_ng.error as err:  # type: ignore[misc]  # an exception, though its stubs do not say so
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
