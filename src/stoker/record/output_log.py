"""The build's output file as screens read it. Unaware of its contents."""

from __future__ import annotations

import os
from pathlib import Path


class FileLog:
    """`stoker.show.update_source.OutputLog` over a file, which may not exist yet and may grow."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def size(self) -> int:
        """Return the bytes written so far; 0 while there is no file."""
        try:
            return self.path.stat().st_size
        except OSError:
            return 0

    def read(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from `offset`; nothing if there is nothing to read."""
        try:
            # Non-blocking: a replay may be next to anything, even a FIFO.
            fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:
            return b""
        try:
            return os.pread(fd, max(0, length), max(0, offset))
        except OSError:
            return b""
        finally:
            os.close(fd)
