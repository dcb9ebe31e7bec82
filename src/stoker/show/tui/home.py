"""The list of all builds, from which the user picks one to open. Uses Textual's own table and footer.

Does not know where builds are found, or how one is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple

from rich.style import Style
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable, Footer, Input, Label

from stoker.config.themes import Theme
from stoker.model.text import clean
from stoker.show.tui.pages.lines import Line
from stoker.show.tui.pages.names import matches
from stoker.show.tui.screens.boxes import Box, labelled
from stoker.show.tui.screens.entry_line import EntryLine
from stoker.show.tui.terminal.driver import driver_class, repaint
from stoker.show.tui.terminal.glyphs import ASCII, UNICODE
from stoker.show.tui.terminal.theming import Palette, textual_theme

REFRESH_SECONDS = 2.0
"""Seconds between two refreshes: each reads the journals of all live builds."""


NO_BUILDS = "No builds yet. Start one with:  stoker run -- ninja -C build"

KEYS = (
    ("down j", "Pick the next build"),
    ("up k", "Pick the previous build"),
    ("home g", "The first build of the list"),
    ("end G", "The last build of the list"),
    ("enter", "Open the picked build"),
    ("/", "Filter builds by words; Esc shows all"),
    ("a", "Show or hide builds that succeeded in less than 2 seconds"),
    ("q esc", "Leave; the builds continue"),
    ("^l", "Draw the whole screen again"),
)
"""The help's lines: keys and what they do."""

LABEL_CELLS = 9
"""Cells of the help's keys, with the blanks after them."""

MARK = "mark"
"""The key of the column that marks the picked row."""

STATE = 2
"""Index of the coloured cell."""


def _help_lines(width: int) -> list[Line]:
    return [line for keys, text in KEYS for line in labelled(keys, "text bold", LABEL_CELLS, text, "text", width)]


class HomeRow(NamedTuple):
    """A build in the list: its ID, one cell per heading, and the theme token of its state."""

    build_id: str
    cells: tuple[str, ...]
    ink: str
    trivial: bool = False
    """Whether it ended well at once, as `true` or a build with nothing to do does."""


Seen = tuple[tuple[str, ...], tuple[HomeRow, ...]]
"""The headings, and the rows of all builds."""


def listed(rows: Sequence[HomeRow], words: str, *, trivial: bool, kept: str = "") -> tuple[HomeRow, ...]:
    """Return the rows with the words searched for. Without words, and unless `trivial` is set, leave out trivial rows,
    except for the newest build and the one to be `kept`."""
    found = tuple(row for row in rows if matches(words, *row.cells))
    if trivial or words:
        return found
    return tuple(row for row in found if row is rows[0] or row.build_id == kept or not row.trivial)


