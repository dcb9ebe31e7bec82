"""What all screens share: one page of lines above a footer of keys, drawn anew at each tick.

Unaware of which screens there are.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar

from textual.app import ComposeResult
from textual.events import Click, Key, MouseScrollDown, MouseScrollUp
from textual.screen import Screen
from textual.widgets import Input

from stoker.model.text import clean
from stoker.show.tui.input import actions
from stoker.show.tui.pages.lines import GAP, Line, Part, aimed, elide_end, fit, width_of
from stoker.show.tui.pages.moment import Moment
from stoker.show.tui.pages.names import matches, plain_name
from stoker.show.tui.screens.boxes import WHEEL_ROWS, Box
from stoker.show.tui.screens.entry_line import EntryLine
from stoker.show.tui.screens.page_widget import Page
from stoker.show.tui.screens.viewer import Viewer, viewer_of
from stoker.show.tui.terminal.glyphs import Glyphs

T = TypeVar("T")

LAST_IN_FOOTER = frozenset({"job.filter", "job.sort", "failure.filter", "moment.filter", "build.filter", "build.sort"})
"""What the footer of a screen with many keys leaves to the help first."""


class PageScreen(Screen[None]):
    """A screen that is one page of lines and a footer."""

    SCOPE: ClassVar[actions.Scope] = "app"
    ALWAYS: ClassVar[tuple[str, ...]] = ("stop", "detach", "help")
    """What the footer names, in this order at its end, however many other keys there are."""
    AUTO_FOCUS = ""
    ALLOW_SELECT = False
    """Text is selected by the terminal, with Shift."""

    @property
    def viewer(self) -> Viewer:
        """The app."""
        return viewer_of(self.app)

    @property
    def moment(self) -> Moment:
        """What to draw."""
        return self.viewer.moment

    @property
    def glyphs(self) -> Glyphs:
        """What to draw with."""
        return self.viewer.glyphs

    def compose(self) -> ComposeResult:
        """The page."""
        yield Page(id="page", ascii_only=self.viewer.glyphs.ascii)

    @abstractmethod
    def paint(self, width: int, height: int) -> Sequence[Line]:
        """The lines above the footer."""

    def redraw(self) -> None:
        """Draw the current moment."""
        if not self.is_mounted or not self.size:
            return
        page = next(iter(self.query("#page").results(Page)), None)
        if page is None:  # a tick may come between a screen's mounting and its page's
            return
        width, height = page.size
        if not width or not height:
            return
        lines = list(self.paint(width, height - 1))[: height - 1]
        lines += [()] * (height - 1 - len(lines))
        page.show([*lines, self.footer(width)], self.viewer.palette)

    def on_resize(self) -> None:
        """Draw at the new size, once the page has it."""
        self.call_after_refresh(self.redraw)

    def on_screen_resume(self) -> None:
        """Draw what happened while another screen was in front."""
        self.redraw()

    def footer(self, width: int) -> Line:
        """The keys that do something here, as many as fit; how to stop, leave and get help always does."""
        scopes = actions.of_scope(self.SCOPE) if self.SCOPE != "app" else []
        shown = [a for a in [*scopes, *actions.of_scope("app")] if a.footer and self.relevant(a)]
        shown = sorted((a for a in shown if a.id != self.SCOPE), key=lambda a: a.id in LAST_IN_FOOTER)
        last = [self._key(actions.BY_ID[name]) for name in self.ALWAYS if actions.BY_ID[name] in shown]
        rest = [(a, self._key(a)) for a in shown if a.id not in self.ALWAYS]
        parts: list[Part] = []
        room = width - sum(width_of(p) + 2 for p in last)
        left_out = False
        for action, piece in rest:
            if width_of(parts) + width_of(piece) + 2 <= room and not (left_out and action.id in LAST_IN_FOOTER):
                parts += [*piece, GAP]
            else:
                left_out = True
        for piece in last:
            parts += [*piece, GAP]
        return fit(parts, width)

    def _key(self, action: actions.KeyAction) -> Line:
        names = [actions.key_names(actions.BY_ID[i], self.viewer.keymap)[0] for i in (action.id, action.beside) if i]
        return aimed((Part("/".join(names), "accent"), Part(f" {self.label(action)}", "text_dim")), f"key:{action.id}")

    def undo(self) -> bool:
        """Take back the innermost thing that was done here; False if there was none."""
        return False

    def pick(self, target: str, *, again: bool) -> None:
        """What a click on a row does; `again` if it is one of two in quick succession."""

    def action_move(self, by: int) -> None:
        """So many rows further; nothing where there are no rows."""

    async def on_click(self, event: Click) -> None:
        """Do what is pointed at: a key of the footer, a row."""
        page = self.query_one("#page", Page)
        kind, _, name = page.target_at(event.screen_x, event.screen_y).partition(":")
        if kind == "key":
            action = actions.BY_ID[name]
            await self.run_action(f"app.{action.calls}" if action.scope == "app" else action.calls)
        elif kind:
            self.pick(name, again=event.chain > 1)

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        """The wheel goes on in what is listed."""
        event.stop()
        self.action_move(WHEEL_ROWS)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        """The wheel goes back."""
        event.stop()
        self.action_move(-WHEEL_ROWS)

    def on_key(self, event: Key) -> None:
        """Where a key can do nothing now, say why; not of a letter that is typed."""
        reason = (self._why_idle(event.key) or self.viewer.why_not(event.key, self.SCOPE)) if not self.focused else ""
        if reason:
            self.viewer.inform(reason)

    def idle(self, _action: actions.KeyAction) -> str:
        """Why an action of this screen can do nothing now, for what the screen shows; empty if it can."""
        return ""

    def _why_idle(self, key: str) -> str:
        """The same for a key, with its name."""
        own = (a for a in actions.of_scope(self.SCOPE) if key in self.viewer.keymap.get(a.id, a.keys).split(","))
        whys = ((a, self.idle(a)) for a in own)
        return next((f"{actions.key_and_name(a, self.viewer.keymap)}: {why}" for a, why in whys if why), "")

    def check_action(self, action: str, _parameters: tuple[object, ...]) -> bool | None:
        """Refuse keys that can do nothing here and now."""
        own = next((a for a in actions.of_scope(self.SCOPE) if a.method == action), None)
        return own is None or (self.viewer.offers(own) and not self.idle(own))

    def relevant(self, action: actions.KeyAction) -> bool:
        """True if the action is worth a place in this screen's footer."""
        return self.viewer.relevant(action) and not self.idle(action)

    def label(self, action: actions.KeyAction) -> str:
        """What this screen's footer calls the action."""
        return self.viewer.label(action)


