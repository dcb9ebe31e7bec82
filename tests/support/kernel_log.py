"""Whether this user may read the kernel's log: for tests of what only that log knows."""

from __future__ import annotations

import os

import pytest


def _readable() -> bool:
    try:
        os.close(os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK))
    except OSError:
        return False
    return True


needs_kernel_log = pytest.mark.skipif(not _readable(), reason="only root may read the kernel's log here")
