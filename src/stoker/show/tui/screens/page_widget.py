"""A widget that shows lines of inked text, and repaints only the rows that changed.

Does not know what the lines mean. It takes lines, never strings, so nothing in them is ever parsed as markup.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.segment import Segment
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from stoker.show.ascii import to_ascii
from stoker.show.tui.pages.lines import BLANK, Line, fit
from stoker.show.tui.terminal.theming import Palette


class Page(Widget, can_focus=False):
    """Lines of text, cut or padded to the widget's size."""

    class Resized(Message):
        """The widget has another size than before."""

    DEFAULT_CSS = """
    Page { width: 1fr; height: 1fr; }
    """

    def __init__(self, *, id: str | None = None, ascii_only: bool = False) -> None:  # noqa: A002  (Textual's own name)
        super().__init__(id=id)
        self._lines: Sequence[Line] = ()
        self._palette: Palette | None = None
        self._ascii_only = ascii_only

    @property
    def lines(self) -> Sequence[Line]:
        """The lines shown."""
        return self._lines

    def on_resize(self) -> None:
        """Inform the screen, which decides what fits."""
        self.post_message(self.Resized())

    def show(self, lines: Sequence[Line], palette: Palette) -> None:
        """Show `lines` from now on; unchanged rows are not repainted."""
        old, self._lines = self._lines, lines
        if palette is not self._palette:
            self._palette = palette
            self.refresh()
            return
        width = self.size.width
        changed = [y for y in range(max(len(old), len(lines))) if _at(old, y) != _at(lines, y)]
        if changed:
            self.refresh(*(Region(0, y, width, 1) for y in changed))

    def target_at(self, x: int, y: int) -> str:
        """Return what a click there means; empty for nothing."""
        for part in _at(self._lines, y) if min(x, y) >= 0 else ():
            x -= cell_len(part.text)
            if x < 0:
                return part.target
        return ""

    def render_line(self, y: int) -> Strip:
        """Return one row as a Textual strip."""
        if self._palette is None:
            return Strip.blank(self.size.width, self.rich_style)
        style = self._palette.style
        parts = fit(_at(self._lines, y), self.size.width)
        if self._ascii_only:
            parts = tuple(part._replace(text=to_ascii(part.text)) for part in parts)
        return Strip([Segment(part.text, style(part.ink)) for part in parts], self.size.width)


def _at(lines: Sequence[Line], y: int) -> Line:
    return lines[y] if y < len(lines) else BLANK
