"""The terminal driver: sends only cells that changed, and the next frame only when the terminal has shown the last.

A slow link would otherwise pile up frames that nobody needs any more: after each frame the terminal is asked where
its cursor is, and while the answer is on its way frames are merged instead of sent. STOKER_FULL_REPAINT=1 in the
environment turns all of this off. Unaware of what is drawn.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

from textual.drivers.linux_driver import LinuxDriver
from textual.events import CursorPosition

from stoker.show.ascii import to_ascii
from stoker.show.tui.terminal.cells import Screen

if TYPE_CHECKING:
    from textual.app import App
    from textual.driver import Driver
    from textual.message import Message

SWITCH = "STOKER_FULL_REPAINT"

ANSWER_TIMEOUT = 5.0
"""Seconds to wait for the terminal's answer before the next frame goes out anyway: longer than any usable link."""

MAX_SILENCE = 2
"""Answers missed in a row after which the terminal is taken for one that never answers."""

LAST_ANSWER_TIMEOUT = 0.5
"""Seconds to wait at the end for an answer still on its way: it would otherwise be typed into the shell."""


_SANE = "\x0f\x1b(B\x1b[r\x1b[?25l"
"""What another program may have changed beside cells: the characters' set, what scrolls, whether a cursor is shown."""


class CellDriver(LinuxDriver):
    """LinuxDriver behind a model of the terminal's cells."""

    ascii_only = False
    """Replace what is not ASCII, whoever drew it."""

    def __init__(
        self, app: App[Any], *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None
    ) -> None:
        # Set from the start, or Textual takes its first guess from elsewhere: of a terminal that has no size it thinks
        # 80x25 at one place and 80x24 at another, and lays its screens out anew for ever.
        super().__init__(app, debug=debug, mouse=mouse, size=size or self._terminal_size())
        self._cells = Screen(*self._terminal_size())
        self._waiting: asyncio.TimerHandle | None = None
        self._asked = 0
        self._silence = 0
        self._answered = threading.Event()
        self._answered.set()

    def _get_terminal_size(self) -> tuple[int, int]:
        """Textual asks this whenever the size has changed."""
        return self._terminal_size()

    def _terminal_size(self) -> tuple[int, int]:
        """Columns and lines; of a terminal that nobody sized 80x24."""
        try:
            size = os.get_terminal_size(sys.__stdin__.fileno() if sys.__stdin__ is not None else 0)
        except (OSError, ValueError):
            return 80, 24
        return size.columns or 80, size.lines or 24

    def _enable_mouse_support(self) -> None:
        """Have buttons and the wheel reported, in a form that knows large screens; moves would be sent for nothing."""
        if self._mouse:
            self.write("\x1b[?1000h\x1b[?1006h")

    def write(self, data: str) -> None:
        """Write what changes the picture."""
        size = self._terminal_size()
        if size != (self._cells.width, self._cells.height):
            self._cells = Screen(*size)
        at_once = self._cells.feed(to_ascii(data) if self.ascii_only else data)
        if at_once:
            super().write(at_once)
        if self._waiting is None:
            self._send()

    def repaint(self) -> None:
        """Write every cell again: somebody else may have written to the terminal."""
        super().write(_SANE)
        self._cells.forget()
        if self._waiting is None:
            self._send()

    def _send(self) -> None:
        difference = self._cells.difference()
        if not difference:
            return
        # Only while somebody reads: between the screens and the shell the terminal would echo its own answer.
        listens = self._key_thread is not None and self._key_thread.is_alive() and not self.exit_event.is_set()
        ask = self._silence < MAX_SILENCE and self.input_tty and listens
        super().write(f"\x1b[?2026h{difference}\x1b[?2026l" + "\x1b[6n" * ask)
        if ask:
            self._answered.clear()
            self._asked += 1
            self._waiting = self._loop.call_later(ANSWER_TIMEOUT, self._missed, self._asked)

    def _go_on(self, asked: int) -> None:
        """The terminal answered frame `asked`; what has changed meanwhile goes out as one frame."""
        if self._waiting is not None and asked == self._asked:
            self._waiting.cancel()
            self._waiting = None
            self._silence = 0
            self._send()

    def _missed(self, asked: int) -> None:
        """The terminal did not answer frame `asked` in time."""
        if self._waiting is not None and asked == self._asked:
            self._waiting = None
            self._silence += 1
            self._send()

    def process_message(self, message: Message) -> None:
        """Take the terminal's answers out of what it sends. Runs in the thread that reads the terminal."""
        if isinstance(message, CursorPosition) and not self._answered.is_set():
            self._answered.set()
            self._loop.call_soon_threadsafe(self._go_on, self._asked)
            return
        super().process_message(message)

    def disable_input(self) -> None:
        """Stop reading the terminal, after its last answer."""
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
            self._answered.wait(LAST_ANSWER_TIMEOUT)
        super().disable_input()


def repaint(driver: Driver | None) -> bool:
    """Write every cell again; False if the driver has no cells, and the app has to draw."""
    if isinstance(driver, CellDriver):
        driver.repaint()
        return True
    return False


def driver_class(*, ascii_only: bool) -> type[Driver] | None:
    """The driver to run with; None is Textual's own."""
    if os.environ.get(SWITCH, "") not in ("", "0"):
        return None
    return type("AsciiCellDriver", (CellDriver,), {"ascii_only": True}) if ascii_only else CellDriver
