"""Renders known failures as plain text, the first cause in full. Does not know how they were found."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from stoker.model.diagnosis import MAX_PROSE, Cause
from stoker.model.text import clean
from stoker.show.closing_text import place_of

_WIDTH = 80
_IN_FULL = 3
"""Failures shown with why and remedy; the others are mostly consequences, and only their titles are shown."""

_NEIGHBOURS = 2
"""Lines that a context must have to contain neighbours."""

_NEIGHBOUR_SHOWN = 120
"""Characters shown of a neighbouring line: a whole compiler command would hide the line that matters."""

_SAME = 40
"""Characters by which a line's own text is located behind a wrapper's prefix."""

_WHOLE: Any = {"break_long_words": False, "break_on_hyphens": False}
"""Commands and paths stay whole, so that they can be copied."""


def render(causes: Sequence[Cause]) -> str:
    """Return all causes as text that ends with a newline and is safe to print on a terminal."""
    blocks = ["\n".join(_in_full(cause, _also(cause, causes[0]))) for cause in causes[:_IN_FULL]]
    rest = [f"{place_of(cause) or 'not in the output'}: {clean(cause.heading)}" for cause in causes[_IN_FULL:]]
    return "\n\n".join([*blocks, "\n".join(["Also seen:", *rest])] if rest else blocks) + "\n"


def _also(cause: Cause, first: Cause) -> str:
    """Return how a cause relates to the first one: most are its consequences, or earlier failures without effect."""
    if cause is first:
        return ""
    if cause.line is None or first.line is None:
        return "Also seen: "
    return "Also seen, later: " if cause.line > first.line else "Also seen, earlier: "


def _in_full(cause: Cause, also: str) -> Iterator[str]:
    """Yield the problem and its remedy first: the context may be long, and a terminal low."""
    yield f"{also}{clean(cause.heading)}  [{clean(cause.rule)}]"
    place = place_of(cause)
    yield f"  {place}:" if place else "  not in the output"
    if cause.text:
        yield f"    {clean(cause.message)}"
    yield from _paragraph("why", clean(cause.why, MAX_PROSE))
    yield from _paragraph("remedy", clean(cause.remedy, MAX_PROSE))
    yield from _around(cause)


def _around(cause: Cause) -> Iterator[str]:
    """Yield the line of the cause among its neighbours, if there are any; long lines are cut."""
    if len(cause.context) < _NEIGHBOURS or cause.line is None:
        return
    yield "  the lines around it"
    digits = len(str(cause.context_line + len(cause.context) - 1))
    for number, text in enumerate(cause.context, cause.context_line):
        here = number == cause.line
        shown = _whole(cause, text) if here else clean(text, _NEIGHBOUR_SHOWN)
        yield f"  {'>' if here else ' '} {number:{digits}}  {shown}".rstrip()


def _whole(cause: Cause, text: str) -> str:
    """Return the line of the cause, cut so that the part that matters is shown, with the time or other prefix that its
    neighbours have."""
    prefix, own_text, _ = clean(text).partition(clean(cause.text)[:_SAME])
    return f"{prefix if own_text else ''}{clean(cause.text)}"


def _paragraph(head: str, text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=f"  {head:<8}", subsequent_indent=" " * 10, **_WHOLE)
