"""A jobserver for what runs inside jobs: sub-makes, cargo, LTO links and nvcc take spare slots from a FIFO.

GNU make's protocol (make 4.4, "POSIX Jobserver"): a byte in the FIFO is the right to one job more than the one that
every tool has by being there; it is read to take it and written to give it back. Unaware of how many slots are spare.
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
"""GNU make from 4.4 on understands `fifo:`; older ones end with an internal error when they meet it."""

VERSION_SECONDS = 5.0


class JobserverFifo:
    """The FIFO, and how many tokens of it are out. Raises OSError where it cannot be opened."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._issued = self._waiting()

    @property
    def taken(self) -> int:
        """Slots that tools inside jobs use now."""
        waiting = self._waiting()
        self._issued = max(self._issued, waiting)  # tokens that were out when an engine before this one ended
        return self._issued - waiting

    def offer(self, spare: int) -> None:
        """Let `spare` tokens lie in the FIFO: what is taken comes back by itself."""
        missing = spare - self._waiting()
        with contextlib.suppress(BlockingIOError):
            if missing > 0:
                self._issued += os.write(self._fd, TOKEN * missing)
            elif missing < 0:
                self._issued -= len(os.read(self._fd, -missing))

    def lose(self, count: int) -> None:
        """So many are out and will not come back: who took them was killed. Should they come all the same, they count
        again."""
        self._issued -= count

    def close(self) -> None:
        """Let go of it; tools that have it open keep what they took."""
        os.close(self._fd)

    def _waiting(self) -> int:
        answer = fcntl.ioctl(self._fd, termios.FIONREAD, b"\0" * 4)
        return int(struct.unpack("i", answer)[0])


def make_jobserver_fifo(path: Path, width: int, environ: Mapping[str, str]) -> Mapping[str, str]:
    """Make the FIFO; what has to be in a build's environment for its tools to use it, nothing if they must not.

    A person's own MAKEFLAGS stay, and an older make on PATH would not survive the FIFO's name. Nor can that hold what
    MAKEFLAGS is split or expanded at: make and ninja do not agree how to escape it.
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
