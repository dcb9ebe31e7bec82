"""What screens share that list things and show all about the chosen one. Unaware of what is listed."""

from __future__ import annotations

from stoker.show.tui.screens.page_screen import PageScreen


class ListScreen(PageScreen):
    """A page with a chosen row."""

    def __init__(self) -> None:
        super().__init__()
        self.chosen = 0

    def keep_chosen(self, count: int) -> None:
        """Keep the chosen row among those that there are; one at least."""
        self.chosen = max(0, min(self.chosen, count - 1))

    def action_move(self, by: int) -> None:
        """Choose another row, so many further down."""
        self.chosen += by
        self.redraw()
