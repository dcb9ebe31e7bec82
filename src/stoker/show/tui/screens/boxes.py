"""Boxes in front of a screen: their base classes, and the help.

They know no builds: they show lines, and may return a value.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar, Generic, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Click, MouseScrollDown, MouseScrollUp
from textual.screen import ModalScreen

from stoker.show.tui.input import actions
from stoker.show.tui.pages.lines import Line, Part, pad, width_of, wrap
from stoker.show.tui.screens.page_widget import Page
from stoker.show.tui.screens.viewer import Viewer, viewer_of

BOX_WIDTH = 76
MAX_LINES = 4
"""Maximum cells of a box's lines, and lines of the text beside a key."""

WHEEL_ROWS = 3
"""Lines per notch of the wheel, as in most programs."""

MOUSE = (
    ("click", "Pick a row; a second click opens it. On a heading of jobs: sort. On a key of the last line: press it"),
    ("wheel", "Scroll, or go through a list"),
    ("Shift", "Hold it to select text. To do without the mouse: 'mouse: off' in the settings"),
)
"""What the mouse does, if the terminal and the settings allow it."""

FIGURES = (
    ("2 of 3", "Jobs that run, and the level: one per core, and extra places, filled while the peaks of all jobs fit"),
    ("59 % begun", "By make's log, which also counts what runs or waits; before it stands what is done"),
    ("~4.8 GiB", "Expected at its peak; it holds nothing yet"),
    ("3.1/4.8", "A job's memory now, and what is expected at its peak"),
    ("3.1/4.8?", "That is a guess: it was never measured, or jobs like it differ by more than a factor of two"),
    ("5.1/5.2+", "It has exceeded that: it needs what it has held, or more"),
    ("46.7 MiB+", "The peak of a job of under four seconds: between two readings it may have held more"),
    ("< 44 MiB", "The same of one too short to be measured: at most that, by how jobs like it grew"),
    ("to come", "What running jobs lack to what is expected; less than their sum if they do not peak at once"),
)
"""What the figures of jobs on the dashboard mean."""

T = TypeVar("T")


class Box(ModalScreen[T | None], Generic[T]):
    """A titled box of lines in the middle; the page behind it keeps updating. It may return a T."""

    ends_with_build: ClassVar[bool] = False
    """Whether the box is pointless once the build is over, and closes."""

    AUTO_FOCUS = ""
    DEFAULT_CSS = """
    Box { align: center middle; background: transparent; }
    Box > Page { border: round $accent; padding: 0 1; background: $background; color: $foreground; }
    Box.-ascii > Page { border: ascii $accent; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,enter,q", "close", "Close", show=False)]

    def __init__(self, title: str, lines: Callable[[int], Sequence[Line]]) -> None:
        super().__init__()
        self._title = title
        self._make = lines

    @property
    def viewer(self) -> Viewer:
        """The app."""
        return viewer_of(self.app)

    def compose(self) -> ComposeResult:
        """Create the box's page."""
        self.set_class(self.viewer.glyphs.ascii, "-ascii")
        yield Page(id="box", ascii_only=self.viewer.glyphs.ascii)

    def on_mount(self) -> None:
        """Set the title, and draw."""
        self.query_one("#box", Page).border_title = self._title
        self.redraw()

    def on_resize(self) -> None:
        """Adapt to the new size."""
        self.redraw()

    def redraw(self) -> None:
        """Draw the current lines, in a box that is just large enough."""
        page = next(iter(self.query("#box").results(Page)), None)
        if not self.is_mounted or page is None:  # a tick may come between a box's mounting and its page's
            return
        screen = self.app.size
        room = max(10, min(BOX_WIDTH, screen.width - 4))
        lines = list(self._make(room))[: max(1, screen.height - 2)]
        page.styles.width = min(screen.width, max(24, *(width_of(line) for line in lines)) + 4)
        page.styles.height = len(lines) + 2
        page.border_subtitle = self.hint(len(lines))
        page.show(lines, self.viewer.palette)

    async def on_click(self, event: Click) -> None:
        """Press the key that was clicked; close the box if the click was outside it."""
        page = self.query_one("#box", Page)
        if not page.region.contains(event.screen_x, event.screen_y):
            self.action_close()
            return
        inside = page.content_region
        kind, _, name = page.target_at(event.screen_x - inside.x, event.screen_y - inside.y).partition(":")
        if kind == "key":
            await self.run_action(actions.BY_ID[name].calls)

    def hint(self, shown: int) -> str:  # noqa: ARG002  (for boxes that scroll)
        """Return a hint for the lower edge."""
        return ""

    def action_close(self) -> None:
        """Close without an answer."""
        self.dismiss(None)


