"""The screens over recorded builds: their list, the summary of one, and the comparison of two sides.

They render values of `report/`, and do not know where those come from, or how a build is read.
"""

from __future__ import annotations

from collections.abc import Sequence

from stoker.report.comparison import Comparison
from stoker.report.summary import Brief
from stoker.report.trends import TrendLine
from stoker.show.build_library import HistoryList
from stoker.show.tui.input import actions
from stoker.show.tui.input.actions import bindings
from stoker.show.tui.pages import compare_page, history_page, summary_page
from stoker.show.tui.pages.history_page import BUILD_ORDERS, BuildOrder, HistoryView, Side
from stoker.show.tui.pages.lines import BLANK, Line, Part
from stoker.show.tui.screens.browser import Browser, browser_of
from stoker.show.tui.screens.list_screen import ListScreen
from stoker.show.tui.screens.page_screen import PageScreen

ON_BUILDS = ("build.brief", "build.mark", "build.compare", "build.open", "build.sort")
"""Actions on the builds that are listed."""


class HistoryScreen(ListScreen):
    """All builds of a folder, the newest first; marked builds can be compared."""

    SCOPE = "history"
    BINDINGS = bindings("history")

    def __init__(self, chosen: str = "") -> None:
        """`chosen` is the build selected first."""
        super().__init__()
        self.everywhere = False
        self.found = HistoryList((), "", 0)
        self.order: BuildOrder = BUILD_ORDERS[0]
        self.marks: dict[str, Side] = {}
        self._wanted = chosen
        self._shown: list[TrendLine] = []

    @property
    def browser(self) -> Browser:
        """The app."""
        return browser_of(self.app)

    def take(self, found: HistoryList) -> None:
        """Show these builds from now on, with the same build chosen."""
        self._wanted = self._wanted or self.chosen_build
        before, self.found = self.found, found
        widened = before.folder and not found.folder and not found.unread
        if widened and [line.id for line in before.lines] == [line.id for line in found.lines]:
            self.viewer.inform("no other folder has builds")
        self.redraw()

    @property
    def chosen_build(self) -> str:
        """The ID of the chosen build; empty while there is none."""
        return self._shown[self.chosen].id if self.chosen < len(self._shown) else ""

    def paint(self, width: int, height: int) -> Sequence[Line]:
        """Return the list."""
        every = self.found.lines
        self._shown = self.sift(history_page.ordered_builds(every, self.order), history_page.texts_of_build)
        ids = [line.id for line in self._shown]
        if self._wanted in ids:
            self.chosen, self._wanted = ids.index(self._wanted), ""
        elif not self.found.unread:
            self._wanted = ""
        self.keep_chosen(len(ids))
        view = HistoryView(self.chosen, self.order, self.marks, self.found.folder, self.found.unread, self.words)
        return history_page.history(self._shown, every, view, width, height, self.glyphs)

    def idle(self, action: actions.KeyAction) -> str:
        """Return why an action does nothing now: no build is listed that it could be about."""
        return "no build is listed" if action.id in ON_BUILDS and not self._shown else super().idle(action)

    def open(self) -> None:
        """Show the summary of the chosen build."""
        if build := self.chosen_build:
            self.browser.show_brief(build)

    def action_build_brief(self) -> None:
        """Show the summary of the chosen build."""
        self.open()

    def action_build_open(self) -> None:
        """Open the chosen build's own screens."""
        if build := self.chosen_build:
            self.browser.open_build(build)

    def action_build_everywhere(self) -> None:
        """Switch between the builds of all folders and of this one."""
        self.everywhere = not self.everywhere
        self.browser.look()

    def action_build_mark(self) -> None:
        """Put the chosen build on a side: the first on A, others on B; again: on the other side, then on none."""
        build = self.chosen_build
        if not build or (build not in self.marks and not self._may_be_compared(self._shown[self.chosen])):
            return
        others = {side for marked, side in self.marks.items() if marked != build}
        turn: tuple[Side | None, ...] = (None, "B", "A") if "A" in others else (None, "A", "B")
        side = turn[(turn.index(self.marks.pop(build, None)) + 1) % len(turn)]
        if side is not None:
            self.marks[build] = side
        self.redraw()

    def _may_be_compared(self, line: TrendLine) -> bool:
        """Return whether a build has ended; if not, show why it cannot be compared."""
        ended = not line.fault and line.outcome in ("done", "failed", "stopped")
        if not ended:
            outcome = "cannot be read" if line.fault else f"is {line.outcome}"
            self.viewer.inform(f"{line.short_id} {outcome}: only builds that have ended can be compared")
        return ended

    def action_build_compare(self) -> None:
        """Compare the builds marked A with those marked B, or with the chosen build if none is marked B."""
        sides = {side: [line.id for line in self.found.lines if self.marks.get(line.id) == side] for side in ("A", "B")}
        after = sides["B"] or [self.chosen_build]
        if not sides["A"] or after == sides["A"] or not all(after):
            self.viewer.inform("mark two builds first, with space: one as A, one as B")
            return
        if not sides["B"] and not self._may_be_compared(self._shown[self.chosen]):
            return
        self.browser.show_comparison(sides["A"], after)

    def action_sort(self, by: int) -> None:
        """Switch to the next sort order, or to the previous one."""
        self._wanted = self.chosen_build
        self.order = BUILD_ORDERS[(BUILD_ORDERS.index(self.order) + by) % len(BUILD_ORDERS)]
        self.redraw()

    def undo(self) -> bool:
        """Show all again, or clear the marks."""
        had = super().undo() or bool(self.marks)
        self.marks = {}
        self.redraw()
        return had


