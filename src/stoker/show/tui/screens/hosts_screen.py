"""The screen of other machines that compile for the build.

Does not know how they are queried.
"""

from __future__ import annotations

from collections.abc import Sequence

from stoker.show.tui.input.actions import bindings
from stoker.show.tui.pages import header, hosts_page
from stoker.show.tui.pages.lines import Line
from stoker.show.tui.screens.page_screen import FilteredScreen


class HostsScreen(FilteredScreen):
    """Slots, errors and jobs that fell back, per host."""

    SCOPE = "hosts"
    BINDINGS = bindings("hosts")

    def __init__(self) -> None:
        super().__init__()
        self._first = 0

    def paint(self, width: int, height: int) -> Sequence[Line]:
        """Return the hosts from the scroll position on."""
        state, g = self.moment.state, self.glyphs
        matching = hosts_page.hosts(state, self.words)
        self.share = (len(matching), len(hosts_page.hosts(state)))
        self._first = max(0, min(self._first, len(matching) - 1))
        page = hosts_page.page(state, width, height - 1, self._first, self.words, g)
        return [header.title(self.moment, width, g), *page]

    def action_move(self, by: int) -> None:
        """Scroll down by `by` hosts."""
        self._first += by
        self.redraw()
