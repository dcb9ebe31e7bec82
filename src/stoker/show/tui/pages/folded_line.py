"""The line that stands for all that the build tool prints of jobs dropped before they began, or interrupted. Pure.

Does not know where the output comes from (folded_log), or which screen shows it.
"""

from __future__ import annotations

from stoker.model.killed import DroppedBy
from stoker.show.killed_text import dropped_text
from stoker.show.tui.pages.clauses import clauses
from stoker.show.tui.pages.lines import Part
from stoker.show.tui.terminal.glyphs import Glyphs


def folded_line(count: int, width: int, g: Glyphs, by: DroppedBy) -> tuple[Part, Part]:
    """Return a mark, and what became of so many jobs and `by` what, in at most `width` cells."""
    text = clauses(dropped_text(count, by), width - 2, g.ellipsis)
    return Part(f"{g.killed} ", "killed bold"), Part(text, "text_dim")
