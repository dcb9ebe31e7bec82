"""Base classes of all screens: one page of lines above a footer of keys, redrawn at each tick.

They do not know which screens exist.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
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

GAP_CELLS = width_of((GAP,))

PAGES_IN_FOOTER = ("output", "timeline", "decisions")
"""Actions of which the footer shows the keys with one name for all of them if their own names do not fit."""

LAST_IN_FOOTER = frozenset({"job.filter", "job.sort", "failure.filter", "moment.filter", "build.filter", "build.sort"})
"""Actions that the footer of a screen with many keys leaves out first."""


class PageScreen(Screen[None]):
    """A screen that is one page of lines and a footer."""

    SCOPE: ClassVar[actions.Scope] = "app"
    ALWAYS: ClassVar[tuple[str, ...]] = ("stop", "detach", "help")
    """Actions that the footer always shows, at its end, in this order."""
    BEFORE_PAGES: ClassVar[str] = ""
    """The action for which the keys of the pages share one name, if the footer has no place for it otherwise."""
    AUTO_FOCUS = ""
    ALLOW_SELECT = False
    """The terminal selects text, with Shift."""

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
        """The characters to draw with."""
        return self.viewer.glyphs

    def compose(self) -> ComposeResult:
        """Create the page."""
        yield Page(id="page", ascii_only=self.viewer.glyphs.ascii)

    @abstractmethod
    def paint(self, width: int, height: int) -> Sequence[Line]:
        """Return the lines above the footer."""

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

    def on_page_resized(self) -> None:
        """Draw at the new size of the page: that of the terminal, or without the row of an entry line."""
        self.redraw()

    def on_screen_resume(self) -> None:
        """Draw again after another screen was in front."""
        self.redraw()

    def footer(self, width: int) -> Line:
        """Return the keys that do something here, as many as fit; stop, leave and help are always included."""
        scopes = actions.of_scope(self.SCOPE) if self.SCOPE != "app" else []
        shown = [a for a in [*scopes, *actions.of_scope("app")] if a.footer and self.relevant(a)]
        shown = sorted((a for a in shown if a.id not in (self.SCOPE, "back")), key=self.footer_rank)
        if self.goes_back:  # after what is done here, before where else to go
            at = next((at for at, a in enumerate(shown) if a.id in PAGES_IN_FOOTER), len(shown))
            shown.insert(at, actions.BY_ID["back"])
        last = [self._key(actions.BY_ID[name]) for name in self.always if actions.BY_ID[name] in shown]
        while len(last) > 1 and _length(last) > width:
            del last[0]
        rest = [a for a in shown if a.id not in self.always]
        room = width - _length(last) - GAP_CELLS * bool(last)
        pieces, left_out = self._fitting([(a.id, self._key(a)) for a in rest], room)
        if (
            any(name in (*PAGES_IN_FOOTER, self.BEFORE_PAGES) for name in left_out)
            and sum(a.id in PAGES_IN_FOOTER for a in rest) > 1
        ):
            pieces, _ = self._fitting(self._with_pages_joined(rest), room)
        return fit([part for piece in (*pieces, *last) for part in (*piece, GAP)], width)

    @property
    def always(self) -> tuple[str, ...]:
        """The actions that the footer shows now in any case, as ALWAYS."""
        return self.ALWAYS

    @property
    def goes_back(self) -> bool:
        """Whether there is a screen to go back to."""
        return self.app.screen_stack[0] is not self

    def footer_rank(self, action: actions.KeyAction) -> int:
        """Return how late an action comes in the footer, and is left out first."""
        return 2 * (action.id in LAST_IN_FOOTER)

    @staticmethod
    def _fitting(pieces: Sequence[tuple[str, Line]], room: int) -> tuple[list[Line], list[str]]:
        """Return the pieces that fit side by side, and the names of those that do not."""
        shown: list[Line] = []
        left_out: list[str] = []
        for name, piece in pieces:
            if _length([*shown, piece]) <= room and not (left_out and name in LAST_IN_FOOTER):
                shown.append(piece)
            else:
                left_out.append(name)
        return shown, left_out

    def _with_pages_joined(self, shown: Sequence[actions.KeyAction]) -> list[tuple[str, Line]]:
        """Return the pieces of the footer, with one for all pages in the place of the first of them: `o/t/d pages`."""
        pages = [a for a in shown if a.id in PAGES_IN_FOOTER]
        keys = [part for a in pages for part in (Part("/", "accent"), self._key(a)[0])]
        joined = ("pages", (*keys[1:], aimed((Part(" pages", "text_dim"),), f"key:{pages[0].id}")[0]))
        return [joined if a is pages[0] else (a.id, self._key(a)) for a in shown if a is pages[0] or a not in pages]

    def _key(self, action: actions.KeyAction) -> Line:
        names = [actions.key_names(actions.BY_ID[i], self.viewer.keymap)[0] for i in (action.id, action.beside) if i]
        return aimed((Part("/".join(names), "accent"), Part(f" {self.label(action)}", "text_dim")), f"key:{action.id}")

    def undo(self) -> bool:
        """Undo the most recent of the filter, cursor and the like; return False if there was nothing to undo."""
        return False

    def pick(self, target: str, *, again: bool) -> None:
        """Handle a click on a row; `again` if it is a double click."""

    def action_move(self, by: int) -> None:
        """Move down by `by` rows; does nothing on a screen without rows."""

    async def on_click(self, event: Click) -> None:
        """Handle a click on a key of the footer, or on a row."""
        page = self.query_one("#page", Page)
        kind, _, name = page.target_at(event.screen_x, event.screen_y).partition(":")
        if kind == "key":
            action = actions.BY_ID[name]
            await self.run_action(f"app.{action.calls}" if action.scope == "app" else action.calls)
        elif kind:
            self.pick(name, again=event.chain > 1)

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        """Move down with the wheel."""
        event.stop()
        self.action_move(WHEEL_ROWS)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        """Move up with the wheel."""
        event.stop()
        self.action_move(-WHEEL_ROWS)

    def on_key(self, event: Key) -> None:
        """Show why a key does nothing now; not while the user is typing words."""
        reason = (self._why_idle(event.key) or self.viewer.why_not(event.key, self.SCOPE)) if not self.focused else ""
        if reason:
            self.viewer.inform(reason)

    def idle(self, _action: actions.KeyAction) -> str:
        """Return why an action does nothing now, given the screen's contents; empty if it works."""
        return ""

    def _why_idle(self, key: str) -> str:
        """Return the same for a key, with its name."""
        own = (a for a in actions.of_scope(self.SCOPE) if key in self.viewer.keymap.get(a.id, a.keys).split(","))
        whys = ((a, self.idle(a)) for a in own)
        return next((f"{actions.key_and_name(a, self.viewer.keymap)}: {why}" for a, why in whys if why), "")

    def check_action(self, action: str, _parameters: tuple[object, ...]) -> bool | None:
        """Refuse keys whose action is not possible now."""
        own = next((a for a in actions.of_scope(self.SCOPE) if a.method == action), None)
        return own is None or (self.viewer.offers(own) and not self.idle(own))

    def relevant(self, action: actions.KeyAction) -> bool:
        """Return whether the action deserves a place in this screen's footer."""
        return self.viewer.relevant(action) and not self.idle(action)

    def label(self, action: actions.KeyAction) -> str:
        """Return this screen's name for the action in the footer."""
        return self.viewer.label(action)


