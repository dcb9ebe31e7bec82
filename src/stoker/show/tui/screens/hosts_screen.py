"""The other machines that compile for the build.

Unaware of how they are asked.
"""

from __future__ import annotations

from collections.abc import Sequence

from stoker.show.tui.input.actions import bindings
from stoker.show.tui.pages import header, hosts_page
from stoker.show.tui.pages.lines import Line
from stoker.show.tui.screens.page_screen import FilteredScreen


class HostsScreen(FilteredScreen):
    """Slots, errors and jobs that fell back, host by host."""

    SCOPE = "hosts"
    BINDINGS = bindings("hosts")

    def __init__(self) -> None:
        super().__init__()
        self._first = 0

    def paint(self, width: int, height: int) -> Sequence[Line]:
        """The hosts from the first one that is shown."""
        state, g = self.moment.state, self.glyphs
        found = hosts_page.hosts(state, self.words)
        self.share = (len(found), len(hosts_page.hosts(state)))
        self._first = max(0, min(self._first, len(found) - 1))
        page = hosts_page.page(state, width, height - 1, self._first, self.words, g)
        return [header.title(self.moment, width, g), *page]

    def action_move(self, by: int) -> None:
        """So many hosts further."""
        self._first += by
        self.redraw()
