"""Writes a file that appears completely or not at all, whatever interrupts it. Unaware of its contents."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[TextIO]:
    """Yield a file to write text to; it replaces `path` at the end, and is deleted on an error.

    Anything but a regular file, such as /dev/stdout, is written to directly. A new file is private. Raises OSError.
    """
    if path.exists() and not path.is_file():
        with path.open("w", encoding="utf-8", errors="backslashreplace") as out:
            yield out
        return
    target = path.resolve()  # a link stays a link
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name[:100]}.", dir=target.parent)
    try:
        with open(descriptor, "w", encoding="utf-8", errors="backslashreplace") as out:
            with contextlib.suppress(FileNotFoundError):  # keeps its permissions
                os.fchmod(out.fileno(), stat.S_IMODE(target.stat().st_mode))
            yield out
        os.replace(name, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
