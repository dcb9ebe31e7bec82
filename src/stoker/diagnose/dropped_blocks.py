"""Finds what ninja and make print about jobs that were dropped before they began, or interrupted: none of it says why
the build failed. Which jobs those are, `output_parts` says.

For each such job ninja prints its status line (`[39/69] Building b.o`), `FAILED: b.o`, and the command; make prints one
line. Knows nothing of screens.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator

from stoker.model.text import clean

IsDropped = Callable[[bytes], bool]
"""Whether a line reports a dropped job as failed."""

_STATUS = re.compile(rb"(?:\x1b\[[0-9;]{0,20}[mK])*\[\d{1,7}/\d{1,7}\] ")
_WORDS = (b"FAILED: ", b"*** [")
_CODE = re.compile(rb"\[code=\d{1,3}\] ")


def find_failed(text: bytes, start: int = 0) -> int:
    """Return where the first line from `start` on begins that may be a scheduler's report of a failed job; -1 for none.

    The status line that ninja prints before it belongs to it.
    """
    found = min((at for word in _WORDS if (at := text.find(word, start)) >= 0), default=-1)
    if found < 0:
        return -1
    line = text.rfind(b"\n", 0, found) + 1
    before = text.rfind(b"\n", 0, max(0, line - 1)) + 1
    return before if _STATUS.match(text, before) else line


def failed_output(line: bytes) -> str:
    """Return the output that a line of ninja's reports as failed; empty for any other line."""
    _, marker, rest = line.partition(b"FAILED: ")
    words = _CODE.sub(b"", rest, count=1).split(maxsplit=1) if marker else []
    return clean(os.fsdecode(words[0])) if words else ""


def is_status(line: bytes) -> bool:
    """Return whether it is a status line of ninja's, which precedes what ninja prints of a job."""
    return _STATUS.match(line) is not None


def in_block(before: bytes, line: bytes, after: bytes, is_dropped: IsDropped) -> bool:
    """Return whether a line between two others belongs to a block: it calls a dropped job failed, or is the status line
    before that, or the command after it."""
    if is_dropped(line):
        return True
    if is_status(line):
        return is_dropped(after)
    return b"FAILED: " in before and is_dropped(before)


class BlockFilter:
    """Takes lines in order and returns them without the blocks; it replaces a run of blocks with their number.

    Holds back a status line until the next line is known.
    """

    def __init__(self) -> None:
        self._count = 0
        self._status: bytes | None = None
        self._expects_command = False

    def feed(self, line: bytes, is_dropped: IsDropped) -> Iterator[bytes | int]:
        """Yield what can be shown now that this line has come."""
        expects_command, self._expects_command = self._expects_command, False
        if is_dropped(line):
            self._count += 1
            self._status = None
            self._expects_command = b"FAILED: " in line
            return
        status = is_status(line)
        if expects_command and not status:
            return
        if self._status is not None or not status:
            yield from self.finish()
        if status:
            self._status = line
        else:
            yield line

    def finish(self) -> Iterator[bytes | int]:
        """Yield what is left if the output ends here."""
        if self._count:
            yield self._count
        if self._status is not None:
            yield self._status
        self._count, self._status = 0, None


def without_blocks(lines: Iterable[bytes], is_dropped: IsDropped) -> Iterator[bytes | int]:
    """Yield the lines of a whole text without the blocks; the number of blocks replaces a run of them."""
    blocks = BlockFilter()
    for line in lines:
        yield from blocks.feed(line, is_dropped)
    yield from blocks.finish()
