"""A jobserver for tools inside jobs: sub-makes, cargo, LTO links and nvcc take spare slots from a FIFO.

GNU make's protocol (make 4.4, "POSIX Jobserver"): a byte in the FIFO is the right to run one more job than the one that
every tool may always run; a tool reads a byte to take it and writes it to give it back. Unaware of how many slots are
spare.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import struct
import subprocess
import termios
from collections.abc import Mapping
from pathlib import Path

TOKEN = b"+"

FIRST_WITH_FIFO = (4, 4)
"""GNU make understands `fifo:` from 4.4 on; older ones end with an internal error."""

VERSION_SECONDS = 5.0


class JobserverFifo:
    """The FIFO, and how many tokens of it are taken. Raises OSError if it cannot be opened."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._issued = self._waiting()

    @property
    def taken(self) -> int:
        """Slots that tools inside jobs use now."""
        waiting = self._waiting()
        self._issued = max(self._issued, waiting)  # tokens that were taken when an earlier engine ended
        return self._issued - waiting

    def offer(self, spare: int) -> None:
        """Keep `spare` tokens in the FIFO: tools that took one give it back."""
        missing = spare - self._waiting()
        with contextlib.suppress(BlockingIOError):
            if missing > 0:
                self._issued += os.write(self._fd, TOKEN * missing)
            elif missing < 0:
                self._issued -= len(os.read(self._fd, -missing))

    def lose(self, count: int) -> None:
        """This many are taken and will not come back: their owners were killed. If they come back anyway, they count
        again."""
        self._issued -= count

    def close(self) -> None:
        """Close the FIFO; tools that have it open keep what they took."""
        os.close(self._fd)

    def _waiting(self) -> int:
        answer = fcntl.ioctl(self._fd, termios.FIONREAD, b"\0" * 4)
        return int(struct.unpack("i", answer)[0])


def make_jobserver_fifo(path: Path, width: int, environ: Mapping[str, str]) -> Mapping[str, str]:
    """Create the FIFO; return the variables by which a build's tools use it, none if they must not.

    The user's own MAKEFLAGS stay, and an older make on PATH would not survive the FIFO's name. The name must not
    contain characters at which MAKEFLAGS is split or expanded either: make and ninja do not agree on how to escape
    them.
    """
    odd = any(c.isspace() or c in "$\\" for c in str(path))
    if odd or environ.get("MAKEFLAGS") or not _make_knows_fifos():
        return {}
    try:
        os.mkfifo(path, 0o600)
    except OSError:
        return {}
    return {"MAKEFLAGS": f" -j{width} --jobserver-auth=fifo:{path}"}


def _make_knows_fifos() -> bool:
    make = shutil.which("make")
    if make is None:
        return True
    try:
        answer = subprocess.run(
            [make, "--version"], capture_output=True, timeout=VERSION_SECONDS, check=False, stdin=subprocess.DEVNULL
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return False
    version = re.search(rb"(\d+)\.(\d+)", answer)
    return version is not None and (int(version[1]), int(version[2])) >= FIRST_WITH_FIFO
