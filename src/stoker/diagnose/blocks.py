"""Reads a log of any size in blocks of whole lines. Knows nothing of what the lines say.

Memory is bounded whatever the log contains: of an endless line only the beginning and the end are kept.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple, Protocol

PORTION = 1 << 18
"""Bytes read at once: few enough that even a result for every few bytes costs little memory."""

END_KEPT = 4096
"""Bytes kept of a line's beginning and of its end. Most tools name the problem in their first words, but Python and
cargo name it after a whole command line."""

CUT = b" ... "
"""Replaces the middle of a long line."""

NEAR = 8192
"""Bytes before and after a block that are passed along, for lines whose meaning depends on their neighbours."""

_COLOUR = re.compile(rb"\x1b\[[0-9;:]*+[mK]")
"""Colours and erasures (SGR and EL, ECMA-48), which gcc and clang put between the words of an error."""

_PASTED = re.compile(rb"\[(?:\d{1,2}(?:;\d{1,3}){0,3})?m\[K")
"""What is left of them where a browser or an editor has dropped the escape characters."""


class Readable(Protocol):
    """The part of a file's interface that is needed here."""

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes, none at the end. Raises OSError."""


class Block(NamedTuple):
    """Whole lines with their line ends.

    `line` is the number of the first; `before` ends where `data` begins, and `after` begins where it ends.
    """

    data: bytes
    line: int
    before: bytes
    after: bytes = b""


def blocks(file: Readable, line: int = 1) -> Iterator[Block]:
    """Yield blocks of the file from its position, which is the start of that line, to its end. Raises OSError."""
    waiting: deque[bytes] = deque()
    before = b""
    behind = 0
    for data in chain(_portions(file), (None,)):
        if data is not None:
            plain = _COLOUR.sub(b"", data) if b"\x1b" in data else data
            plain = _PASTED.sub(b"", plain) if b"m[K" in plain else plain
            behind += len(plain) if waiting else 0
            waiting.append(plain)
        # A portion may be shorter than NEAR, as the end of the file is.
        while waiting and (behind >= NEAR or data is None):
            first = waiting.popleft()
            yield Block(first, line, before, b"".join(portion[:NEAR] for portion in waiting)[:NEAR])
            line += first.count(b"\n")
            before = (before + first[-NEAR:])[-NEAR:]
            behind -= len(waiting[0]) if waiting else 0


def _portions(file: Readable) -> Iterator[bytes]:
    """Yield whole lines; the last one may have no line end."""
    pending = b""
    while portion := file.read(PORTION):
        data = pending + portion
        end = data.rfind(b"\n") + 1
        pending = shortened(data[end:])
        if end:
            yield data[:end]
    if pending:
        yield pending


def shortened(line: bytes) -> bytes:
    """Return the line, without its middle if it is too long to be searched."""
    if len(line) <= 2 * END_KEPT + len(CUT):
        return line
    return line[:END_KEPT] + CUT + line[-END_KEPT:]
