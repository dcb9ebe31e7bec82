"""All builds on one screen, the one to be looked at next is chosen. Textual's own table and footer.

Unaware of where builds are found and of how one is shown.
"""

from __future__ import annotations

from collections.abc import Callable
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
"""Between two looks at all builds: each live one's journal is read for it."""


NO_BUILDS = "No builds yet. Start one with:  stoker run -- ninja -C build"

KEYS = (
    ("down j", "Pick the next build"),
    ("up k", "Pick the previous build"),
    ("home g", "The first build of the list"),
    ("end G", "The last build of the list"),
    ("enter", "Open the picked build"),
    ("/", "Filter builds by words; Esc shows all"),
    ("q esc", "Leave; the builds continue"),
    ("^l", "Draw the whole screen again"),
)
"""What the help says."""

LABEL_CELLS = 9
"""Cells of the help's keys, with the blanks behind them."""

MARK = "mark"
"""The key of the column that marks the picked row."""

STATE = 2
"""The cell that is coloured."""


def _help_lines(width: int) -> list[Line]:
    return [line for keys, text in KEYS for line in labelled(keys, "text bold", LABEL_CELLS, text, "text", width)]


class HomeRow(NamedTuple):
    """A build in the list: its ID, one cell for each heading, and the theme's token for its state."""

    build_id: str
    cells: tuple[str, ...]
    ink: str


class BuildTable(DataTable[Text]):
    """The table. All its keys are its own, so that those typed in one burst act in their order."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select_cursor", "open"),
        Binding("j", "cursor_down", show=False),
        Binding("k", "cursor_up", show=False),
        Binding("home,g", "first", show=False),
        Binding("end,G", "last", show=False),
    ]

    def action_first(self) -> None:
        """The cursor to the newest build."""
        self.move_cursor(row=0)

    def action_last(self) -> None:
        """The cursor to the oldest build."""
        self.move_cursor(row=self.row_count - 1)


class HomeApp(App[str]):
    """The list; returns the ID of the build that was chosen, None if the person left."""

    CSS = """
    Screen { background: $background; color: $foreground; }
    DataTable { height: 1fr; background: $background; overflow-x: hidden; }
    DataTable:focus { background-tint: $foreground 0%; }
    Box { background: transparent; }
    Label { padding: 0 1; color: $foreground; }
    """
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "filter"),
        Binding("q", "quit", "leave; builds continue"),
        Binding("question_mark", "help", "help"),
        Binding("escape", "back", show=False),
        Binding("ctrl+l", "repaint", show=False, priority=True),
    ]

    def __init__(
        self,
        look: Callable[[], tuple[tuple[str, ...], tuple[HomeRow, ...]]],
        theme: Theme,
        *,
        ascii_only: bool,
        no_colour: bool,
        chosen: str = "",
    ) -> None:
        super().__init__(driver_class=driver_class(ascii_only=ascii_only), ansi_color=True if no_colour else None)
        self._look = look
        self._theme = textual_theme(theme, "stoker-home", no_colour=no_colour)
        self.palette = Palette(theme, no_colour=no_colour)
        self._chosen = chosen
        self._shown: tuple[HomeRow, ...] = ()
        self._headings: tuple[str, ...] = ()
        self._words = ""
        self.glyphs = ASCII if ascii_only else UNICODE
        self.animation_level = "none"

    def compose(self) -> ComposeResult:
        """A line of help where there is no build, the table, the footer."""
        yield Label(NO_BUILDS, id="none", markup=False)
        yield BuildTable(cursor_type="row", cursor_background_priority="css")
        yield EntryLine("only builds with these words; Enter keeps them, Esc shows all")
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Fill the table, and keep it true."""
        self.register_theme(self._theme)
        self.theme = self._theme.name
        self.refresh_rows()
        self.set_interval(REFRESH_SECONDS, self.refresh_rows)

    @property
    def table(self) -> BuildTable:
        """The table."""
        return self.query_one(BuildTable)

    def refresh_rows(self) -> None:
        """Look at the builds anew; what is chosen stays chosen."""
        headings, every = self._look()
        rows = tuple(row for row in every if matches(self._words, *row.cells))
        label = self.query_one("#none", Label)
        label.display = not every or bool(self._words)
        found = f"/{clean(self._words)}: {len(rows)} of {len(every)}   Esc shows all"
        label.update(found if self._words else NO_BUILDS)
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

    def on_data_table_row_highlighted(self) -> None:
        """Mark the row at the cursor, also where no colour shows it."""
        self._mark()

    def _mark(self) -> None:
        for at, row in enumerate(self._shown):
            mark = self.glyphs.pointer if at == self.table.cursor_row else " "
            if row.build_id in self.table.rows and str(self.table.get_cell(row.build_id, MARK)) != mark:
                self.table.update_cell(row.build_id, MARK, Text(mark))

    def action_help(self) -> None:
        """All keys."""
        self.push_screen(Box[None]("keys", _help_lines))

    def _at_cursor(self) -> str:
        at = self.table.cursor_row
        return self._shown[at].build_id if 0 <= at < len(self._shown) else ""

    def _inked(self, row: HomeRow) -> list[Text]:
        ink = Style(color=self.palette.style(row.ink).color)
        return [Text(cell, ink if at == STATE else "", no_wrap=True) for at, cell in enumerate(row.cells)]

    def action_repaint(self) -> None:
        """Draw all cells anew."""
        if not repaint(self._driver):
            self.screen.refresh(layout=True)

    def action_filter(self) -> None:
        """Take words."""
        self.query_one(EntryLine).open()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show at once what has the words typed so far."""
        self._words = event.value.strip()
        self.refresh_rows()

    def on_input_submitted(self) -> None:
        """Keep the words, and give the keys back to the table."""
        self.query_one(EntryLine).close()
        self.table.focus()

    async def action_back(self) -> None:
        """Show all builds again; where they are shown, leave."""
        entry = self.query_one(EntryLine)
        had = entry.close() or bool(self._words)
        if not had:
            self.exit()
        entry.empty()
        self._words = ""
        self.table.focus()
        self.refresh_rows()

    def on_resize(self) -> None:
        """Give the commands what there is room for now."""
        self.call_after_refresh(self.refresh_rows)

    def on_data_table_row_selected(self) -> None:
        """Look at the build at the cursor."""
        if build_id := self._at_cursor():
            self.exit(build_id)
