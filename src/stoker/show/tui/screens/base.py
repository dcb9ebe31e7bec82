"""What all screens share: one page of lines above a footer of keys, drawn anew at each tick.

Unaware of which screens there are.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.screen import Screen

from stoker.show.tui import actions
from stoker.show.tui.glyphs import Glyphs
from stoker.show.tui.lines import GAP, Line, Part, fit, width_of
from stoker.show.tui.moment import Moment
from stoker.show.tui.widgets.page import Page

if TYPE_CHECKING:
    from stoker.show.tui.app import StokerApp


class PageScreen(Screen[None]):
    """A screen that is one page of lines and a footer."""

    SCOPE: ClassVar[actions.Scope] = "app"
    AUTO_FOCUS = ""

    @property
    def stoker(self) -> StokerApp:
        """The app."""
        return cast("StokerApp", self.app)

    @property
    def moment(self) -> Moment:
        """What to draw."""
        return self.stoker.moment

    @property
    def glyphs(self) -> Glyphs:
        """What to draw with."""
        return self.stoker.glyphs

    def compose(self) -> ComposeResult:
        """The page."""
        yield Page(id="page", ascii_only=self.stoker.glyphs.ascii)

    @abstractmethod
    def paint(self, width: int, height: int) -> Sequence[Line]:
        """The lines above the footer."""

    def redraw(self) -> None:
        """Draw the current moment."""
        if not self.is_mounted or not self.size:
            return
        page = self.query_one("#page", Page)
        width, height = page.size
        if not width or not height:
            return
        lines = list(self.paint(width, height - 1))[: height - 1]
        lines += [()] * (height - 1 - len(lines))
        page.show([*lines, self.footer(width)], self.stoker.palette)

    def on_resize(self) -> None:
        """Draw at the new size, once the page has it."""
        self.call_after_refresh(self.redraw)

    def on_screen_resume(self) -> None:
        """Draw what happened while another screen was in front."""
        self.redraw()

    def footer(self, width: int) -> Line:
        """The keys that do something here, as many as fit; help always does."""
        scopes = actions.of_scope(self.SCOPE) if self.SCOPE != "app" else []
        shown = [a for a in [*scopes, *actions.of_scope("app")] if a.footer and self.stoker.relevant(a)]
        shown = [a for a in shown if a.id != self.SCOPE]
        shown.sort(key=lambda a: a.id in ("detach", "help"))
        pieces = [self._key(a) for a in shown]
        last = [p for p, a in zip(pieces, shown, strict=True) if a.id in ("detach", "help")]
        rest = [p for p, a in zip(pieces, shown, strict=True) if a.id not in ("detach", "help")]
        parts: list[Part] = []
        room = width - sum(width_of(p) + 2 for p in last)
        for piece in rest:
            if width_of(parts) + width_of(piece) + 2 <= room:
                parts += [*piece, GAP]
        for piece in last:
            parts += [*piece, GAP]
        return fit(parts, width)

    def _key(self, action: actions.Action) -> Line:
        name = actions.key_names(action, self.stoker.keymap)[0]
        return Part(name, "accent"), Part(f" {action.footer}", "text_dim")
