"""The only sanitiser: turns bytes of a build's output into text that cannot harm a terminal or widget.

Everything that comes from outside (output, file names, command lines) passes through here before it is shown. Unaware
of terminals, widgets and markup. Linear by construction: one pass of a pattern whose every quantifier is possessive,
over an input that is first cut to a few times the limit.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

CUT_MARK = "…"
"""Marks where text was cut off."""

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
"""Replaces a byte or character that may not be shown."""

DEFAULT_LIMIT = 4096
"""Characters of one line that are shown: twenty rows of a wide terminal. Compiler command lines fit, bombs do not."""

_RAW_PER_SHOWN = 8
_RAW_EXTRA = 512
"""Raw bytes looked at for each character shown, and beyond: room for a colour change at every character (`ESC[1;31m`)
and a long title or link."""

_MAX_PARAMETERS = 32
"""SGR parameters accepted in one escape; xterm keeps 30, more are an attack."""

_TAB = 8

_ESCAPE = re.compile(
    r"(?:\x1b\[|\x9b)(?P<params>[0-?]*+)(?P<between>[ -/]*+)(?P<final>[@-~]?)"  # CSI, whole or cut short
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x00-\x1f\x7f-\x9f]*+(?:\x07|\x1b\\|\x9c)?"  # OSC, DCS, SOS, PM, APC
    r"|\x1b[ -/]*+[0-~]?"  # any other escape (ECMA-35), or a lone ESC
)
"""Any escape (ECMA-48). A string (OSC and its like) without an end stops at the next control or the line's end."""

_INVISIBLE = re.compile(
    "[\xad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2064\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\U000e0100-\U000e01ef]"
)
"""Characters without a width of their own that only change how their neighbours look: columns would not line up."""

_DROPPED = re.compile(r"[\x00\x07\x08\x0e\x0f\x7f]")
"""Controls that terminals ignore: padding, BEL, backspace, shift in and out, delete."""

_HARMFUL = re.compile(r"[^\t\n\x20-\x7e\xa1-\xac\xae-\u02ff\u2010-\u2027\u2190-\u2bff\u3041-\u30ff\u4e00-\u9fff]")
"""Anything that is not certainly harmless: text without it needs no second check."""

_SGR = re.compile(r"[\d;:]*+")

_NAMES = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_COLOURS = (*_NAMES, *(f"bright_{name}" for name in _NAMES))
"""The sixteen colours that a terminal's own palette defines, in the order of their numbers."""

_CUBE = (0, 95, 135, 175, 215, 255)
"""Levels of the 6x6x6 cube in xterm's 256 colours."""


@dataclass(frozen=True, slots=True)
class Ink:
    """How a piece of text is drawn. Colours are "red", "bright_blue" and so on, "#rrggbb", or None for the default."""

    fg: str | None = None
    bg: str | None = None
    bold: bool = False
    dim: bool = False
    italic: bool = False
    underline: bool = False
    strike: bool = False
    reverse: bool = False


PLAIN_INK = Ink()


class Span(NamedTuple):
    """A piece of harmless text and its ink."""

    text: str
    ink: Ink = PLAIN_INK


def clean(text: str | bytes, limit: int = DEFAULT_LIMIT) -> str:
    """Return one line of harmless text, without colour: for names, commands and messages.

    Line ends and tabs become a space, escapes are removed, anything else that cannot be shown becomes U+FFFD. At most
    `limit` characters stay; then comes a cut mark. `clean(clean(x)) == clean(x)`.
    """
    if len(text) <= limit and text.isascii():
        plain_text = text if isinstance(text, str) else text.decode("ascii")
        if plain_text.isprintable():
            return plain_text
    raw = text[: _RAW_PER_SHOWN * limit + _RAW_EXTRA]
    shown = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw
    shown = _shown(_ESCAPE.sub("", shown).replace("\r\n", "\n").replace("\t", " "))
    return _cut(shown, limit, more=len(raw) < len(text))


def harmless(text: str) -> str:
    """Return any text as a terminal may have it: lines, tabs and colours stay, every other escape and control is
    removed.

    The last check of everything that is written, and not a substitute for `clean`: it cannot distinguish a name's
    colours from ours.
    """
    if not _HARMFUL.search(text):
        return text
    text = text.replace("\r\n", "\n")
    parts = []
    start = 0
    for escape in _ESCAPE.finditer(text):
        parts.append(_lines_shown(text[start : escape.start()]))
        if escape["final"] == "m" and not escape["between"] and _SGR.fullmatch(escape["params"]):
            parts.append(f"\x1b[{escape['params']}m")
        start = escape.end()
    return "".join([*parts, _lines_shown(text[start:])])


