"""A container as seen from one of its processes: its root folder, as it can be read from here, and its ID.

Unaware of the programs that start containers, and of what runs in them.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from stoker.sense.proc.processes import PROC
from stoker.sense.proc.procfs import read_all, read_link

_ID = re.compile(rb"[/-]([0-9a-f]{64})(?:\.scope)?(?:/|$)", re.MULTILINE)
"""Podman and docker name a container's control group by its 64 digits: /libpod_parent/libpod-ID, /docker/ID,
/machine.slice/libpod-ID.scope/container, /system.slice/docker-ID.scope."""

SHORT_ID = 12
"""Digits of an ID that podman and docker show."""


def root_of(pid: int, proc_root: Path = PROC) -> str:
    """Return the folder that is `/` for a process; empty if it is ours, or we may not read it.

    The process's own paths are valid below it, as long as the process lives.
    """
    link = f"{proc_root}/{pid}/root"
    root = read_link(link)
    if root is None:
        return ""
    apart = _namespace(pid, "mnt", proc_root) not in (None, _namespace("self", "mnt", proc_root))
    return link if apart or root != (read_link(f"{proc_root}/self/root") or "/") else ""


def container_of(pid: int, proc_root: Path = PROC) -> str:
    """Return the ID of the container that a process is in, by its control groups, in short; empty if it is in none."""
    ids = _ID.findall(read_all(f"{proc_root}/{pid}/cgroup") or b"")
    return ids[-1][:SHORT_ID].decode() if ids else ""


def _namespace(pid: int | str, kind: str, proc_root: Path) -> int | None:
    try:
        return os.stat(f"{proc_root}/{pid}/ns/{kind}").st_ino
    except OSError:
        return None
