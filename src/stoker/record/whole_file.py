"""Writes a file that is there whole or not at all, whatever interrupts it. Unaware of what is in it."""

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
    """Give a file to write text to, which takes the place of `path` at the end, and on an error is gone.

    What is no regular file, as /dev/stdout, is written to directly. A new file is private. Raises OSError.
    """
    if path.exists() and not path.is_file():
        with path.open("w", encoding="utf-8", errors="backslashreplace") as out:
            yield out
        return
    target = path.resolve()  # a link stays one
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name[:100]}.", dir=target.parent)
    try:
        with open(descriptor, "w", encoding="utf-8", errors="backslashreplace") as out:
            with contextlib.suppress(FileNotFoundError):  # who may read it stays so
                os.fchmod(out.fileno(), stat.S_IMODE(target.stat().st_mode))
            yield out
        os.replace(name, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
