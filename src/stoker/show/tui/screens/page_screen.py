"""What all screens share: one page of lines above a footer of keys, drawn anew at each tick.

Unaware of which screens there are.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.screen import Screen

from stoker.show.tui.input import actions
from stoker.show.tui.pages.lines import GAP, Line, Part, fit, width_of
from stoker.show.tui.pages.moment import Moment
from stoker.show.tui.screens.page_widget import Page
from stoker.show.tui.screens.viewer import Viewer, viewer_of
from stoker.show.tui.terminal.glyphs import Glyphs

ALWAYS = ("stop", "detach", "help")
"""What the footer names, in this order at its end, however many other keys there are."""


class PageScreen(Screen[None]):
    """A screen that is one page of lines and a footer."""

    SCOPE: ClassVar[actions.Scope] = "app"
    AUTO_FOCUS = ""

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
        shown = [a for a in shown if a.id != self.SCOPE]
        last = [self._key(actions.BY_ID[name]) for name in ALWAYS if actions.BY_ID[name] in shown]
        rest = [self._key(a) for a in shown if a.id not in ALWAYS]
        parts: list[Part] = []
        room = width - sum(width_of(p) + 2 for p in last)
        for piece in rest:
            if width_of(parts) + width_of(piece) + 2 <= room:
                parts += [*piece, GAP]
        for piece in last:
            parts += [*piece, GAP]
        return fit(parts, width)

    def _key(self, action: actions.KeyAction) -> Line:
        names = [actions.key_names(actions.BY_ID[i], self.viewer.keymap)[0] for i in (action.id, action.beside) if i]
        return Part("/".join(names), "accent"), Part(f" {self.label(action)}", "text_dim")

    def check_action(self, action: str, _parameters: tuple[object, ...]) -> bool | None:
        """Refuse keys that can do nothing here and now."""
        own = next((a for a in actions.of_scope(self.SCOPE) if a.method == action), None)
        return own is None or self.viewer.offers(own)

    def relevant(self, action: actions.KeyAction) -> bool:
        """True if the action is worth a place in this screen's footer."""
        return self.viewer.relevant(action)

    def label(self, action: actions.KeyAction) -> str:
        """What this screen's footer calls the action."""
        return self.viewer.label(action)
