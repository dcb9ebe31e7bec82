"""What the build's binaries are good for: a list to walk through, and all about the picked row below.

Unaware of how they were judged.
"""

from __future__ import annotations

from collections.abc import Sequence

from stoker.show.tui.input.actions import bindings
from stoker.show.tui.pages import header, verification_page
from stoker.show.tui.pages.lines import BLANK, Line, section
from stoker.show.tui.screens.page_screen import PageScreen


class VerificationScreen(PageScreen):
    """Requested, found and judged, GPU by GPU."""

    SCOPE = "verification"
    BINDINGS = bindings("verification")

    def __init__(self) -> None:
        super().__init__()
        self.chosen = 0

    def paint(self, width: int, height: int) -> Sequence[Line]:
        """The report, or why there is none."""
        state, g = self.moment.state, self.glyphs
        head = header.title(self.moment, width, g)
        report = state.verification
        if report is None:
            return [
                head,
                section("verification", width, g),
                BLANK,
                *verification_page.no_report(state, width, g),
            ]
        self.chosen = max(0, min(self.chosen, len(verification_page.rows(report)) - 1))
        return [head, *verification_page.verification(report, width, height - 1, g, self.chosen)]

    def action_move(self, by: int) -> None:
        """Pick another row, so many further down."""
        self.chosen += by
        self.redraw()
