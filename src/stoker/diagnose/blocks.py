"""A log of any size in pieces of whole lines. Unaware of what the lines say.

Memory is bounded whatever the log holds: of a line without an end only its beginning and its end are kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, Protocol

PORTION = 1 << 18
"""Bytes read at once: few enough that a line for every few bytes costs no memory to speak of."""

END_KEPT = 4096
"""Bytes kept of a line's beginning and of its end. A tool says what is the matter in its first words, but Python and
cargo say it behind a whole command line."""

CUT = b" ... "
"""Stands for the middle of a long line."""

NEAR = 8192
"""Bytes before and behind a block that are handed along, for lines whose meaning depends on their neighbours."""

_COLOUR = re.compile(rb"\x1b\[[0-9;:]*+[mK]")
"""Colours and erasures (SGR and EL, ECMA-48), which gcc and clang put between the words of an error."""


class Readable(Protocol):
    """A file as far as it is needed here."""

    def read(self, size: int, /) -> bytes:
        """Return so many bytes or fewer, none at the end. Raises OSError."""


class Block(NamedTuple):
    """Whole lines with their line ends.

    `line` is the number of the first; `before` ends where `data` begins, and `after` begins where it ends.
    """

    data: bytes
    line: int
    before: bytes
    after: bytes = b""


def blocks(file: Readable, line: int = 1) -> Iterator[Block]:
    """Yield blocks of the file from where it stands, which is the start of that line, to its end. Raises OSError."""
    last: Block | None = None
    for data in _portions(file):
        if last is not None:
            yield last._replace(after=data[:NEAR])
            line += last.data.count(b"\n")
        before = b"" if last is None else (last.before + last.data[-NEAR:])[-NEAR:]
        last = Block(_COLOUR.sub(b"", data) if b"\x1b" in data else data, line, before)
    if last is not None:
        yield last


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
