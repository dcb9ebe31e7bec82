"""Reads what the machine lets a build have: memory, control groups, file systems, limits. Unaware of what will do."""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Mapping, Sequence
from pathlib import Path

from stoker.doctor.facts import Limits, Memory, Surroundings, Volume
from stoker.sense.machine.cgroup import find_cgroups
from stoker.sense.machine.cpu import cpu_available
from stoker.sense.machine.machine import read_meminfo
from stoker.sense.machine.mounts import Mount, read_mounts
from stoker.sense.proc.processes import PROC

LIMITS: Mapping[str, int] = {
    "open files": resource.RLIMIT_NOFILE,
    "processes": resource.RLIMIT_NPROC,
    "stack": resource.RLIMIT_STACK,
    "locked memory": resource.RLIMIT_MEMLOCK,
    "file size": resource.RLIMIT_FSIZE,
    "address space": resource.RLIMIT_AS,
    "CPU time": resource.RLIMIT_CPU,
}
"""What getrlimit(2) knows, by the names that are shown."""

_TRACES = (".ninja_log", "CMakeCache.txt", "Makefile")
"""Files that a build folder has once a build has begun in it."""


def read_memory(pid: int | None = None, proc_root: Path = PROC) -> Memory:
    """Memory as a build started from here would have it. Raises OSError where the kernel does not tell."""
    info = read_meminfo(proc_root)
    if "MemTotal" not in info:
        raise OSError(f"{proc_root}/meminfo cannot be read")
    own = os.getpid() if pid is None else pid
    groups = find_cgroups(own, proc_root)
    total = info["MemTotal"]
    tighter = [limit for limit in groups.memory_limits() if limit.limit < total]
    return Memory(
        total=total,
        available=info.get("MemAvailable", info.get("MemFree", 0)),
        swap_total=info.get("SwapTotal", 0),
        swap_free=info.get("SwapFree", 0),
        cores=cpu_available(own, groups.cpu_quota()),
        limit=min(tighter, key=lambda limit: (limit.available, limit.limit), default=None),
        killed_as_one=str(groups.killed_as_one() or ""),
    )


def read_volumes(here: Surroundings) -> tuple[Volume, Volume]:
    """The file systems of the build folder and of the folder for intermediate files. Raises OSError."""
    mounts = read_mounts("self")
    return read_volume(here.need.build, mounts), read_volume(here.need.temporary, mounts)


def read_volume(folder: str, mounts: Sequence[Mount]) -> Volume:
    """The file system of a folder, or of its nearest parent that is there. Raises OSError."""
    real = os.path.realpath(folder)
    there = real
    while not os.path.isdir(there) and there != os.path.dirname(there):
        there = os.path.dirname(there)
    info = os.statvfs(there)
    read_only = bool(info.f_flag & os.ST_RDONLY)
    return Volume(
        folder=folder,
        exists=there == real,
        kind=_kind(there, mounts),
        size=info.f_blocks * info.f_frsize,
        free=info.f_bavail * info.f_frsize,
        inodes=info.f_favail if info.f_files else None,
        writable=not read_only and os.access(there, os.W_OK | os.X_OK),
        used_before=any(os.path.exists(f"{folder}/{name}") for name in _TRACES),
    )


def _kind(folder: str, mounts: Sequence[Mount]) -> str:
    """The type of the file system that holds a folder: the mount with the longest path, the last one of equals."""
    best = max(
        (mount for mount in mounts if _holds(mount.point, folder)), key=lambda mount: len(mount.point), default=None
    )
    same = [mount for mount in mounts if best is not None and mount.point == best.point]
    return same[-1].kind if same else ""


def _holds(point: str, folder: str) -> bool:
    return folder == point or folder.startswith(f"{point.rstrip('/')}/")


def read_limits() -> Limits:
    """The limits of this process, which a build started from here inherits."""
    pairs = {name: resource.getrlimit(number) for name, number in LIMITS.items()}
    return Limits(
        soft={name: _finite(soft) for name, (soft, _) in pairs.items()},
        hard={name: _finite(hard) for name, (_, hard) in pairs.items()},
        processes=_own_processes(),
        privileged=os.geteuid() == 0,
    )


def _finite(value: int) -> int | None:
    return None if value == resource.RLIM_INFINITY else value


def _own_processes() -> int:
    """Processes of this user; the limit counts threads too, so this is the least that counts."""
    own, count = os.getuid(), 0
    with contextlib.suppress(OSError), os.scandir(PROC) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                count += entry.name.isdecimal() and entry.stat().st_uid == own
    return count
