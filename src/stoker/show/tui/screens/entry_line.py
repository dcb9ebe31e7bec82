"""The line at the bottom into which words are typed that a person looks for. Unaware of what is looked through."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widgets import Input, Label

LONGEST = 200
"""Characters that are looked for."""


class EntryLine(Horizontal):
    """Hidden until it is opened; what is typed comes as Input.Changed and Input.Submitted."""

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
        """A slash, and the words."""
        yield Label("/", markup=False)
        words = Input(placeholder=self._purpose, id="words", select_on_focus=True, compact=True, max_length=LONGEST)
        words.cursor_blink = False
        yield words

    def open(self) -> None:
        """Take words."""
        self.display = True
        # At once, unlike Input.focus(): letters that come in the same burst are words, not keys.
        self.screen.set_focus(self.query_one(Input))

    def close(self) -> bool:
        """Give the keys back to the screen; False if it was not open."""
        was_open, self.display = self.display, False
        self.screen.set_focus(None)
        return was_open

    def empty(self) -> None:
        """Forget the words, in silence."""
        words = self.query_one(Input)
        with words.prevent(Input.Changed):
            words.value = ""
