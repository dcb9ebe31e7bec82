"""Opens regular files and nothing else: a FIFO may block its reader forever, and a device may have no end.

Unaware of their contents.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO


def open_regular(path: Path, *, follow_links: bool = False) -> BinaryIO:
    """Open a file to read. Raises OSError, also for what is not a regular file, and for a link that is not followed."""
    link = 0 if follow_links else os.O_NOFOLLOW
    try:
        # O_NONBLOCK: opening a FIFO without a writer would block forever.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | link)
    except OSError as err:
        raise (_refusal(path) if err.errno == errno.ELOOP else err) from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _refusal(path)
    return open(descriptor, "rb")


def _refusal(path: Path) -> OSError:
    return OSError(errno.EINVAL, "this is not a regular file", str(path))