def spans(line: bytes, limit: int = DEFAULT_LIMIT) -> tuple[Span, ...]:
    """Return one line of output as it would look: colours are kept as values, every other escape is removed.

    After a carriage return the line starts again, so a progress bar shows its last state. Tabs are expanded to stops of
    eight. At most `limit` characters stay; then comes a cut mark.
    """
    line = line.rstrip(b"\r\n")
    if len(line) <= limit and line.isascii():
        text = line.decode("ascii")
        if text.isprintable():
            return (Span(text),) if text else ()
    bound = _RAW_PER_SHOWN * limit + _RAW_EXTRA
    if len(line) > bound:
        line = line[line.rfind(b"\r") + 1 :]
    text = line[:bound].decode("utf-8", "replace")
    return _limited(_last_part(_pieces(text)), limit, more=len(line) > bound)


def plain(line: bytes, limit: int = DEFAULT_LIMIT) -> str:
    """The text of `spans(line, limit)`."""
    return "".join(span.text for span in spans(line, limit))


def sgr(line: Iterable[Span], *, colour: bool) -> str:
    """Spans as a terminal takes them: colour escapes only, and a reset at the end if anything was coloured."""
    if not colour:
        return "".join(span.text for span in line)
    out: list[str] = []
    ink = PLAIN_INK
    for span in line:
        if span.ink != ink:
            ink = span.ink
            out.append(f"\x1b[{';'.join(_codes(ink))}m")
        out.append(span.text)
    if ink != PLAIN_INK:
        out.append("\x1b[0m")
    return "".join(out)


class LineSplitter:
    """Takes bytes in any portions and returns whole lines without their line ends; memory is bounded.

    A line longer than `limit` bytes is returned cut, with a cut mark, and the rest up to its line end is skipped. If it
    contains carriage returns, what the last of them overwrites is dropped first.
    """

    def __init__(self, limit: int = _RAW_PER_SHOWN * DEFAULT_LIMIT) -> None:
        self._limit = limit
        self._pending = bytearray()
        self._skipping = False

    @property
    def idle(self) -> bool:
        """Whether the next byte starts a line."""
        return not self._pending and not self._skipping

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The lines that `data` completes."""
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            self._keep(data[start:end])
            yield self._take()
            start = end + 1
        self._keep(data[start:])

    def finish(self) -> Iterator[bytes]:
        """The last line, if it has no line end."""
        if self._pending:
            yield self._take()

    def _keep(self, part: bytes) -> None:
        if self._skipping:
            return
        self._pending += part
        if len(self._pending) <= self._limit:
            return
        overwritten = self._pending.rfind(b"\r", 0, -1)
        del self._pending[: overwritten + 1]
        if len(self._pending) > self._limit:
            del self._pending[self._limit :]
            self._pending += CUT_MARK.encode()
            self._skipping = True

    def _take(self) -> bytes:
        line = bytes(self._pending.removesuffix(b"\r"))
        self._pending.clear()
        self._skipping = False
        return line


def _shown(text: str) -> str:
    """`text`, free of escapes already, with every other character that may not be shown replaced or dropped."""
    if not text.isascii():
        text = _INVISIBLE.sub("", text)
    if text.isprintable():
        return text
    text = _DROPPED.sub("", text)
    return "".join(c if c.isprintable() else _stand_in(c) for c in text)


def _lines_shown(text: str) -> str:
    return "\n".join("\t".join(_shown(cell) for cell in line.split("\t")) for line in text.split("\n"))


def _stand_in(character: str) -> str:
    return " " if character in "\n\r\v\f" or unicodedata.category(character)[0] == "Z" else REPLACEMENT


def _cut(text: str, limit: int, *, more: bool) -> str:
    return text[:limit] + CUT_MARK if more or len(text) > limit else text


def _pieces(text: str) -> Iterator[Span | None]:
    """Text and its ink in order, and None for each carriage return."""
    ink = PLAIN_INK
    start = 0
    for escape in _ESCAPE.finditer(text):
        yield from _split_returns(text[start : escape.start()], ink)
        start = escape.end()
        if escape["final"] == "m" and not escape["between"]:
            ink = _dip(ink, escape["params"])
    yield from _split_returns(text[start:], ink)


def _split_returns(text: str, ink: Ink) -> Iterator[Span | None]:
    first, *rest = text.split("\r")
    if first:
        yield Span(first, ink)
    for part in rest:
        yield None
        if part:
            yield Span(part, ink)


def _last_part(pieces: Iterable[Span | None]) -> list[Span]:
    """What is left on the line: the pieces behind the last carriage return that has any behind it."""
    parts: list[Span] = []
    overwritten = False
    column = 0
    for piece in pieces:
        if piece is None:
            overwritten = True
            continue
        indent = 0 if overwritten else column % _TAB
        text = (
            _shown((" " * indent + piece.text).expandtabs(_TAB)[indent:]) if "\t" in piece.text else _shown(piece.text)
        )
        if not text:
            continue
        if overwritten:
            parts.clear()
            overwritten, column = False, 0
        parts.append(Span(text, piece.ink))
        column += len(text)
    return parts


def _limited(line: list[Span], limit: int, *, more: bool) -> tuple[Span, ...]:
    """The first `limit` characters of a line, neighbours of one ink joined."""
    texts: list[list[str]] = []
    inks: list[Ink] = []
    left = limit
    for span in line:
        if not left:
            more = True
            break
        more = more or len(span.text) > left
        text = span.text[:left]
        left -= len(text)
        if inks and inks[-1] == span.ink:
            texts[-1].append(text)
        else:
            texts.append([text])
            inks.append(span.ink)
    joined = [Span("".join(parts), ink) for parts, ink in zip(texts, inks, strict=True)]
    return (*joined, Span(CUT_MARK)) if more else tuple(joined)


_SWITCHES: dict[int, dict[str, Any]] = {
    1: {"bold": True},
    2: {"dim": True},
    3: {"italic": True},
    4: {"underline": True},
    7: {"reverse": True},
    9: {"strike": True},
    21: {"underline": True},
    22: {"bold": False, "dim": False},
    23: {"italic": False},
    24: {"underline": False},
    27: {"reverse": False},
    29: {"strike": False},
}
"""SGR numbers that turn an attribute on or off (ECMA-48 8.3.117). Blinking and concealment are not for builds."""


def _dip(ink: Ink, params: str) -> Ink:
    """The ink after an SGR escape. What is not understood changes nothing."""
    if not params:
        return PLAIN_INK
    if params[0] in "<=>?":
        return ink
    fields = params.split(";", _MAX_PARAMETERS)[:_MAX_PARAMETERS]
    at = 0
    while at < len(fields):
        head, *sub = fields[at].split(":", _MAX_PARAMETERS)
        code = _number(head)
        at += 1
        if code not in (38, 48):
            ink = _switch(ink, code, sub)
            continue
        if sub:
            colour = _colour(_without_space_id(sub))
        else:
            colour = _colour(fields[at : at + 4])
            at += {"5": 2, "2": 4}.get(fields[at] if at < len(fields) else "", 0)
        if colour is not None:
            ink = replace(ink, fg=colour) if code == 38 else replace(ink, bg=colour)
    return ink


def _number(field: str) -> int:
    """A parameter's value: 0 where it is empty, -1 where no parameter can mean it."""
    if not field:
        return 0
    return int(field) if len(field) <= 3 and field.isdecimal() else -1


