"""Reads a deflated zip member at any offset, without writing it to disk. Knows nothing of what the bytes mean.

Two inflaters share the work. ISA-L's goes forward and passes each byte once: it is a third faster than the next best,
zlib-ng's, and its state is never copied. zlib's goes back; copies of its state are places to restart from.
"""

from __future__ import annotations

import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from isal import isal_zlib

from stoker.verify.binary.byte_source import ByteSource, Deadline, MemorySource, UnreadableError

MAX_INFLATION = 1032
"""The most bytes that deflate can make of one (zlib's own documentation)."""

_CHUNK = 1 << 18
_RESTARTS = 256
_LEAST_STRIDE = 4 << 20
"""For a member that is read backwards up to this many places to restart from are kept, 43 KB each, at least 4 MiB of
output apart."""
_RECENT_CHUNKS = 16
"""Chunks before the current position that are kept: most machine code for one GPU is smaller, and its headers point
back and forth."""
_HEAD = 1 << 12
_MAX_KEPT = 16 << 20

Consume = Callable[[bytes], object]


def inflate_all(data: bytes, most: int) -> bytes:
    """Inflate a small member, up to `most` bytes of output; raises UnreadableError for broken data."""
    inflater = _FastInflater(MemorySource(data))
    whole = inflater.take(most)
    while inflater.position < most and (more := inflater.take(most - inflater.position)):
        whole += more
    return whole


