"""Boxes in front of a screen: details and help.

Unaware of builds: they show lines, and may answer with a value.
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
"""Cells of a box's lines, and lines of what stands beside a key."""

WHEEL_ROWS = 3
"""Lines that one notch of the wheel goes on: what most programs do."""

MOUSE = (
    ("click", "Pick a row; a second click opens it. On a key of the last line: press it"),
    ("wheel", "Scroll, or go through a list"),
    ("Shift", "Held: select text as ever. Without a mouse: 'mouse: off' in the settings"),
)
"""What the mouse does, where the terminal and the settings let it."""

T = TypeVar("T")


class Box(ModalScreen[T | None], Generic[T]):
    """A titled box of lines in the middle; the page behind it stays alive. It may answer with a T."""

    ends_with_build: ClassVar[bool] = False
    """Whether there is nothing left to ask once the build is over."""

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
        """The box."""
        self.set_class(self.viewer.glyphs.ascii, "-ascii")
        yield Page(id="box", ascii_only=self.viewer.glyphs.ascii)

    def on_mount(self) -> None:
        """Give the box its title and size."""
        self.query_one("#box", Page).border_title = self._title
        self.redraw()

    def on_resize(self) -> None:
        """Fit the new size."""
        self.redraw()

    def redraw(self) -> None:
        """Draw the lines, which may have changed, in a box that is just large enough."""
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
        """Press the key that is pointed at; beside the box, close it."""
        page = self.query_one("#box", Page)
        if not page.region.contains(event.screen_x, event.screen_y):
            self.action_close()
            return
        inside = page.content_region
        kind, _, name = page.target_at(event.screen_x - inside.x, event.screen_y - inside.y).partition(":")
        if kind == "key":
            await self.run_action(actions.BY_ID[name].calls)

    def hint(self, shown: int) -> str:  # noqa: ARG002  (for boxes that scroll)
        """A word at the lower edge."""
        return ""

    def action_close(self) -> None:
        """Close without an answer."""
        self.dismiss(None)


def labelled(label: str, label_ink: str, cells: int, text: str, ink: str, width: int) -> list[Line]:
    """A label of so many cells and a text beside it, in as many lines as it takes."""
    pieces = wrap(text, max(1, width - cells), MAX_LINES) or [""]
    labels = [label, *[""] * len(pieces)]
    return [(Part(pad(labels[i], cells), label_ink), Part(piece, ink)) for i, piece in enumerate(pieces)]


def help_lines(viewer: Viewer, width: int, here: actions.Scope) -> list[Line]:
    """All keys from the action table, those of the screen `here` first; last in each part those that can do nothing
    now, below the reason for it."""
    lines: list[Line] = []
    scopes = viewer.scopes
    for scope, title in ({here: scopes[here], **scopes} if here in scopes else scopes).items():
        shown = [a for a in actions.of_scope(scope) if viewer.in_help(a)]
        lines += [(), (Part(title, "accent bold"),)] if lines else [(Part(title, "accent bold"),)]
        for action in (a for a in shown if viewer.offers(a)):
            lines += _help_of(action, viewer, "text bold", width)
        idle = [(viewer.obstacle(a), a) for a in shown if not viewer.offers(a)]
        for why in dict.fromkeys(why for why, _ in idle):
            lines += [(Part(piece, "text_dim"),) for piece in wrap(f"not now: {why}", width, MAX_LINES)]
            for action in (a for other, a in idle if other == why):
                lines += _help_of(action, viewer, "text_dim", width)
    lines += [(), (Part("mouse", "accent bold"),)]
    for does, what in MOUSE:
        lines += labelled(does, "text bold", 9, what, "text_dim", width)
    return lines


def _help_of(action: actions.KeyAction, viewer: Viewer, ink: str, width: int) -> list[Line]:
    keys = " ".join(actions.key_names(action, viewer.keymap))
    return labelled(keys, ink, 9, action.help, "text_dim", width)


class ScrollingBox(Box[None]):
    """A box with more lines than a small screen has; the last ones may stay in view below the others."""

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
        """What scrolls."""

    def last_lines(self) -> list[Line]:
        """What stays at the lower edge."""
        return []

    def _visible(self, width: int) -> list[Line]:
        lines, last = self.all_lines(width), self.last_lines()
        room = max(1, self.app.size.height - 2 - len(last))
        self._all = len(lines) + len(last)
        self._top = max(0, min(self._top, len(lines) - room))
        return [*lines[self._top : self._top + room], *last]

    def hint(self, shown: int) -> str:
        """Whether there is more."""
        return "up and down for more, esc close" if self._all > shown else "esc close"

    def action_scroll(self, by: int) -> None:
        """So many lines down."""
        self._top += by
        self.redraw()

    def action_scroll_page(self, by: int) -> None:
        """So many halves of a screen down."""
        self.action_scroll(by * max(1, self.app.size.height // 2))

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        """The wheel goes on."""
        event.stop()
        self.action_scroll(WHEEL_ROWS)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        """The wheel goes back."""
        event.stop()
        self.action_scroll(-WHEEL_ROWS)


class HelpBox(ScrollingBox):
    """All keys; scrolls, because small screens cannot hold them."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("question_mark", "close", "Close", show=False)]

    def __init__(self, here: actions.Scope) -> None:
        super().__init__("keys")
        self._here = here

    def all_lines(self, width: int) -> list[Line]:
        """The keys."""
        return help_lines(self.viewer, width, self._here)