class BuildTable(DataTable[Text]):
    """The table. It handles all its keys itself, so that keys typed in a burst act in order."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select_cursor", "open", key_display="enter"),
        Binding("j", "cursor_down", show=False),
        Binding("k", "cursor_up", show=False),
        Binding("home,g", "first", show=False),
        Binding("end,G", "last", show=False),
    ]

    def action_first(self) -> None:
        """Move the cursor to the newest build."""
        self.move_cursor(row=0)

    def action_last(self) -> None:
        """Move the cursor to the oldest build."""
        self.move_cursor(row=self.row_count - 1)


class HomeApp(App[str]):
    """The list; returns the ID of the chosen build, None if the user left."""

    CSS = """
    Screen { background: $background; color: $foreground; }
    DataTable { height: 1fr; background: $background; overflow-x: hidden; }
    DataTable:focus { background-tint: $foreground 0%; }
    Box { background: transparent; }
    #none { padding: 0 1; color: $foreground; }
    """
    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS = None
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "filter"),
        Binding("a", "trivial", "all builds"),
        Binding("q", "quit", "leave; builds continue"),
        Binding("question_mark", "help", "help"),
        Binding("escape", "back", show=False),
        Binding("ctrl+l", "repaint", show=False, priority=True),
    ]

    def __init__(
        self,
        look: Callable[[], Seen],
        theme: Theme,
        *,
        ascii_only: bool,
        no_colour: bool,
        chosen: str = "",
    ) -> None:
        super().__init__(driver_class=driver_class(ascii_only=ascii_only), ansi_color=True if no_colour else None)
        self._look = look
        self._first: Seen | None = look()
        """Read before the screen opens: it would stay blank meanwhile."""
        self._theme = textual_theme(theme, "stoker-home", no_colour=no_colour)
        self.palette = Palette(theme, no_colour=no_colour)
        self._chosen = self._left = chosen
        """The build that the cursor is put on first, and the one that was just left: it stays in the list."""
        self._shown: tuple[HomeRow, ...] = ()
        self._headings: tuple[str, ...] = ()
        self._words = ""
        self._trivial = False
        self._may_hide = False
        """Whether there is a build that the list may leave out."""
        self.glyphs = ASCII if ascii_only else UNICODE
        self.animation_level = "none"

    def compose(self) -> ComposeResult:
        """Create a line of help for when there are no builds, the table, the footer, and the filter's entry."""
        yield Label(NO_BUILDS, id="none", markup=False)
        yield BuildTable(cursor_type="row", cursor_background_priority="css")
        yield Footer(show_command_palette=False)
        yield EntryLine("only builds with these words; Enter keeps them, Esc shows all")  # covers the footer

    def on_mount(self) -> None:
        """Fill the table, and keep it up to date."""
        self.register_theme(self._theme)
        self.theme = self._theme.name
        self.refresh_rows()
        self.set_interval(REFRESH_SECONDS, self.refresh_rows)

    @property
    def table(self) -> BuildTable:
        """The table."""
        return self.query_one(BuildTable)

    def refresh_rows(self) -> None:
        """Read the builds again; the picked row stays picked."""
        (headings, every), self._first = self._first or self._look(), None
        rows = listed(every, self._words, trivial=self._trivial, kept=self._left)
        if (may_hide := any(row.trivial for row in every[1:])) != self._may_hide:
            self._may_hide = may_hide
            self.refresh_bindings()
        label, hidden = self.query_one("#none", Label), len(every) - len(rows)
        label.display = not every or bool(self._words) or hidden > 0
        found = f"/{clean(self._words)}: {len(rows)} of {len(every)}   Esc shows all"
        builds = "1 build is" if hidden == 1 else f"{hidden} builds are"
        left_out = f"{builds} hidden that succeeded in less than 2 seconds; a shows all"
        label.update(found if self._words else left_out if every else NO_BUILDS)
        self.table.display = bool(every)
        if (headings, rows) == (self._headings, self._shown):
            return
        chosen = self._chosen or self._at_cursor()
        self._headings, self._shown, self._chosen = headings, rows, ""
        self.table.clear(columns=True)
        self.table.add_column(" ", key=MARK)
        self.table.add_columns(*headings)
        for row in rows:
            self.table.add_row(Text(" "), *self._inked(row), key=row.build_id)
        ids = [row.build_id for row in rows]
        if chosen in ids:
            self.table.move_cursor(row=ids.index(chosen))
        self._mark()
        self.refresh_bindings()
        if not every:
            self.set_focus(None)
        elif self.focused is None:
            self.set_focus(self.table)  # at once: keys may be waiting that were typed before the list was there

    def on_data_table_row_highlighted(self) -> None:
        """Mark the row at the cursor, for terminals without colour."""
        self._mark()

    def _mark(self) -> None:
        for at, row in enumerate(self._shown):
            mark = self.glyphs.pointer if at == self.table.cursor_row else " "
            if row.build_id in self.table.rows and str(self.table.get_cell(row.build_id, MARK)) != mark:
                self.table.update_cell(row.build_id, MARK, Text(mark))

    def action_help(self) -> None:
        """Show all keys."""
        self.push_screen(Box[None]("keys", _help_lines))

    def _at_cursor(self) -> str:
        at = self.table.cursor_row
        return self._shown[at].build_id if 0 <= at < len(self._shown) else ""

    def _inked(self, row: HomeRow) -> list[Text]:
        ink = Style(color=self.palette.style(row.ink).color)
        return [Text(cell, ink if at == STATE else "", no_wrap=True) for at, cell in enumerate(row.cells)]

    def action_repaint(self) -> None:
        """Redraw the whole screen."""
        if not repaint(self._driver):
            self.screen.refresh(layout=True)

    def check_action(self, action: str, _parameters: tuple[object, ...]) -> bool | None:
        """Offer the filter only where there are builds, and the key for all builds where the list leaves some out."""
        return {"trivial": self._may_hide, "filter": bool(self._shown or self._words)}.get(action, True)

    def action_trivial(self) -> None:
        """Show the builds that ended well at once too, or hide them again."""
        self._trivial = not self._trivial
        self.refresh_rows()

    def action_filter(self) -> None:
        """Open the entry for the filter's words."""
        self.query_one(EntryLine).open()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Apply the words typed so far."""
        self._words = event.value.strip()
        self.refresh_rows()

    def on_input_submitted(self) -> None:
        """Keep the words, and return the focus to the table."""
        self.query_one(EntryLine).close()
        self.table.focus()

    async def action_back(self) -> None:
        """Show all builds again; if they are shown already, leave."""
        entry = self.query_one(EntryLine)
        had = entry.close() or bool(self._words)
        if not had:
            self.exit()
        entry.empty()
        self._words = ""
        self.table.focus()
        self.refresh_rows()

    def on_resize(self) -> None:
        """Fit the commands to the new width."""
        self.call_after_refresh(self.refresh_rows)

    def on_data_table_row_selected(self) -> None:
        """Open the build at the cursor."""
        if build_id := self._at_cursor():
            self.exit(build_id)
