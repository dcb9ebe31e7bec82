"""Files that can be written when the disk is full: each has a spare one beside it that holds a block. Stdlib only.

Unaware of what is in them.
"""

import contextlib
import os

RESERVED_BYTES = 4096
"""A block of every usual file system; none of these files is longer, but for a build of many steps."""


def spare_of(path: str) -> str:
    """Return the file beside `path` that becomes it."""
    return path + ".new"


def reserve(path: str) -> None:
    """Take the room for `path`, private. Raises OSError where there is none."""
    fd = os.open(spare_of(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(fd, b" " * RESERVED_BYTES)
        os.fsync(fd)
    finally:
        os.close(fd)


def write_reserved(path: str, data: bytes, *, last: bool = False) -> None:
    """Replace `path`, whole or not at all, in its spare file's room; its own becomes the next spare, unless this is the
    `last` time. Raises OSError."""
    fd = os.open(spare_of(path), os.O_WRONLY | os.O_CREAT, 0o600)  # not O_TRUNC, which would give the block away
    try:
        written = 0
        while written < len(data):  # a disk that is nearly full takes a part, and then none
            written += os.write(fd, data[written:])
        os.ftruncate(fd, written)
        os.fsync(fd)
    finally:
        os.close(fd)
    if last:
        os.replace(spare_of(path), path)
        return
    before = path + ".old"
    with contextlib.suppress(OSError):
        os.link(path, before)
    os.replace(spare_of(path), path)
    with contextlib.suppress(OSError):
        if os.path.exists(before):
            os.replace(before, spare_of(path))
        else:
            reserve(path)


def withdraw(path: str) -> None:
    """Take the file away if it is there, and keep its room."""
    with contextlib.suppress(OSError):
        os.replace(path, spare_of(path))