class FilteredScreen(PageScreen):
    """A screen with a list, of which a person may see only the entries with some words."""

    def __init__(self) -> None:
        super().__init__()
        self.words = ""
        self.share = (0, 0)
        """How many entries have the words, and how many there are."""

    def compose(self) -> ComposeResult:
        """The page, and the line for the words."""
        yield from super().compose()
        yield EntryLine("only what has these words; Enter keeps them, Esc shows all")

    def sift(self, entries: Sequence[T], texts: Callable[[T], tuple[str, ...]]) -> list[T]:
        """The entries that have the words in one of their texts."""
        kept = [entry for entry in entries if matches(self.words, *map(plain_name, texts(entry)))]
        self.share = (len(kept), len(entries))
        return kept

    def footer(self, width: int) -> Line:
        """While not all is shown, that comes first."""
        if not self.words:
            return super().footer(width)
        found = f"/{elide_end(clean(self.words), width // 4, self.glyphs.ellipsis)}: {self.share[0]} of {self.share[1]}"
        parts = [Part(found, "accent bold"), GAP, Part("esc", "accent"), Part(" show all", "text_dim"), GAP]
        return fit((*parts, *super().footer(max(0, width - width_of(parts)))), width)

    def idle(self, action: actions.KeyAction) -> str:
        """There is nothing to look for in a list without entries."""
        empty = action.method == "filter" and not any(self.share) and not self.words
        return "there is nothing to filter here" if empty else ""

    def action_filter(self) -> None:
        """Take words."""
        self.query_one(EntryLine).open()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show at once what has the words typed so far."""
        event.stop()
        self.words = event.value.strip()
        self.redraw()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Keep the words."""
        event.stop()
        self.query_one(EntryLine).close()

    def undo(self) -> bool:
        """Show all again."""
        entry = self.query_one(EntryLine)
        had = entry.close() or bool(self.words)
        entry.empty()
        self.words = ""
        self.redraw()
        return had


def redraw_seen(stack: Sequence[Screen[Any]]) -> None:
    """Draw anew what can be seen of a stack of screens: the uppermost page, and the boxes over it."""
    for screen in reversed(stack):
        if isinstance(screen, PageScreen | Box):
            screen.redraw()
        if isinstance(screen, PageScreen):
            break
