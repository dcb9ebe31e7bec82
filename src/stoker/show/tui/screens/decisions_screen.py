"""The screen of all decisions and notices, in full and wrapped, newest last.

Does not know how decisions are made.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from stoker.show.tui.input.actions import KeyAction, bindings
from stoker.show.tui.pages import decision_lines, header
from stoker.show.tui.pages.decision_kinds import KINDS, DecisionKind, counts, kind_of
from stoker.show.tui.pages.lines import BLANK, Line, Part, section
from stoker.show.tui.pages.names import found_text
from stoker.show.tui.screens.page_screen import FilteredScreen

TITLE = "decisions and notices, without failures and routine starts"
"""Says what is left out; a thaw is part of the entry of its freeze."""


class DecisionsScreen(FilteredScreen):
    """All decisions and notices, with their reasons."""

    SCOPE = "decisions"
    BINDINGS = bindings("decisions")

    def __init__(self) -> None:
        super().__init__()
        self._up = 0
        self._time: float | None = None
        """The Unix time to which the page is to turn when it is drawn next."""
        self._mark: float | None = None
        """The Unix time whose nearest entry is marked, since it was asked for."""
        self._kind: DecisionKind | None = None
        self._kinds: tuple[DecisionKind, ...] = ()

    def paint(self, width: int, height: int) -> Sequence[Line]:
        """Return the newest entries that fit, or earlier ones after scrolling up."""
        g, m = self.glyphs, self.moment
        every = decision_lines.page_entries(m.state, m.left_at, m.now)
        number = counts(every)
        self._kinds = tuple(number)
        kind = self._kind if self._kind in number else None
        found = self.sift([e for e in every if kind is None or kind == kind_of(e)], decision_lines.texts)
        lines = decision_lines.page_lines(found, m.left_at, width, g)
        room = max(1, height - 3)
        if self._mark is not None and found:
            line = decision_lines.line_near(found, self._mark, m.left_at, width, g)
            lines[line] = tuple(part._replace(ink="cursor_text on cursor") for part in lines[line])
            self._up = self._up if self._time is None else len(lines) - line - room + room // 3
        self._time = None
        self._up = max(0, min(self._up, len(lines) - room))
        end = len(lines) - self._up
        shown = lines[max(0, end - room) : end] or [BLANK, (Part(self._nothing, "text_dim"),)]
        title = section(found_text(TITLE, self.words, *self.share), width, g)
        kinds = [decision_lines.kinds_line(number, len(every), kind, width, g)] if every else []
        return [header.title(m, width, g), title, *kinds, *shown]

    def turn_to(self, time: float) -> None:
        """Show all entries, scrolled to the one that is next to a Unix time, which is marked."""
        if self.words or self._kind is not None:
            self.undo()
        self._time = self._mark = time
        self.redraw()

    def on_screen_suspend(self) -> None:
        """Forget the mark: it belongs to the visit that asked for it."""
        self._mark = None

    @property
    def _nothing(self) -> str:
        """Shown if there are no entries."""
        if self.words:
            return "No entry has these words."
        return "Nothing was decided or noticed" + ("." if self.moment.state.over else " yet.")

    def idle(self, action: KeyAction) -> str:
        """Return why there is no kind to choose, if there is only one."""
        one = action.method == "kind" and len(self._kinds) < 2
        return "there are no kinds to choose from" if one else super().idle(action)

    def undo(self) -> bool:
        """Show all entries again, without words and kind; return whether there were any."""
        had_kind, self._kind, self._mark = self._kind is not None, None, None
        return super().undo() or had_kind

    def pick(self, target: str, *, again: bool) -> None:  # noqa: ARG002  (a second click chooses the same)
        """Show only the kind that was clicked."""
        self._kind, self._up = next((kind for kind in KINDS if kind == target), None), 0
        self.redraw()

    def action_kind(self, by: int) -> None:
        """Show only the next kind that there is, or the previous one; between the last and the first, all."""
        every = (None, *self._kinds)
        at = every.index(self._kind) if self._kind in every else 0
        self._kind, self._up = every[(at + by) % len(every)], 0
        self.redraw()

    def action_move(self, by: int) -> None:
        """Scroll `by` lines towards the newest."""
        self._up -= by
        self.redraw()

    def action_move_to(self, which: int) -> None:
        """Go to the oldest entry (0) or the newest one (-1)."""
        self._up = 0 if which else sys.maxsize
        self.redraw()
