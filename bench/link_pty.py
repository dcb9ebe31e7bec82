"""Runs programs on PTYs side by side: measures what each writes, its cost, and what a slow reader sees, and when.

Answers like a terminal. Does not know what the programs are.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

import pyte

CURSOR_QUESTION, CURSOR = b"\x1b[6n", b"\x1b[1;1R"
SYNC_QUESTION, SYNC = b"\x1b[?2026$p", b"\x1b[?2026;2$y"
ANSWERS = {CURSOR_QUESTION: CURSOR, SYNC_QUESTION: SYNC}
LONGEST = max(map(len, ANSWERS)) - 1
_QUESTION = re.compile(b"|".join(map(re.escape, ANSWERS)))

SLICE_SECONDS = 0.05
"""How finely a slow link is dealt out."""

TICKS = os.sysconf("SC_CLK_TCK")
PATIENCE_SECONDS = 10.0


class Pty:
    """One program on a terminal of its own; a context manager that ends it.

    `rate` is in bytes per second: no more is read, so that what is written beyond waits in the PTY, then the program.
    """

    def __init__(
        self, argv: Sequence[str], size: tuple[int, int], env: Mapping[str, str] | None = None, rate: int | None = None
    ) -> None:
        self.columns, self.lines = size
        self.total = 0
        self._unasked = b""
        """The last bytes, which may be the beginning of a question: a read may end anywhere."""
        self._rate = rate
        self._credit, self._at = 0.0, time.monotonic()
        self._screen = pyte.Screen(self.columns, self.lines)
        self._stream = pyte.ByteStream(self._screen)
        self.master, slave = os.openpty()
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", self.lines, self.columns, 0, 0))
        told = {**os.environ, **(env or {}), "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        told.pop("NO_COLOR", None)
        self.process = subprocess.Popen(
            argv, stdin=slave, stdout=slave, stderr=slave, env=told, start_new_session=True, preexec_fn=_take_terminal
        )
        os.close(slave)

    def __enter__(self) -> Pty:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE_SECONDS)
        os.close(self.master)

    def read(self) -> None:
        """Take what is there, as far as the link allows."""
        most = 65536
        if self._rate is not None:
            now = time.monotonic()
            self._credit = min(self._credit + (now - self._at) * self._rate, self._rate * 2 * SLICE_SECONDS)
            self._at, most = now, int(self._credit)
        if most < 1 or not select.select([self.master], [], [], 0)[0]:
            return
        try:
            data = os.read(self.master, most)
        except OSError:
            return
        self._credit -= len(data) if self._rate is not None else 0
        self.total += len(data)
        if self._rate is not None:
            self._stream.feed(data)
        os.write(self.master, self._answers(data))

    def _answers(self, data: bytes) -> bytes:
        """Return what a terminal answers to the questions that end in `data`."""
        data = self._unasked + data
        found = list(_QUESTION.finditer(data))
        self._unasked = data[found[-1].end() if found else 0 :][-LONGEST:]
        return b"".join(ANSWERS[question[0]] for question in found)

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self.master, keys.encode())

    @property
    def slow(self) -> bool:
        """Whether it is read through a slow link."""
        return self._rate is not None

    @property
    def top_line(self) -> str:
        """The first line that a person sees. Kept up for a slow link only."""
        return str(self._screen.display[0])

    @property
    def cpu(self) -> float:
        """CPU seconds so far; 0 once it has ended."""
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
            return (int(fields[11]) + int(fields[12])) / TICKS
        return 0.0

    @property
    def mib(self) -> float:
        """The most that it has held."""
        with contextlib.suppress(OSError, StopIteration):
            status = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
            return int(next(line for line in status if line.startswith("VmHWM")).split()[1]) / 1024
        return 0.0


def watch(ptys: Sequence[Pty], seconds: float) -> None:
    """Read them all for so long."""
    end = time.monotonic() + seconds
    slow = any(pty.slow for pty in ptys)
    while (left := end - time.monotonic()) > 0:
        if slow:
            time.sleep(min(left, SLICE_SECONDS))
        else:
            select.select([pty.master for pty in ptys if pty.process.poll() is None], [], [], min(left, 0.1))
        for pty in ptys:
            pty.read()


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
