"""The screen of the verification: a list of GPUs, problems, architectures and files, and details of the picked row.

Does not know how they were judged.
"""

from __future__ import annotations

from collections.abc import Sequence

from stoker.show.tui.input.actions import bindings
from stoker.show.tui.pages import header, verification_page
from stoker.show.tui.pages.lines import BLANK, Line, section
from stoker.show.tui.screens.list_screen import ListScreen


class VerificationScreen(ListScreen):
    """What was requested, found and judged, for each GPU."""

    SCOPE = "verification"
    BINDINGS = bindings("verification")

    def paint(self, width: int, height: int) -> Sequence[Line]:
        """Return the report, or why there is none."""
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
        every = self.sift(verification_page.rows(report), verification_page.texts)
        self.keep_chosen(len(every))
        return [head, *verification_page.verification(report, every, width, height - 1, g, self.chosen)]
