"""Colours of tables on a terminal: the sixteen that every terminal has, so that its own theme counts.

Unaware of what the tables say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from stoker.cli.screen import in_colour

Tone = Literal["good", "bad", "warning", "live", "dim", "heading"]

CODES: dict[Tone, str] = {"good": "32", "bad": "31", "warning": "33", "live": "36", "dim": "2", "heading": "1"}
"""Parameters of SGR (ECMA-48, 8.3.117)."""

Paint = Callable[[str, Tone | None], str]


def painter() -> Paint:
    """Return what colours a text: nothing in pipes, on a terminal without colours, or with NO_COLOR."""
    return _paint if in_colour() else _plain


def _paint(text: str, tone: Tone | None) -> str:
    return f"\033[{CODES[tone]}m{text}\033[0m" if tone is not None and text.strip() else text


def _plain(text: str, _: Tone | None) -> str:
    return text