class DeflatedSource:
    """A deflated zip member, read at any offset.

    As long as reads go forward, every byte is inflated once, and passed on (for a checksum). Kept are the first bytes,
    the most recently inflated ones, so that small steps back are free, and those that were requested with `keep`.
    """

    def __init__(self, base: ByteSource, size: int, deadline: Deadline, consume: Consume | None = None) -> None:
        """`base` holds only the deflated bytes, `size` is their inflated size according to the archive. `consume`
        receives all inflated bytes in order, each once."""
        if size > base.size * MAX_INFLATION + 64:
            raise UnreadableError(f"claims to be {size} bytes, more than {base.size} deflated bytes can hold")
        self.size = size
        self._base = base
        self._deadline = deadline
        self._consume = consume
        self._stride = max(_LEAST_STRIDE, size // _RESTARTS)
        self._front = _Track(_FastInflater(base))
        self._restarts: list[_RestartableInflater] = []
        self._replay: _Track[_RestartableInflater] | None = None
        self._kept = [_KeptBytes(0, _HEAD)]
        self._last = _KeptBytes(0, 0)

    def keep(self, offset: int, length: int) -> None:
        """Keep these bytes once they are inflated, because they will be read later; beyond a bound this does
        nothing."""
        if offset >= self._front.position and 0 < length <= _MAX_KEPT - sum(k.length for k in self._kept):
            self._kept.append(_KeptBytes(offset, length))

    def keep_last(self, offset: int, length: int) -> None:
        """Keep these bytes, which are being inflated now, until the next call."""
        self._last = _KeptBytes(offset, length)
        self._last.take(offset, self.read(offset, length))

    def finish(self) -> int:
        """Inflate the rest; return the true size, at most one chunk more than promised.

        Raises UnreadableError for broken data.
        """
        while self._front.position <= self.size and self._go_on():
            pass
        return self._front.position

    def read(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from `offset`; raises UnreadableError for broken data."""
        end = min(offset + length, self.size)
        if offset < 0 or end <= offset:
            return b""
        for kept in (*self._kept, self._last):
            if kept.holds(offset, end):
                return kept.part(offset, end)
        if offset >= self._front.oldest:
            return self._front.read(offset, end, self._go_on)
        middle = min(end, self._front.position)
        return self._again(offset, middle) + self.read(middle, end - middle)

    def _go_on(self) -> bytes:
        """Inflate the next chunk; empty at the end."""
        self._deadline.check()
        start = self._front.position
        chunk = self._front.advance(_CHUNK)
        if chunk and self._consume is not None:
            self._consume(chunk)
        for kept in self._kept:
            kept.take(start, chunk)
        return chunk

    def _again(self, offset: int, end: int) -> bytes:
        """Inflate earlier bytes again."""
        replay = self._replay
        best = max((r for r in self._restarts if r.position <= offset), key=lambda r: r.position, default=None)
        if replay is None or offset < replay.oldest or (best is not None and best.position > replay.position):
            replay = _Track(best.fork() if best is not None else _RestartableInflater(self._base))
            self._replay = replay
        return replay.read(offset, end, lambda: self._go_on_again(replay))

    def _go_on_again(self, replay: _Track[_RestartableInflater]) -> bytes:
        self._deadline.check()
        chunk = replay.advance(min(_CHUNK, self._front.position - replay.position))
        if replay.position >= (self._restarts[-1].position if self._restarts else 0) + self._stride:
            self._restarts.append(replay.inflater.fork())
        return chunk


_Any = TypeVar("_Any", bound="_Inflater")


class _Track(Generic[_Any]):
    """An inflater, and the most recent chunks of its output."""

    def __init__(self, inflater: _Any) -> None:
        self.inflater = inflater
        self._recent: list[tuple[int, bytes]] = []

    @property
    def position(self) -> int:
        """Where the next chunk begins."""
        return self.inflater.position

    @property
    def oldest(self) -> int:
        """Where the oldest kept chunk begins."""
        return self._recent[0][0] if self._recent else self.position

    def advance(self, length: int) -> bytes:
        """Return the next chunk, at most `length` bytes; empty at the end."""
        chunk = self.inflater.take(length)
        if chunk:
            self._recent.append((self.position - len(chunk), chunk))
            if len(self._recent) > _RECENT_CHUNKS:
                del self._recent[0]
        return chunk

    def read(self, offset: int, end: int, go_on: Callable[[], bytes]) -> bytes:
        """Return these bytes, of which the first are kept or still to come from `go_on`."""
        first = max(0, bisect_right(self._recent, offset, key=_start) - 1)
        last = bisect_left(self._recent, end, key=_start)
        parts = [data[max(0, offset - at) : end - at] for at, data in self._recent[first:last]]
        while self.position < end and (chunk := go_on()):
            at = self.position - len(chunk)
            parts.append(chunk[max(0, offset - at) : end - at])
        return b"".join(parts)


def _start(piece: tuple[int, bytes]) -> int:
    return piece[0]


class _KeptBytes:
    """A part of a member that was requested before it was inflated."""

    def __init__(self, offset: int, length: int) -> None:
        self.length = length
        self._offset = offset
        self._data = bytearray()

    def take(self, start: int, chunk: bytes) -> None:
        """Take the part of a chunk that belongs here; chunks come in order."""
        first = self._offset + len(self._data)
        if start <= first < start + len(chunk):
            self._data += chunk[first - start : self._offset + self.length - start]

    def holds(self, offset: int, end: int) -> bool:
        """Whether all of these bytes have been taken."""
        return self._offset <= offset and end <= self._offset + len(self._data)

    def part(self, offset: int, end: int) -> bytes:
        """Return these bytes, all of which must have been taken."""
        return bytes(self._data[offset - self._offset : end - self._offset])


class _Decompressor(Protocol):
    """What the objects of zlib and ISA-L have in common."""

    @property
    def eof(self) -> bool: ...
    @property
    def unconsumed_tail(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


class _Inflater:
    """An inflater and its position. Never holds more than a chunk of output."""

    def __init__(self, base: ByteSource, state: _Decompressor) -> None:
        self.position = 0
        self._base = base
        self._offset = 0
        self._state = state
        self._pending = b""

    def take(self, length: int) -> bytes:
        """Return the next bytes, at most `length`; empty at the end. Raises UnreadableError."""
        while not self._state.eof:
            if not self._pending:
                self._pending = self._base.read(self._offset, _CHUNK)
                self._offset += len(self._pending)
            ended = not self._pending
            try:
                chunk = self._state.decompress(self._pending, length)
            except (zlib.error, isal_zlib.IsalError, RuntimeError) as err:  # type: ignore[misc]  # its stubs are wrong
                raise UnreadableError(f"broken deflated data after {self.position} bytes ({err})") from err
            self._pending = self._state.unconsumed_tail
            if chunk:
                self.position += len(chunk)
                return chunk
            if ended:
                return b""
        return b""


class _FastInflater(_Inflater):
    """Only goes forward."""

    def __init__(self, base: ByteSource) -> None:
        super().__init__(base, isal_zlib.decompressobj(-15))


class _RestartableInflater(_Inflater):
    """Can be copied at its position."""

    _state: zlib._Decompress

    def __init__(self, base: ByteSource) -> None:
        super().__init__(base, zlib.decompressobj(-15))

    def fork(self) -> _RestartableInflater:
        """Return a copy at the same position."""
        copy = _RestartableInflater(self._base)
        copy.position, copy._offset, copy._pending = self.position, self._offset, self._pending
        copy._state = self._state.copy()
        return copy
