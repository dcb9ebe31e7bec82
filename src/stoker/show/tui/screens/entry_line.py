"""The input line at the bottom for words to filter or search by. Does not know what is searched."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widgets import Input, Label

LONGEST = 200
"""Maximum characters of the words."""


class EntryLine(Horizontal):
    """Hidden until it is opened; reports what is typed by Input.Changed and Input.Submitted."""

    DEFAULT_CSS = """
    EntryLine { height: 1; dock: bottom; display: none; }
    EntryLine Label { width: 2; background: $surface; color: $accent; text-style: bold; }
    EntryLine Input { height: 1; border: none; padding: 0; background: $surface; color: $foreground; }
    EntryLine Input:focus { border: none; }
    """

    def __init__(self, purpose: str) -> None:
        super().__init__(id="entry")
        self._purpose = purpose

    def compose(self) -> ComposeResult:
        """Create a slash, and the input."""
        yield Label("/", markup=False)
        words = Input(placeholder=self._purpose, id="words", select_on_focus=True, compact=True, max_length=LONGEST)
        words.cursor_blink = False
        yield words

    def open(self) -> None:
        """Show the line and focus its input."""
        self.display = True
        # Immediately, unlike Input.focus(): letters that arrive in the same burst are input, not keys.
        self.screen.set_focus(self.query_one(Input))

    def close(self) -> bool:
        """Return the focus to the screen; return False if the line was not open."""
        was_open, self.display = self.display, False
        self.screen.set_focus(None)
        return was_open

    def empty(self) -> None:
        """Clear the words without a Changed message."""
        words = self.query_one(Input)
        with words.prevent(Input.Changed):
            words.value = ""
