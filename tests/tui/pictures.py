"""What a running app shows, as text. The only place that reaches into Textual."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from textual.app import App

GOLDEN = Path(__file__).parent / "golden"
UPDATE = "UPDATE_GOLDEN"
"""Set this variable to write the golden texts anew, then read the difference before you commit it."""


def text_of(app: App[Any]) -> str:
    """All cells of the screen, without trailing blanks."""
    strips = app.screen._compositor.render_strips()
    return "\n".join(strip.text.rstrip() for strip in strips) + "\n"


def page_of(app: App[Any]) -> str:
    """All but the footer, which has a test of its own."""
    return "\n".join(text_of(app).splitlines()[:-1]) + "\n"


def check_golden(name: str, text: str) -> None:
    """Compare with the stored text of that name."""
    path = GOLDEN / f"{name}.txt"
    if os.environ.get(UPDATE):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), f"differs from {path}; set {UPDATE}=1 if that is meant"
