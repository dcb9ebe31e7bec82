"""The lines around a place in a log. Unaware of what they say and of why they are wanted.

Whatever the log holds, little of it is read: of a long line the beginning, and the search for its end is bounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import BinaryIO

from stoker.diagnose.blocks import PORTION
from stoker.model.text import plain

ABOVE = 3
BELOW = 6
"""Lines shown above and below: a compiler says where it is before the error, and shows the source after it."""

LINE_SHOWN = 300
"""Characters of a line that are handed on."""

_LINE_READ = 8 * 1024
_MAX_PORTIONS = 64
"""Portions that are read in search of a long line's end: 16 MiB; what is behind it is not shown then."""


@dataclass(frozen=True, slots=True)
class LineStart:
    """The start of a line: its byte and its number, from 1."""

    offset: int
    line: int


@dataclass(frozen=True, slots=True)
class Around:
    """`offset` is the byte where the wanted line begins; `lines` are harmless text, from the number `first` on."""

    offset: int
    first: int
    lines: tuple[str, ...]


def place_of(file: BinaryIO, begin: LineStart, line: int) -> LineStart:
    """Return where a line from `begin` on starts; the file's end if there are not so many. Raises OSError."""
    file.seek(begin.offset)
    offset, lines_to_go = begin.offset, line - begin.line
    while lines_to_go > 0 and (portion := file.read(PORTION)):
        count = portion.count(b"\n")
        if count < lines_to_go:
            lines_to_go -= count
            offset += len(portion)
            continue
        at = -1
        for _ in range(lines_to_go):
            at = portion.find(b"\n", at + 1)
        return LineStart(offset + at + 1, line)
    return LineStart(offset, line - lines_to_go)


def line_at(file: BinaryIO, offset: int) -> LineStart:
    """Return the line that begins at a byte: its number is counted from the start of the file. Raises OSError."""
    file.seek(0)
    line, bytes_to_go = 1, offset
    while bytes_to_go > 0 and (portion := file.read(min(bytes_to_go, PORTION))):
        line += portion.count(b"\n")
        bytes_to_go -= len(portion)
    return LineStart(offset - bytes_to_go, line)


def around(file: BinaryIO, begin: LineStart, line: int) -> Around:
    """Return a line and its neighbours, none from before `begin`. Raises OSError."""
    first = place_of(file, begin, max(begin.line, line - ABOVE))
    wanted = place_of(file, first, line)
    file.seek(first.offset)
    lines: list[str] = []
    while len(lines) <= line - first.line + BELOW and (raw := file.readline(_LINE_READ)):
        lines.append(plain(raw, LINE_SHOWN))
        if not raw.endswith(b"\n") and not _skip_line(file):
            break
    return Around(wanted.offset, first.line, tuple(lines))


def _skip_line(file: BinaryIO) -> bool:
    """Go behind the end of the line; False if it is too far away."""
    for _ in range(_MAX_PORTIONS):
        rest = file.readline(PORTION)
        if not rest or rest.endswith(b"\n"):
            return True
    return False
