"""The screen of all decisions and notices, in full and wrapped, newest last.

Does not know how decisions are made.
"""

from __future__ import annotations

from collections.abc import Sequence

from stoker.show.tui.input.actions import bindings
from stoker.show.tui.pages import decision_lines, header
from stoker.show.tui.pages.lines import Line, Part, section
from stoker.show.tui.pages.names import found_text
from stoker.show.tui.screens.page_screen import FilteredScreen


class DecisionsScreen(FilteredScreen):
    """All decisions and notices, with their reasons."""

    SCOPE = "decisions"
    BINDINGS = bindings("decisions")

    def __init__(self) -> None:
        super().__init__()
        self._up = 0

    def paint(self, width: int, height: int) -> Sequence[Line]:
        """Return the newest entries that fit, or earlier ones after scrolling up."""
        g = self.glyphs
        found = self.sift(decision_lines.entries(self.moment.state), decision_lines.texts)
        lines = decision_lines.page_lines(found, self.moment.left_at, width, g)
        room = max(1, height - 2)
        self._up = max(0, min(self._up, len(lines) - room))
        end = len(lines) - self._up
        shown = lines[max(0, end - room) : end] or [(Part(self._nothing, "text_dim"),)]
        title = found_text("decisions and notices", self.words, *self.share)
        return [header.title(self.moment, width, g), section(title, width, g), *shown]

    @property
    def _nothing(self) -> str:
        """Shown if there are no entries."""
        if self.words:
            return "No entry has these words."
        return "Nothing was decided or noticed" + ("." if self.moment.state.over else " yet.")

    def action_move(self, by: int) -> None:
        """Scroll `by` lines towards the newest."""
        self._up -= by
        self.redraw()
