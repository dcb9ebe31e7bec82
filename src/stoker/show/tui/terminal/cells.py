"""A model of the terminal's cells: takes what Textual writes and returns only what changes the picture.

Textual repaints whole regions, with a full style and a reset for every piece. Here each write is applied to a grid, the
grid is compared with what the terminal already shows, and the difference is written in as few bytes as possible.
Unknown escapes are passed on unchanged, and the picture then counts as unknown. Pure: knows no terminals and no files.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from rich.cells import cell_len

_TOKEN = re.compile(
    r"\x1b\[([0-9;]*)([mH])|\x1b\[\?2026[hl]|(\n)|([^\x00-\x1f\x7f-\x9f]+)"
    r"|(\x1b\[[<>?=][0-9;]*\$?[a-zA-Z]|\x1b\](?:2|9|22|99|777);[^\x00-\x1f\x7f-\x9f]*\x07|\x1b\[2[23];2t|\x07"
    r"|\x1bP(?:[^\x1b]|\x1b[^\\])*\x1b\\)"
)
"""What Textual writes: styles, moves, sync marks, line feeds, text; and what does not change the picture: private
modes, title, progress, notifications, a multiplexer's passthrough (DCS), the pointer's shape, BEL."""

_ENTER, _LEAVE = "\x1b[?1049h", "\x1b[?1049l"
"""Enter and leave the alternate screen. Nothing may be drawn on the main screen."""

_ATTRIBUTES = frozenset({"1", "2", "3", "4", "5", "7", "8", "9", "21", "51", "52", "53"})

_ON_BLANKS = frozenset({"4", "7", "9", "21", "53"})
"""Attributes that are visible on a blank: lines through, under and over it, and reverse."""

_UNCERTAIN = "\u2e80"
"""From here on (CJK and beyond) characters may be two cells wide."""

_NEAR = 4
"""Up to this many unchanged cells are cheaper to write again than to jump over."""


class Pen(NamedTuple):
    """A cell's style: SGR parameters of attributes, foreground and background; empty is the default."""

    attributes: tuple[str, ...] = ()
    fg: str = ""
    bg: str = ""


class Cell(NamedTuple):
    """One cell. A wide character is followed by a cell with empty text."""

    text: str
    pen: Pen


_DEFAULT = Pen()


@lru_cache(4096)
def dipped(pen: Pen, params: str) -> Pen | None:
    """Return the pen after SGR `params`; None if they are unknown."""
    attributes, fg, bg = list(pen.attributes), pen.fg, pen.bg
    fields = params.split(";") if params else ["0"]
    at = 0
    while at < len(fields):
        code = fields[at].lstrip("0") or "0"
        at += 1
        if code in ("38", "48"):
            length = {"5": 2, "2": 4}.get(fields[at] if at < len(fields) else "", 0)
            if not length or at + length > len(fields):
                return None
            colour = ";".join([code, *fields[at : at + length]])
            at += length
            fg, bg = (colour, bg) if code == "38" else (fg, colour)
        elif code == "0":
            attributes, fg, bg = [], "", ""
        elif code in _ATTRIBUTES:
            attributes += [code] * (code not in attributes)
        elif len(code) in (2, 3) and code[:-1] in ("3", "9"):
            fg = "" if code == "39" else code
        elif len(code) in (2, 3) and code[:-1] in ("4", "10"):
            bg = "" if code == "49" else code
        else:
            return None
    return Pen(tuple(sorted(attributes)), fg, bg)


@lru_cache(4096)
def change(old: Pen | None, new: Pen) -> str:
    """Return the shortest escape that turns one pen into another."""
    if old == new:
        return ""
    if old is None or set(old.attributes) - set(new.attributes):
        return f"\x1b[{';'.join(['0' if new != _DEFAULT else '', *new.attributes, *filter(None, new[1:])])}m"
    codes = [a for a in new.attributes if a not in old.attributes]
    codes += [new.fg or "39"] * (new.fg != old.fg)
    codes += [new.bg or "49"] * (new.bg != old.bg)
    return f"\x1b[{';'.join(codes)}m"


@lru_cache(4096)
def on_blank(pen: Pen) -> Pen:
    """Return the part of a pen that is visible on a blank."""
    return pen if _ON_BLANKS.intersection(pen.attributes) else Pen((), "", pen.bg)


def serves(pen: Pen, cell: Cell) -> bool:
    """Return whether a cell looks right if written with `pen`: on a blank, the foreground is invisible."""
    if cell.text != " ":
        return pen == cell.pen
    return pen.bg == cell.pen.bg and on_blank(pen).attributes == cell.pen.attributes == ()


