"""Lines of inked text, and functions that fit text into cells. Pure.

A line is a tuple of parts; a part is sanitised text and its ink: the name of a theme token with attributes
("memory", "accent bold", "cursor_text on cursor"), or the ink of a piece of build output. Does not know Textual.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size

from stoker.model.text import Ink, Span
from stoker.show.tui.terminal.glyphs import Glyphs


class Part(NamedTuple):
    """A piece of a line. `target` is what a click on it means: `job:12`, `row:3`, `sort:name`, `key:output`; empty for
    nothing."""

    text: str
    ink: str | Ink = "text"
    target: str = ""


Line = tuple[Part, ...]
BLANK: Line = ()
GAP = Part("  ")


def width_of(line: Iterable[Part]) -> int:
    """Return the cells that a line takes."""
    return sum(cell_len(part.text) for part in line)


def text_of(line: Iterable[Part]) -> str:
    """Return a line's text without its inks."""
    return "".join(part.text for part in line)


def aimed(line: Iterable[Part], target: str) -> Line:
    """Return the same line with `target` as the meaning of a click."""
    return tuple(part._replace(target=target) for part in line)


def pad(text: str, width: int, *, right: bool = False) -> str:
    """Return `text` cut or padded to exactly `width` cells; `right` aligns it to the right."""
    missing = width - cell_len(text)
    if missing < 0:
        return set_cell_size(text, max(0, width))
    return " " * missing + text if right else text + " " * missing


def elide_end(text: str, width: int, mark: str = "…") -> str:
    """Return `text` in at most `width` cells, cut at its end."""
    if cell_len(text) <= width:
        return text
    return "" if width <= 0 else _head(text, width - 1) + mark


def elide_middle(text: str, width: int, mark: str = "…") -> str:
    """Return `text` in at most `width` cells, cut in the middle: its ends matter most."""
    if cell_len(text) <= width:
        return text
    if width <= 1:
        return mark[:width]
    tail = (width - 1) // 2
    return _head(text, width - 1 - tail) + mark + _tail(text, tail)


def elide_path(path: str, width: int, mark: str = "…") -> str:
    """Return a path in at most `width` cells, with its file name and as much of its folders as fits.

    An absolute path keeps its last folders: all paths of a build begin alike.
    """
    if cell_len(path) <= width:
        return path
    folder, slash, name = path.rpartition("/")
    room = width - cell_len(name) - 2
    if not slash or room < 0:
        return elide_middle(name, width, mark)
    if not path.startswith("/"):
        return _head(folder, room) + mark + "/" + name
    kept = name
    for part in reversed(folder[1:].split("/")):
        room -= cell_len(part) + 1
        if room < 0:
            break
        kept = f"{part}/{kept}"
    return f"{mark}/{kept}"


def _head(text: str, width: int) -> str:
    if text.isascii():
        return text[: max(0, width)]
    return set_cell_size(text, max(0, width)).rstrip(" ") if width > 0 else ""


def _tail(text: str, width: int) -> str:
    if text.isascii():
        return text[len(text) - width :] if width > 0 else ""
    while cell_len(text) > width:
        text = text[1:]
    return text


def fit(line: Iterable[Part], width: int) -> Line:
    """Return a line cut or padded to exactly `width` cells."""
    fitted: list[Part] = []
    left = width
    for part in line:
        if left <= 0:
            break
        cells = cell_len(part.text)
        fitted.append(part if cells <= left else part._replace(text=set_cell_size(part.text, left)))
        left -= cells
    if left > 0:
        fitted.append(Part(" " * left))
    return tuple(fitted)


def spread(left: Sequence[Part], right: Sequence[Part], width: int) -> Line:
    """Return a line with `left` and `right` at its ends; `left` is cut if necessary."""
    room = width - width_of(right)
    return (*fit(left, room), *right) if room > 0 else fit(right, width)


def beside(left: list[Line], right: list[Line], left_width: int) -> list[Line]:
    """Return two columns of lines, the first `left_width` cells wide."""
    height = max(len(left), len(right))
    left += [BLANK] * (height - len(left))
    right += [BLANK] * (height - len(right))
    return [(*fit(a, left_width), Part("   "), *b) for a, b in zip(left, right, strict=True)]


def crop(line: Iterable[Part], start: int, width: int) -> Line:
    """Return the `width` cells of a line from cell `start` on."""
    shown: list[Part] = []
    at = 0
    for part in line:
        cells = cell_len(part.text)
        if at + cells > start:
            text = part.text if at >= start else _tail(part.text, at + cells - start)
            shown.append(part._replace(text=text))
        at += cells
        if at >= start + width:
            break
    return fit(shown, width)


def whole_clauses(text: str, width: int) -> str:
    """Return as many clauses of `text`, separated by `, `, `; ` or ` + `, as fit into `width` cells; maybe none."""
    ends = [*(match.start() for match in re.finditer(r"[,;] | \+ ", text)), len(text)]
    return next((text[:end] for end in reversed(ends) if cell_len(text[:end]) <= width), "")


def wrap(text: str, width: int, limit: int) -> list[str]:
    """Return `text` in at most `limit` pieces of at most `width` cells: broken at blanks, else behind slashes."""
    pieces: list[str] = []
    while text and len(pieces) < limit:
        if cell_len(text) <= width:
            pieces.append(text)
            break
        head = set_cell_size(text, width).rstrip()
        blank, slash = head.rfind(" "), head.rfind("/") + 1
        if len(pieces) == limit - 1:
            pieces.append(elide_end(text, width))
            break
        behind = width // 2 < slash and cell_len(text[slash:]) <= width * (limit - len(pieces) - 1)
        cut = blank if blank > width // 2 else slash if behind else max(1, len(head))
        pieces.append(text[:cut])
        text = text[cut:].lstrip(" ")
    return pieces


def from_spans(spans: Iterable[Span]) -> Line:
    """Return a line of the build's output, in its own colours."""
    return tuple(Part(span.text, span.ink) for span in spans)


def section(title: str, width: int, g: Glyphs, tail: Sequence[Part] = ()) -> Line:
    """Return a heading inside a thin rule."""
    # The clauses of the title that fit: what stands at the right heads columns.
    title = whole_clauses(title, width - width_of(tail) - 1) or title
    head = Part(f"{title} ", "accent")
    room = width - cell_len(head.text) - width_of(tail)
    return fit((head, Part(g.rule * max(0, room), "rule"), *tail), width)