def waiting(screen: PageScreen) -> list[Line]:
    """Return what a page shows while its journal is being read."""
    far = browser_of(screen.app).far
    share = "" if far is None else f", {100 * far:.0f} %"
    return [BLANK, (Part(f"reading the journal{share}", "text_dim"),)]


class SummaryScreen(PageScreen):
    """The summary of one build."""

    SCOPE = "summary"
    BINDINGS = bindings("summary")

    def __init__(self, build: str) -> None:
        super().__init__()
        self.build = build
        self.found: Brief | None = None
        self._top = 0

    def take(self, found: Brief) -> None:
        """Show these results from now on."""
        self.found = found
        self.redraw()

    def paint(self, width: int, height: int) -> Sequence[Line]:
        """Return the lines that fit, from the scroll position on."""
        if self.found is None:
            return waiting(self)
        lines = summary_page.summary_lines(self.found, width, self.glyphs)
        room = max(1, height - 2)
        self._top = max(0, min(self._top, len(lines) - room))
        below = len(lines) - room - self._top
        more: Line = (Part(f"{below} more below", "text_dim"),) if below > 0 else BLANK
        return [summary_page.summary_head(self.found, width, self.glyphs), *lines[self._top : self._top + room], more]

    def action_move(self, by: int) -> None:
        """Scroll down by `by` lines."""
        self._top += by
        self.redraw()

    def action_move_page(self, by: int) -> None:
        """Scroll down by `by` screens."""
        self.action_move(by * max(1, self.size.height - 4))

    def action_brief_open(self) -> None:
        """Open the build's own screens."""
        browser_of(self.app).open_build(self.build)


class CompareScreen(ListScreen):
    """The comparison of two sides."""

    SCOPE = "compare"
    BINDINGS = bindings("compare")

    def __init__(self) -> None:
        super().__init__()
        self.found: Comparison | None = None
        self.order = compare_page.PAIR_ORDERS[0]
        self._entries: list[compare_page.Entry] = []

    def take(self, found: Comparison) -> None:
        """Show these results from now on."""
        self.found = found
        self._sort()

    def _sort(self) -> None:
        if self.found is not None:
            self._entries = compare_page.pair_entries(self.found, self.order)
        self.redraw()

    def paint(self, width: int, height: int) -> Sequence[Line]:
        """Return the comparison."""
        if self.found is None:
            return waiting(self)
        shown = self.sift(self._entries, compare_page.texts_of_entry)
        self.keep_chosen(len(shown))
        return compare_page.comparison(self.found, shown, self.chosen, self.order, width, height, self.glyphs)

    def action_sort(self, by: int) -> None:
        """Switch to the next sort order, or to the previous one."""
        orders = compare_page.PAIR_ORDERS
        self.order = orders[(orders.index(self.order) + by) % len(orders)]
        self._sort()
