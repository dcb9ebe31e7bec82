"""Reads the build's output as lines, by byte offset: nothing is indexed, so a log of many GiB opens at once.

Like less(1): a position is the offset where a line starts; lines before and after it are found by searching for
newlines near it. Knows no screens.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from itertools import takewhile

from stoker.show.update_source import OutputLog

CHUNK = 64 * 1024
"""Bytes read at once when searching for newlines."""

SHOWN = 64 * 1024
"""Maximum bytes kept of one line; the sanitiser shows far fewer."""

LONGEST = 32 * 2**20
"""Bytes after which a line without a newline counts as ended, so that no key press reads forever."""

SCAN = 256 * 1024
"""Bytes searched at once: about 10 ms, after which keys are answered."""

MESSAGE = 24
"""Lines searched below a CMake error for its message; FindPackage's messages have up to 20."""

_COLOUR = rb"(?:\x1b\[[0-9;:]*[mK])*"
"""Colour escapes that compilers put between the searched letters."""

ERRORS = re.compile(
    rb"FAILED:|(?:(?<![A-Za-z_])|(?<=\x1b\[K)|(?<=[0-9]m))(?:fatal )?[Ee]rror"
    + _COLOUR
    + rb":|undefined reference|\bKilled\b|ninja: build stopped"
    rb"|CMake Error|\*\*\* \[|Traceback \(most recent|died due to signal|\b[A-Za-z]+Error: "
)
"""Matches error lines in the output of ninja, make, CMake, GCC, Clang, nvcc and Python."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line: where it starts, where the next one starts, and its first bytes without the newline.

    `dropped`: it stands for all that the build tool prints of so many jobs that were dropped before they began.
    """

    start: int
    next: int
    raw: bytes
    dropped: int = 0


class TextLog:
    """Lines of an OutputLog."""

    def __init__(self, log: OutputLog) -> None:
        self._log = log

    def size(self) -> int:
        """Return the bytes written so far."""
        return self._log.size()

    def line_at(self, start: int) -> LogLine:
        """Return the line that starts at `start`, which must be before the log's end."""
        return self._line(start)

    def _line(self, start: int) -> LogLine:
        raw = b""
        at = start
        while at - start < LONGEST:
            chunk = self._log.read(at, CHUNK)
            if not chunk:
                break
            end = chunk.find(b"\n")
            if len(raw) < SHOWN:
                raw += chunk if end < 0 else chunk[:end]
            if end >= 0:
                return LogLine(start, at + end + 1, raw[:SHOWN])
            at += len(chunk)
        return LogLine(start, max(at, start + 1), raw[:SHOWN])

    def lines(self, start: int, count: int) -> list[LogLine]:
        """Return up to `count` lines from `start` on."""
        lines: list[LogLine] = []
        size = self.size()
        data, base = b"", start
        while start < size and len(lines) < count:
            end = data.find(b"\n", start - base) if data else -1
            if end < 0 and (start > base or not data):
                data, base = self._log.read(start, CHUNK), start
                end = data.find(b"\n")
            if end >= 0:
                line = LogLine(start, base + end + 1, data[start - base : end])
            else:
                line, data = self._line(start), b""
            lines.append(line)
            start = line.next
        return lines

    def with_message(self, start: int) -> list[LogLine]:
        """Return the line at `start`; for a CMake error, also the indented message below it."""
        first = self.line_at(start)
        if b"CMake Error" not in first.raw:
            return [first]
        below = list(takewhile(lambda line: not line.raw.strip() or line.raw[:1] in b" \t", self._below(first)))
        while below and not below[-1].raw.strip():
            below.pop()
        return [first, *below]

    def _below(self, line: LogLine) -> list[LogLine]:
        return self.lines(line.next, MESSAGE)

    def start_of(self, offset: int) -> int:
        """Return the start of the line that contains the byte at `offset`."""
        at = min(max(0, offset), self.size())
        lowest = max(0, at - LONGEST)
        while at > lowest:
            begin = max(lowest, at - CHUNK)
            end = self._log.read(begin, at - begin).rfind(b"\n")
            if end >= 0:
                return begin + end + 1
            at = begin
        return lowest

    def back(self, start: int, count: int) -> int:
        """Return the start of the line `count` lines before the one at `start`, or of the first line."""
        for _ in range(count):
            if start <= 0:
                return 0
            start = self.start_of(start - 1)
        return start

    def tail(self, count: int) -> int:
        """Return where the last `count` lines start."""
        size = self.size()
        if size and self._log.read(size - 1, 1) != b"\n":
            return self.back(self.start_of(size), count - 1)
        return self.back(size, count)


def pattern_of(words: str) -> re.Pattern[bytes]:
    """Return a pattern for `words` in raw output. It ignores colours, and case unless `words` has capitals."""
    letters = [re.escape(c.encode("utf-8", "replace")) for c in words]
    return re.compile(_COLOUR.join(letters), 0 if words != words.lower() else re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Scanned:
    """A step of a scan: the byte offsets of its matches, and how far the scan has come."""

    hits: tuple[int, ...]
    at: int


OVERLAP = 4096
"""Bytes by which neighbouring portions overlap, so that no match at their border is missed."""


async def scan(log: OutputLog, pattern: re.Pattern[bytes], start: int, end: int) -> AsyncIterator[Scanned]:
    """Yield matches that begin in start..end, in order, portion by portion."""
    at = start
    while at < end:
        stop = min(at + SCAN, end)
        data = log.read(at, stop - at + OVERLAP)
        if not data:
            return
        hits = tuple(at + m.start() for m in pattern.finditer(data) if m.start() < stop - at)
        at = stop
        yield Scanned(hits, at)


async def scan_back(log: OutputLog, pattern: re.Pattern[bytes], start: int, end: int) -> AsyncIterator[Scanned]:
    """Yield matches that begin in start..end, the last portion first; within a portion in order."""
    at = end
    while at > start:
        begin = max(start, at - SCAN)
        data = log.read(begin, at - begin + OVERLAP)
        hits = tuple(begin + m.start() for m in pattern.finditer(data) if m.start() < at - begin)
        at = begin
        yield Scanned(hits, at)