def labelled(label: str, label_ink: str, cells: int, text: str, ink: str, width: int) -> list[Line]:
    """Return a label of `cells` cells and a text beside it, wrapped."""
    pieces = wrap(text, max(1, width - cells), MAX_LINES) or [""]
    labels = [label, *[""] * len(pieces)]
    return [(Part(pad(labels[i], cells), label_ink), Part(piece, ink)) for i, piece in enumerate(pieces)]


def help_lines(viewer: Viewer, width: int, here: actions.Scope) -> list[Line]:
    """Return all keys from the action table, those of the screen `here` first; in each part, keys that do nothing now
    come last, below the reason."""
    lines: list[Line] = []
    scopes = viewer.scopes
    for scope, title in ({here: scopes[here], **scopes} if here in scopes else scopes).items():
        shown = [a for a in actions.of_scope(scope) if viewer.in_help(a)]
        lines += [(), (Part(title, "accent bold"),)] if lines else [(Part(title, "accent bold"),)]
        for action in (a for a in shown if viewer.offers(a)):
            lines += _help_of(action, viewer, "text bold", width)
        idle = [(viewer.obstacle(a), a) for a in shown if not viewer.offers(a)]
        for why in dict.fromkeys(why for why, _ in idle):
            lines += [(), *((Part(piece, "text"),) for piece in wrap(f"not now: {why}", width, MAX_LINES))]
            for action in (a for other, a in idle if other == why):
                lines += _help_of(action, viewer, "text_dim", width)
    for title, texts in (*((("figures", FIGURES),) if "dashboard" in scopes else ()), ("mouse", MOUSE)):
        lines += [(), (Part(title, "accent bold"),)]
        for label, what in texts:
            lines += labelled(label, "text bold", 9, what, "text_dim", width)
    return lines


def _help_of(action: actions.KeyAction, viewer: Viewer, ink: str, width: int) -> list[Line]:
    keys = " ".join(actions.key_names(action, viewer.keymap))
    return labelled(keys, ink, 9, action.help, "text_dim", width)


class ScrollingBox(Box[None]):
    """A box that may have more lines than the screen; its last lines can stay visible below the others."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "scroll(1)", "Down", show=False),
        Binding("up,k", "scroll(-1)", "Up", show=False),
        Binding("space,pagedown", "scroll_page(1)", "Page down", show=False),
        Binding("pageup", "scroll_page(-1)", "Page up", show=False),
    ]

    def __init__(self, title: str) -> None:
        super().__init__(title, self._visible)
        self._top = self._all = 0

    @abstractmethod
    def all_lines(self, width: int) -> list[Line]:
        """Return the lines that scroll."""

    def last_lines(self) -> list[Line]:
        """Return the lines that stay at the lower edge."""
        return []

    def _visible(self, width: int) -> list[Line]:
        lines, last = self.all_lines(width), self.last_lines()
        room = max(1, self.app.size.height - 2 - len(last))
        self._all = len(lines) + len(last)
        self._top = max(0, min(self._top, len(lines) - room))
        return [*lines[self._top : self._top + room], *last]

    def hint(self, shown: int) -> str:
        """Return how to see more, if there is more, and how to close."""
        return "up and down for more, esc close" if self._all > shown else "esc close"

    def action_scroll(self, by: int) -> None:
        """Scroll down by `by` lines."""
        self._top += by
        self.redraw()

    def action_scroll_page(self, by: int) -> None:
        """Scroll down by `by` half screens."""
        self.action_scroll(by * max(1, self.app.size.height // 2))

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        """Scroll down with the wheel."""
        event.stop()
        self.action_scroll(WHEEL_ROWS)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        """Scroll up with the wheel."""
        event.stop()
        self.action_scroll(-WHEEL_ROWS)


class HelpBox(ScrollingBox):
    """All keys; scrolls, because they do not fit on a small screen."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("question_mark", "close", "Close", show=False)]

    def __init__(self, here: actions.Scope) -> None:
        super().__init__("keys")
        self._here = here

    def all_lines(self, width: int) -> list[Line]:
        """Return the keys."""
        return help_lines(self.viewer, width, self._here)
