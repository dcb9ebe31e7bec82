"""Finds out whether a launcher already talks to another machine or holds one of its slots: then it must not be stopped.

Knows no engine.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from stoker.sense.proc.processes import PROC
from stoker.sense.proc.procfs import read_link

_INHERITED = 3
"""Files below this number are inherited from the scheduler: its output may be a socket."""

MAX_FILES = 64

_SLOT = re.compile(r".*/lock/cpu_[^/]*")
"""The file whose lock is one of distcc's slots; a stopped client keeps it, and no other gets it."""


def in_exchange(pid: int, proc_root: Path = PROC) -> bool:
    """Return whether a launcher's process has a connection, or a slot's lock."""
    folder = f"{proc_root}/{pid}/fd"
    try:
        names = [name for name in os.listdir(folder) if int(name) >= _INHERITED]
    except (OSError, ValueError):
        return False
    links = (read_link(f"{folder}/{name}") or "" for name in names[:MAX_FILES])
    return any(link.startswith("socket:") or _SLOT.fullmatch(link) for link in links)
