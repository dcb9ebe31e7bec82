"""Returns the lines around a place in a log, and finds where a line begins. Knows nothing of why they are wanted.

A CMake message is shown whole: its head is at the margin, and its body is indented.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO

from stoker.diagnose.blocks import NEAR, PORTION, Block, shortened
from stoker.diagnose.wrappers import unwrapped
from stoker.model.text import plain

ABOVE = 3
BELOW = 6
"""Lines shown above and below: a compiler names the place before the error, and shows the source after it."""

LINE_SHOWN = 300
"""Characters of a line that are returned."""

MESSAGE_LINES = 30
"""Lines of one CMake message that are shown; the longest of CMake's own, on package versions, has about 25."""

_CMAKE = re.compile(r"(?:-- )?CMake (?:Deprecation |Author |Internal )?(Warning|Deprecation|Error)\b")

_NEXT_STEP = re.compile(r"FAILED: |\[\d{1,7}/\d{1,7}\] |ninja: build stopped")
"""What ninja prints after the last output of a step."""

_COMPILES = re.compile(rb"\s-(?:c|dc|o|x)\s")
"""Options in a compiler's command; a shortened log may lack the command."""


@dataclass(frozen=True, slots=True)
class Around:
    """`lines` are harmless text, from the number `first` on."""

    first: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LineStart:
    """The start of a line: its byte and its number, from 1."""

    offset: int
    line: int


def place_of(file: BinaryIO, begin: LineStart, line: int) -> LineStart:
    """Return where a line from `begin` on starts; the file's end if there are not so many lines. Raises OSError."""
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
    """Return the line that begins at a byte; its number is counted from the start of the file. Raises OSError."""
    file.seek(0)
    line, bytes_to_go = 1, offset
    while bytes_to_go > 0 and (portion := file.read(min(bytes_to_go, PORTION))):
        line += portion.count(b"\n")
        bytes_to_go -= len(portion)
    return LineStart(offset - bytes_to_go, line)


class Neighbours:
    """The lines before and after the line that begins at `start` in a block and has the number `line`."""

    def __init__(self, block: Block, start: int, line: int) -> None:
        end = block.data.find(b"\n", start)
        end = len(block.data) if end < 0 else end + 1
        above = block.data[max(0, start - NEAR) : start]
        if len(above) < NEAR:
            above = (block.before + above)[-NEAR:]
        below = block.data[end : end + NEAR]
        if len(below) < NEAR:
            below = (below + block.after)[:NEAR]
        if len(above) == NEAR:
            above = above[above.find(b"\n") + 1 :]
        self.line = line
        self._here = shortened(block.data[start:end].rstrip(b"\r\n"))  # to make a line end harmless takes long
        self._above, self._below = above, below

    def around(self, above: int = ABOVE, below: int = BELOW) -> Around:
        """Return the line with its neighbours, or the whole CMake message that it belongs to."""
        before, behind = self._above.split(b"\n")[:-1], self._below.splitlines()
        head = _message_head(before, self._here)
        if head is not None:
            above = min(len(before) - head, MESSAGE_LINES - 1)
            body = _body_length(behind, _indent((before[head:] or [self._here])[0]))
            below = min(body, MESSAGE_LINES - 1 - above)
        before = before[max(0, len(before) - above) :] if above else []
        lines = [*before, self._here, *behind[:below]]
        return Around(self.line - len(before), tuple(plain(shortened(line), LINE_SHOWN) for line in lines))

    def above(self) -> bytes:
        """Return the lines above, 8 KiB of them."""
        return self._above

    def message(self) -> str:
        """Return the body of the CMake message of which the line is the head, without the call stack."""
        behind = self._below.splitlines()
        body = behind[: min(_body_length(behind, _indent(self._here)), MESSAGE_LINES)]
        text = " ".join(unwrapped(line).strip() for line in body)
        return text.partition("Call Stack (most recent call first)")[0]

    def body(self) -> list[str]:
        """Return all lines of the message whose head the line is, as its tool wrote them."""
        behind = self._below.splitlines()
        return [unwrapped(line).strip() for line in behind[: _body_length(behind, _indent(self._here))]]

    def end_of_message(self) -> int:
        """Return the last line of the message of CMake's that the line heads, 0 if it heads none."""
        if not _CMAKE.match(unwrapped(self._here).lstrip()):
            return 0
        return self.line + _body_length(self._below.splitlines(), _indent(self._here))

    def next_line(self) -> str:
        """Return the next line as its tool wrote it, empty at the end."""
        behind = self._below.split(b"\n", 1)[0]
        return unwrapped(shortened(behind)).strip()

    def printed_nothing(self) -> bool:
        """Return whether the failed step of ninja that the line names printed nothing.

        After this line ninja prints the command and all output of the step; then it continues with another step or
        ends.
        """
        behind = self._below.splitlines()
        if len(behind) < 2 or not _COMPILES.search(behind[0]):
            return False
        return _NEXT_STEP.match(unwrapped(behind[1]).strip()) is not None

    def in_cmake_warning(self) -> bool:
        """Return whether the line is in the indented body of a CMake warning."""
        if not _indent(self._here):
            return False
        before = self._above.split(b"\n")[:-1]
        head = _message_head(before, self._here)
        said = _CMAKE.match(unwrapped(before[head]).lstrip()) if head is not None and head < len(before) else None
        return said is not None and said[1] != "Error"


def _message_head(above: Sequence[bytes], here: bytes) -> int | None:
    """Return which line above is the head of the CMake message with `here`; the number of lines above if `here` is
    it."""
    if _CMAKE.match(unwrapped(here).lstrip()):
        return len(above)
    indent = _indent(here)
    for at in range(len(above) - 1, max(-1, len(above) - 1 - MESSAGE_LINES), -1):
        if not indent:
            return None
        text = unwrapped(above[at])
        own = len(text) - len(text.lstrip())
        if text and own < indent:
            if _CMAKE.match(text.lstrip()):
                return at
            indent = own
    return None


def _body_length(lines: Sequence[bytes], indent: int) -> int:
    """Return how many lines from here on are blank, or indented deeper than the head, without blank ones at the end."""
    count = 0
    for number, line in enumerate(lines, 1):
        text = unwrapped(line).rstrip()
        if text and len(text) - len(text.lstrip()) <= indent:
            break
        count = number if text else count
    return count


def _indent(line: bytes) -> int:
    text = unwrapped(line)
    return len(text) - len(text.lstrip())
