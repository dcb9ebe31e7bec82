"""A person's terminal: a real PTY with a program in it, its screen read by pyte and every byte kept."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import select
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyte

from support.program import PATIENCE

HARMLESS = re.compile(
    r"\x1b\[[0-9;]*[mHC]"  # colours, and moves of the cursor
    r"|\x1b\[6n"  # the question where the cursor is
    r"|\x1b\[\?(?:25|1000|1003|1004|1006|1015|2004|2026|2048|1049|7)[hl]"  # cursor, mouse, focus, paste, sync and so on
    r"|\x1b\[\?(?:2026|2048)\$p|\x1b\[>\d+u|\x1b\[<u|\x1b\]22;[a-z-]+\x07"  # what the terminal can do; the pointer
    r"|\x1b\[2[23];2t|\x1b\]2;[^\x00-\x1f\x7f-\x9f]*\x07|\x07"  # the title, kept and set; the bell
    r"|[^\x00-\x1f\x7f-\x9f]+"
    r"|\r?\n"
)
"""All that stoker's screen may write. Everything else comes from somebody else."""

READING_SECONDS = 1.0
"""Longer than a question is deaf: what comes sooner might be part of a paste."""


class _Screen(pyte.Screen):
    """A screen that answers when it is asked where its cursor is."""

    def __init__(self, columns: int, lines: int, answer: Callable[[str], None]) -> None:
        super().__init__(columns, lines)
        self._send_answer = answer

    def write_process_input(self, data: str) -> None:
        self._send_answer(data)


class Terminal:
    """One program on a terminal of its own, from its start to its end."""

    def __init__(
        self, argv: Sequence[str], env: Mapping[str, str], cwd: Path, columns: int = 80, lines: int = 24
    ) -> None:
        self._master, slave = os.openpty()
        self._lock = threading.Lock()
        self._raw = bytearray()
        self._screen = _Screen(columns, lines, self._answer)
        self._stream = pyte.ByteStream(self._screen)
        self._set_size(columns, lines)
        self._modes = termios.tcgetattr(slave)
        self.process = subprocess.Popen(
            argv,
            cwd=cwd,
            env={"TERM": "xterm-256color", **env},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=_take_terminal,
        )
        # Held open, so that the last bytes can be read and the modes looked at after the program's end.
        self._slave = slave
        self._closing, self._close = os.pipe()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def display(self) -> str:
        """What the person sees, line by line."""
        with self._lock:
            return "\n".join(line.rstrip() for line in self._screen.display)

    @property
    def raw(self) -> bytes:
        """Every byte that the program wrote so far."""
        with self._lock:
            return bytes(self._raw)

    def wait_for(self, what: str | Callable[[str], Any], gone: str = "") -> str:
        """Wait until a text (or what a function looks for) is on the screen, and `gone` is not; returns the screen."""
        deadline = time.monotonic() + PATIENCE
        while True:
            seen = self.display
            found = what in seen if isinstance(what, str) else what(seen)
            if found and not (gone and gone in seen):
                return seen
            if time.monotonic() > deadline:
                raise AssertionError(f"{what!r} is not on the screen:\n{seen}\n(exit status {self.process.poll()})")
            time.sleep(0.02)

    def send(self, keys: str) -> None:
        """Type."""
        os.write(self._master, keys.encode())

    def answer(self, key: str) -> None:
        """Answer a question that is on the screen, as a person does who has read it."""
        time.sleep(READING_SECONDS)
        self.send(key)

    def resize(self, columns: int, lines: int) -> None:
        """Pull the window to another size."""
        with self._lock:
            self._screen.resize(lines, columns)
        self._set_size(columns, lines)

    def wait(self) -> int:
        """Wait for the program to end by itself; its exit status, negative for a signal. All it wrote has been read."""
        status = self.process.wait(PATIENCE)
        self._stop_reading()
        return status

    def kill(self) -> None:
        """SIGKILL for the program, as a crash of it would be."""
        self.process.kill()
        self.wait()

    def hang_up(self) -> int:
        """Close the window: the program loses its terminal. Returns its exit status."""
        self._stop_reading()
        os.close(self._slave)
        os.close(self._master)
        self._slave = self._master = -1
        return self.process.wait(PATIENCE)

    @property
    def restored(self) -> bool:
        """Whether the terminal is as it was before: echo, lines and signals."""
        return termios.tcgetattr(self._slave) == self._modes

    def close(self) -> None:
        """Leave nothing behind; may be called after anything."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE)
        self._stop_reading()
        for fd in (self._slave, self._master):
            if fd >= 0:
                os.close(fd)
        self._slave = self._master = -1

    def _set_size(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def _answer(self, data: str) -> None:
        """What a terminal says by itself when it is asked."""
        with contextlib.suppress(OSError):
            os.write(self._master, data.encode())

    def _read(self) -> None:
        while True:
            ready, _, _ = select.select([self._master, self._closing], [], [])
            if self._master not in ready:
                return
            try:
                data = os.read(self._master, 1 << 16)
            except OSError:
                return
            with self._lock:
                self._raw += data
                self._stream.feed(data)

    def _stop_reading(self) -> None:
        """Let the reader take what is still there, and end."""
        if self._reader.is_alive():
            os.write(self._close, b".")
            self._reader.join(PATIENCE)
        for fd in (self._closing, self._close):
            if fd >= 0:
                os.close(fd)
        self._closing = self._close = -1


def _take_terminal() -> None:
    """In the new process: make the PTY the controlling terminal, so that its end is a SIGHUP."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def harmful(raw: bytes) -> list[str]:
    """Everything in a program's output that its own screen would not write."""
    return [piece for piece in HARMLESS.split(raw.decode()) if piece]
