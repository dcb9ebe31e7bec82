"""Known failures as plain text, the first cause in full. Unaware of how they were found."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from stoker.diagnose.match import Match
from stoker.model.text import clean

_WIDTH = 80
_IN_FULL = 3
"""Failures told with why and remedy; of the others, which are mostly consequences, the title is enough."""

_WHOLE: Any = {"break_long_words": False, "break_on_hyphens": False}
"""Commands and paths stay whole, so that they can be copied."""


def render(matches: Sequence[Match]) -> str:
    """All of them, ending with a newline. Nothing in it can harm a terminal."""
    blocks = ["\n".join(_in_full(match)) for match in matches[:_IN_FULL]]
    rest = [f"line {match.line}: {match.rule.title}{_times(match)}" for match in matches[_IN_FULL:]]
    return "\n\n".join([*blocks, "\n".join(["Also:", *rest])] if rest else blocks) + "\n"


def _in_full(match: Match) -> Iterator[str]:
    yield f"{match.rule.title}  [{match.rule.id}]"
    yield f"  line {match.line}{_times(match)}:"
    yield f"    {clean(match.text)}"
    yield from _paragraph("why", match.rule.why)
    yield from _paragraph("remedy", match.rule.remedy)


def _times(match: Match) -> str:
    return f" and {match.count - 1} more" if match.count > 1 else ""


def _paragraph(head: str, text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=f"  {head:<8}", subsequent_indent=" " * 10, **_WHOLE)
