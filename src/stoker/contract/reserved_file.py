"""Files that can be written when the disk is full: each has a spare file next to it that occupies a block. Stdlib only.

Unaware of their contents.
"""

import contextlib
import os

RESERVED_BYTES = 4096
"""A block of every common file system; none of these files is longer, except for a build with many steps."""


def spare_of(path: str) -> str:
    """Return the spare file that becomes `path`."""
    return path + ".new"


def reserve(path: str) -> None:
    """Reserve the space for `path`, private. Raises OSError if there is none."""
    fd = os.open(spare_of(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(fd, b" " * RESERVED_BYTES)
        os.fsync(fd)
    finally:
        os.close(fd)


def write_reserved(path: str, data: bytes, *, last: bool = False) -> None:
    """Replace `path`, completely or not at all, using its spare file; its old version becomes the next spare, unless
    this is the `last` time. Raises OSError."""
    fd = os.open(spare_of(path), os.O_WRONLY | os.O_CREAT, 0o600)  # not O_TRUNC, which would free the block
    try:
        written = 0
        while written < len(data):  # a disk that is nearly full accepts a part, and then nothing
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
    """Remove the file if it exists, and keep its space."""
    with contextlib.suppress(OSError):
        os.replace(path, spare_of(path))
