"""Base class of screens with a list and details of the chosen row. Does not know what is listed."""

from __future__ import annotations

from stoker.show.tui.screens.page_screen import FilteredScreen


class ListScreen(FilteredScreen):
    """A page with a chosen row."""

    def __init__(self) -> None:
        super().__init__()
        self.chosen = 0

    def keep_chosen(self, count: int) -> None:
        """Limit the chosen row to the existing ones; `count` is at least 1."""
        self.chosen = max(0, min(self.chosen, count - 1))

    def pick(self, target: str, *, again: bool) -> None:
        """Choose the row; open it on a double click, or if it was chosen already."""
        opens = again or self.chosen == int(target)
        self.chosen = int(target)
        self.redraw()
        if opens:
            self.open()

    def open(self) -> None:
        """Show more about the chosen row, if there is more."""

    def action_move(self, by: int) -> None:
        """Choose the row `by` rows further down."""
        self.chosen += by
        self.redraw()

    def action_move_to(self, row: int) -> None:
        """Choose the first row (0), or the last (-1)."""
        self.chosen = row if row >= 0 else self.share[1]
        self.redraw()
