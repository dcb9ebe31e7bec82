"""The terminal driver: sends only changed cells, and the next frame only once the terminal has shown the last one.

On a slow link, outdated frames would otherwise pile up: after each frame the driver asks the terminal for its cursor
position, and until the answer arrives it merges frames instead of sending them. STOKER_FULL_REPAINT=1 in the
environment turns all of this off. Does not know what is drawn.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

from textual.drivers.linux_driver import LinuxDriver
from textual.events import CursorPosition, Key

from stoker.show.ascii import to_ascii
from stoker.show.tui.terminal.cells import Screen

if TYPE_CHECKING:
    from textual.app import App
    from textual.driver import Driver
    from textual.message import Message

SWITCH = "STOKER_FULL_REPAINT"

ANSWER_TIMEOUT = 5.0
"""Seconds to wait for the terminal's answer before sending the next frame anyway: longer than on any usable link."""

MAX_SILENCE = 2
"""After this many missed answers in a row, the terminal is assumed never to answer."""

LAST_ANSWER_TIMEOUT = 0.5
"""Seconds to wait at the end for an outstanding answer, which would otherwise end up in the shell as input."""


_SANE = "\x0f\x1b(B\x1b[r\x1b[?25l"
"""Resets what another program may have changed besides cells: character set, scroll region, cursor visibility."""


class CellDriver(LinuxDriver):
    """LinuxDriver behind a model of the terminal's cells."""

    ascii_only = False
    """Replace non-ASCII characters, also those that Textual draws."""

    def __init__(
        self, app: App[Any], *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None
    ) -> None:
        # Pass the size, or Textual guesses it: for a terminal without a size it assumes 80x25 in one place and 80x24
        # in another, and repeats its layout forever.
        super().__init__(app, debug=debug, mouse=mouse, size=size or self._terminal_size())
        self._cells = Screen(*self._terminal_size())
        self._waiting: asyncio.TimerHandle | None = None
        self._asked = 0
        self._silence = 0
        self._answered = threading.Event()
        self._answered.set()

    def _get_terminal_size(self) -> tuple[int, int]:
        """Return the size; Textual calls this whenever it has changed."""
        return self._terminal_size()

    def _terminal_size(self) -> tuple[int, int]:
        """Return columns and lines; 80x24 if the terminal has no size."""
        try:
            size = os.get_terminal_size(sys.__stdin__.fileno() if sys.__stdin__ is not None else 0)
        except (OSError, ValueError):
            return 80, 24
        return size.columns or 80, size.lines or 24

    def _enable_mouse_support(self) -> None:
        """Enable reports of buttons and the wheel, in the format for large screens; moves are not needed."""
        if self._mouse:
            self.write("\x1b[?1000h\x1b[?1006h")

    def write(self, data: str) -> None:
        """Write data, reduced to what changes the picture."""
        size = self._terminal_size()
        if size != (self._cells.width, self._cells.height):
            self._cells = Screen(*size)
        at_once = self._cells.feed(to_ascii(data) if self.ascii_only else data)
        if at_once:
            super().write(at_once)
        if self._waiting is None:
            self._send()

    def repaint(self) -> None:
        """Write every cell again: another program may have written to the terminal."""
        super().write(_SANE)
        self._cells.forget()
        if self._waiting is None:
            self._send()

    def _send(self) -> None:
        difference = self._cells.difference()
        if not difference:
            return
        # Ask only while the reader runs: otherwise the terminal would echo its answer.
        listens = self._key_thread is not None and self._key_thread.is_alive() and not self.exit_event.is_set()
        ask = self._silence < MAX_SILENCE and self.input_tty and listens
        super().write(f"\x1b[?2026h{difference}\x1b[?2026l" + "\x1b[6n" * ask)
        if ask:
            self._answered.clear()
            self._asked += 1
            self._waiting = self._loop.call_later(ANSWER_TIMEOUT, self._missed, self._asked)

    def _go_on(self, asked: int) -> None:
        """Send what has changed since frame `asked`, which the terminal has confirmed, as one frame."""
        if self._waiting is not None and asked == self._asked:
            self._waiting.cancel()
            self._waiting = None
            self._silence = 0
            self._send()

    def _missed(self, asked: int) -> None:
        """Continue although the terminal did not confirm frame `asked` in time."""
        if self._waiting is not None and asked == self._asked:
            self._waiting = None
            self._silence += 1
            self._send()

    def process_message(self, message: Message) -> None:
        """Intercept the terminal's answers, and restore early keys. Runs in the thread that reads the terminal."""
        if isinstance(message, CursorPosition) and not self._answered.is_set():
            self._answered.set()
            self._loop.call_soon_threadsafe(self._go_on, self._asked)
            return
        if isinstance(message, Key) and message.key == "ctrl+j":
            # Enter, typed before this program listened: until then the terminal makes a line end of it.
            message = Key("enter", "\r")
        super().process_message(message)

    def disable_input(self) -> None:
        """Stop reading the terminal, after its last outstanding answer."""
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
            self._answered.wait(LAST_ANSWER_TIMEOUT)
        super().disable_input()


def repaint(driver: Driver | None) -> bool:
    """Write every cell again; return False if the driver has no cells and the app must redraw."""
    if isinstance(driver, CellDriver):
        driver.repaint()
        return True
    return False


def driver_class(*, ascii_only: bool) -> type[Driver] | None:
    """Return the driver class to use; None for Textual's own."""
    if os.environ.get(SWITCH, "") not in ("", "0"):
        return None
    return type("AsciiCellDriver", (CellDriver,), {"ascii_only": True}) if ascii_only else CellDriver