def key_hints(keys: Iterable[tuple[str, str]]) -> list[Part]:
    """Return keys and what each does, with a gap behind each, for a footer in which letters are no keys."""
    return [part for key, does in keys for part in (Part(key, "accent"), Part(f" {does}", "text_dim"), GAP)]


def _length(pieces: Sequence[Line]) -> int:
    """Return the cells of pieces of the footer with gaps between them."""
    return sum(map(width_of, pieces)) + GAP_CELLS * max(0, len(pieces) - 1)


class FilteredScreen(PageScreen):
    """A screen with a list that can be filtered by words."""

    def __init__(self) -> None:
        super().__init__()
        self.words = ""
        self.share = (0, 0)
        """How many entries match, and how many there are."""

    def compose(self) -> ComposeResult:
        """Create the page, and the input line for the words."""
        yield from super().compose()
        yield EntryLine("only what has these words; Enter keeps them, Esc shows all")

    def sift(self, entries: Sequence[T], texts: Callable[[T], tuple[str, ...]]) -> list[T]:
        """Return the entries that have the words in their texts."""
        kept = [entry for entry in entries if matches(self.words, *map(plain_name, texts(entry)))]
        self.share = (len(kept), len(entries))
        return kept

    def footer(self, width: int) -> Line:
        """Return the footer; while a filter is active, that comes first, and while it is typed, no letter is a key."""
        typing = self.focused is not None
        if not self.words and not typing:
            return super().footer(width)
        found = f"/{elide_end(clean(self.words), width // 4, self.glyphs.ellipsis)}: {self.share[0]} of {self.share[1]}"
        parts = [Part(found, "accent bold"), GAP] if self.words else []
        keys = [*([("enter", "keep")] if typing else []), ("esc", "show all")]
        parts += key_hints(keys)
        return fit(parts if typing else (*parts, *super().footer(max(0, width - width_of(parts)))), width)

    @property
    def goes_back(self) -> bool:
        """Whether Esc goes back: it ends a filter first."""
        return super().goes_back and not self.words

    def idle(self, action: actions.KeyAction) -> str:
        """Return why an action does nothing now: an empty list cannot be filtered."""
        empty = action.method == "filter" and not any(self.share) and not self.words
        return "there is nothing to filter here" if empty else ""

    def action_filter(self) -> None:
        """Open the input line."""
        self.query_one(EntryLine).open()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Apply the words typed so far."""
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
    """Redraw the visible screens of a stack: the topmost page, and the boxes over it."""
    for screen in reversed(stack):
        if isinstance(screen, PageScreen | Box):
            screen.redraw()
        if isinstance(screen, PageScreen):
            break