class Screen:
    """The wanted grid of cells, and the one that the terminal shows."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self._wanted: list[list[Cell | None]] = [[None] * width for _ in range(height)]
        self._shown: list[list[Cell | None]] = [[None] * width for _ in range(height)]
        self._dirty: set[int] = set()
        self._x = self._y = 0
        self._pen = _DEFAULT
        self._out: list[str] = []
        self._at: tuple[int, int] | None = None
        self._out_pen: Pen | None = None
        self._away = False

    def feed(self, data: str) -> str:
        """Apply a write to the grid. Returns what must be sent at once, ahead of the next `difference`."""
        passed: list[str] = []
        at = 0
        while at < len(data):
            match = _TOKEN.match(data, at)
            if match is None:
                end = data.find("\x1b", at + 1)
                end = len(data) if end < 0 else end
                passed.append(self._pass(data[at:end]))
                at = end
                continue
            at = match.end()
            unknown = self._play(match)
            if unknown:
                passed.append(self._pass(unknown))
        return "".join(passed)

    def _play(self, match: re.Match[str]) -> str:
        """Apply one token; return it if it must be passed on to the terminal."""
        if match[4]:
            self._write(match[4])
        elif match[2] == "m":
            pen = dipped(self._pen, match[1])
            if pen is None:
                return match[0]
            self._pen = pen
        elif match[2] == "H":
            row, _, column = match[1].partition(";")
            self._y, self._x = int(row or 1) - 1, int(column or 1) - 1
        elif match[3]:
            self._y, self._x = self._y + 1, 0
        elif match[5]:
            return match[5]
        return ""

    def _pass(self, data: str) -> str:
        """Return data to pass on, preceded by the changes made before it."""
        before = self.difference()
        self._away = data == _LEAVE or (self._away and data != _ENTER)
        if data in (_ENTER, _LEAVE) or _TOKEN.fullmatch(data) is None or data.endswith(("m", "H")):
            self.forget()
        return before + data

    def forget(self) -> None:
        """Treat the terminal's content as unknown: the next difference is the whole picture."""
        self._shown = [[None] * self.width for _ in range(self.height)]
        self._dirty = set(range(self.height))
        self._at = self._out_pen = None

    def _write(self, text: str) -> None:
        if not 0 <= self._y < self.height:
            return
        row, pen = self._wanted[self._y], self._pen
        self._dirty.add(self._y)
        blank = on_blank(pen)
        narrow = text.isascii()
        for char in text:
            cells = 1 if narrow else cell_len(char)
            if cells == 0:
                self._join(row, char)
                continue
            if self._x >= 0 and self._x + cells <= self.width:
                self._put(row, Cell(char, blank if char == " " else pen), cells)
            self._x += cells

    def _join(self, row: list[Cell | None], mark: str) -> None:
        """Attach a combining mark, which has no width, to the character before it."""
        at = self._x - 1
        while 0 <= at < self.width:
            cell = row[at]
            if cell is None:
                return
            if cell.text:
                row[at] = cell._replace(text=cell.text + mark)
                return
            at -= 1

    def _put(self, row: list[Cell | None], cell: Cell, cells: int) -> None:
        """Set one character; halves of wide characters that it overwrites become blank, as on terminals."""
        x = self._x
        for at in range(x, x + cells):
            old = row[at]
            if old is None:
                continue
            if not old.text and at == x and x > 0:
                row[x - 1] = Cell(" ", old.pen)
            elif at == x + cells - 1 and at + 1 < self.width:
                after = row[at + 1]
                if after is not None and not after.text:
                    row[at + 1] = Cell(" ", after.pen)
        row[x] = cell
        if cells == 2:
            row[x + 1] = Cell("", cell.pen)

    def difference(self) -> str:
        """Return what turns the shown picture into the wanted one; empty if they are the same."""
        if self._away:
            return ""
        for y in sorted(self._dirty):
            self._row_difference(y, self._wanted[y], self._shown[y])
        self._dirty.clear()
        if not self._out:
            return ""
        out = "".join(self._out) + change(self._out_pen, _DEFAULT)
        self._out.clear()
        self._out_pen = _DEFAULT
        self._at = None  # the next write may move the cursor
        return out

    def _row_difference(self, y: int, wanted: list[Cell | None], shown: list[Cell | None]) -> None:
        if wanted == shown:
            return
        x = 0
        while x < self.width:
            cell = wanted[x]
            if cell is None or cell == shown[x]:
                x += 1
                continue
            if not cell.text and x:
                x -= 1  # the second half of a wide character is written with its first
                cell = wanted[x]
            if cell is not None:
                self._move(x, y, wanted)
                self._emit(x, y, cell)
                shown[x] = cell
            x += 1
            if x < self.width and (half := wanted[x]) is not None and not half.text:
                shown[x] = half
                x += 1

    def _move(self, x: int, y: int, row: list[Cell | None]) -> None:
        """Move the terminal's cursor to a cell, by rewriting a few unchanged cells if that is shorter."""
        if self._at == (x, y):
            return
        if self._at is not None and self._at[1] == y and 0 < x - self._at[0] <= _NEAR:
            between = row[self._at[0] : x]
            pen = self._out_pen
            if pen is not None and all(c is not None and len(c.text) == 1 and serves(pen, c) for c in between):
                self._out.append("".join(c.text for c in between if c is not None))
                return
        if self._at is not None and self._at[1] == y and x > self._at[0]:
            self._out.append(f"\x1b[{x - self._at[0]}C" if x - self._at[0] > 1 else "\x1b[C")
            return
        self._out.append(f"\x1b[{y + 1};{x + 1}H")

    def _emit(self, x: int, y: int, cell: Cell) -> None:
        if self._out_pen is None or not serves(self._out_pen, cell):
            self._out.append(change(self._out_pen, cell.pen))
            self._out_pen = cell.pen
        self._out.append(cell.text)
        # Terminals disagree on the width of marks, emoji and new characters: after those, position the cursor again.
        certain = len(cell.text) == 1 and cell.text < _UNCERTAIN and x + 1 < self.width
        self._at = (x + 1, y) if certain else None
