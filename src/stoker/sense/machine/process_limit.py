"""How many more processes may be started: by the user's limit (ulimit -u), and the control groups around.

Unaware of what they are for. Both limits count threads.
"""

from __future__ import annotations

import os
import re
import resource
from pathlib import Path

from stoker.sense.machine.cgroup import find_cgroups
from stoker.sense.proc.processes import PROC
from stoker.sense.proc.procfs import read_once

_UNBOUND = 1 << 21 | 1 << 24
"""CAP_SYS_ADMIN and CAP_SYS_RESOURCE (capabilities(7)): with either of them ulimit -u does not bind."""

_REAL_UID = re.compile(rb"^Uid:\t(\d+)", re.MULTILINE)
_THREADS = re.compile(rb"^Threads:\t(\d+)", re.MULTILINE)
_CAPABILITIES = re.compile(rb"^CapEff:\t([0-9a-f]+)", re.MULTILINE)


def processes_left(proc_root: Path = PROC) -> int | None:
    """Return how many this process and its children may have in addition to all that exist now; None for no limit."""
    bounds = [*_left_to_user(proc_root), *find_cgroups(os.getpid(), proc_root).processes_left()]
    return max(0, min(bounds)) if bounds else None


def _left_to_user(proc_root: Path) -> list[int]:
    soft, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    if soft == resource.RLIM_INFINITY or _is_exempt(proc_root):
        return []
    statuses = (read_once(f"{proc_root}/{name}/status") or b"" for name in os.listdir(proc_root) if name.isdigit())
    own = (status for status in statuses if _number(_REAL_UID, status) == os.getuid())
    return [soft - sum(_number(_THREADS, status) or 0 for status in own)]


def _is_exempt(proc_root: Path) -> bool:
    """Root is, and who has the capability; but neither inside a user namespace, as a rootless container is one."""
    if (read_once(f"{proc_root}/self/uid_map") or b"").split() != [b"0", b"0", b"4294967295"]:
        return False
    held = _CAPABILITIES.search(read_once(f"{proc_root}/self/status") or b"")
    return os.getuid() == 0 or (held is not None and bool(int(held[1], 16) & _UNBOUND))


def _number(pattern: re.Pattern[bytes], status: bytes) -> int | None:
    found = pattern.search(status)
    return int(found[1]) if found is not None else None
