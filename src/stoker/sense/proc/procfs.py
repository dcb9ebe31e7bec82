"""Small reads of files that may vanish at any moment, most of them the kernel's, and notes that are reported once.

Unaware of what the files mean.
"""

from __future__ import annotations

import os
from collections.abc import Container

MAX_FILE = 4 * 1024 * 1024
"""Most bytes taken of one kernel file: a bound against an endless one, far above any real size."""

_FIRST_READ = 65536


def read_once(path: str, size: int = 4096) -> bytes | None:
    """What a single read(2) gives, None if the file cannot be read. Enough for files of one record."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(fd, size)
    except OSError:
        return None
    finally:
        os.close(fd)


class KeptFiles:
    """Kernel files of one record that are read again and again: kept open, a read takes 3 µs instead of 7.

    A file of /proc/PID stays that process's: when it has gone, the read fails, and whatever has its number now is
    opened in its place. At most `most` are kept open, the others are opened for each read.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: dict[str, int] = {}

    def __del__(self) -> None:
        self.keep(())

    def read(self, path: str, size: int = 4096) -> bytes | None:
        """Return what a single read(2) gives, None if the file cannot be read."""
        fd = self._open.get(path)
        if fd is None:
            if len(self._open) >= self._most:
                return read_once(path, size)
            try:
                fd = self._open[path] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                return None
        try:
            return os.pread(fd, size, 0)
        except OSError:
            os.close(self._open.pop(path))
            return read_once(path, size)

    def keep(self, paths: Container[str]) -> None:
        """Close all but these."""
        for path in [path for path in self._open if path not in paths]:
            os.close(self._open.pop(path))


def read_all(path: str, limit: int = MAX_FILE) -> bytes | None:
    """The whole file up to `limit` bytes, None if it cannot be read.

    The kernel hands out long files one page at a time, so this reads until nothing comes.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    chunks: list[bytes] = []
    try:
        while limit > 0 and (chunk := os.read(fd, min(_FIRST_READ, limit))):
            chunks.append(chunk)
            limit -= len(chunk)
    except OSError:
        return None
    finally:
        os.close(fd)
    return b"".join(chunks)


def read_from(path: str, offset: int, limit: int) -> bytes:
    """At most `limit` bytes of a file from byte `offset`; empty if there are none or it cannot be read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.pread(fd, limit, offset)
    except OSError:
        return b""
    finally:
        os.close(fd)


def read_int(path: str) -> int | None:
    """A file that holds one whole number; None for anything else, the word "max" included."""
    data = read_once(path, 64)
    try:
        return None if data is None else int(data)
    except ValueError:
        return None


def read_link(path: str) -> str | None:
    """Where a symbolic link points, None if it cannot be read."""
    try:
        return os.readlink(path)
    except OSError:
        return None


class Notes:
    """Messages for the user about what could not be read; each is returned once."""

    def __init__(self) -> None:
        self._said: set[str] = set()
        self._new: list[str] = []

    def say(self, text: str) -> None:
        """Remember `text` unless it was reported before."""
        if text not in self._said:
            self._said.add(text)
            self._new.append(text)

    def take(self) -> list[str]:
        """Return what was reported since the last call."""
        new, self._new = self._new, []
        return new