def _switch(ink: Ink, code: int, sub: list[str]) -> Ink:
    if code == 0:
        return PLAIN_INK
    if code == 4 and sub[:1] == ["0"]:  # 4:0 ends what 4:1 to 4:5 began: underlines by their style
        return replace(ink, underline=False)
    if code in _SWITCHES:
        return replace(ink, **_SWITCHES[code])
    if code == 39 or 30 <= code <= 37 or 90 <= code <= 97:
        return replace(ink, fg=_basic(code, 30))
    if code == 49 or 40 <= code <= 47 or 100 <= code <= 107:
        return replace(ink, bg=_basic(code, 40))
    return ink


def _basic(code: int, base: int) -> str | None:
    offset = code - base
    if offset == 9:
        return None
    return _COLOURS[offset if offset < 8 else offset - 60 + 8]


def _without_space_id(sub: list[str]) -> list[str]:
    """The direct form `2:SPACE:r:g:b` (ISO 8613-6) without its colour space; many programs leave it out anyway."""
    return [sub[0], *sub[2:5]] if sub[0] == "2" and len(sub) >= 5 else sub


def _colour(fields: list[str]) -> str | None:
    """The colour behind 38 or 48: `5, index` or `2, red, green, blue`."""
    kind, values = fields[:1], [_number(f) for f in fields[1:4]]
    if kind == ["5"] and values and 0 <= values[0] <= 255:
        return _indexed(values[0])
    if kind == ["2"] and len(values) == 3 and all(0 <= v <= 255 for v in values):
        return "#{:02x}{:02x}{:02x}".format(*values)
    return None


def _indexed(index: int) -> str:
    if index < 16:
        return _COLOURS[index]
    if index < 232:
        red, green, blue = (index - 16) // 36, (index - 16) // 6 % 6, (index - 16) % 6
        return f"#{_CUBE[red]:02x}{_CUBE[green]:02x}{_CUBE[blue]:02x}"
    grey = 8 + 10 * (index - 232)
    return f"#{grey:02x}{grey:02x}{grey:02x}"


def _codes(ink: Ink) -> list[str]:
    codes = ["0"]
    attributes = ((ink.bold, 1), (ink.dim, 2), (ink.italic, 3), (ink.underline, 4), (ink.reverse, 7), (ink.strike, 9))
    codes += [str(code) for on, code in attributes if on]
    for colour, base in ((ink.fg, 30), (ink.bg, 40)):
        if colour is not None:
            codes.append(_colour_code(colour, base))
    return codes


def _colour_code(colour: str, base: int) -> str:
    if colour.startswith("#"):
        red, green, blue = bytes.fromhex(colour[1:])
        return f"{base + 8};2;{red};{green};{blue}"
    number = _COLOURS.index(colour)
    return str(base + number if number < 8 else base + 60 + number - 8)
