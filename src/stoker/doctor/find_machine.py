"""Reads what the machine gives a build: memory, control groups, file systems, limits. Unaware of what is enough."""

from __future__ import annotations

import os
import resource
import warnings
from collections.abc import Mapping

import psutil

from stoker.doctor.facts import Limits, Memory, Surroundings, Volume
from stoker.sense.machine.cgroup import find_cgroups
from stoker.sense.machine.cpu import cpu_available

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


def read_memory() -> Memory:
    """Return memory as a build started from here would have it. Raises OSError where the kernel does not say."""
    own = os.getpid()
    groups = find_cgroups(own)
    with warnings.catch_warnings(action="ignore"):  # of figures that a kernel lacks: none of these
        machine, swap = psutil.virtual_memory(), psutil.swap_memory()
    tighter = [limit for limit in groups.memory_limits() if limit.limit < machine.total]
    return Memory(
        total=machine.total,
        available=machine.available,
        swap_total=swap.total,
        swap_free=swap.free,
        cores=cpu_available(own, groups.cpu_quota()),
        limit=min(tighter, key=lambda limit: (limit.available, limit.limit), default=None),
        killed_as_one=str(groups.killed_as_one() or ""),
    )


def read_volumes(here: Surroundings) -> tuple[Volume, Volume]:
    """Return the file systems of the build folder and of the folder for intermediate files. Raises OSError."""
    return read_volume(here.need.build), read_volume(here.need.temporary)


def read_volume(folder: str) -> Volume:
    """Return the file system of a folder, or of its nearest parent that is there. Raises OSError."""
    real = os.path.realpath(folder)
    there = real
    while not os.path.isdir(there) and there != os.path.dirname(there):
        there = os.path.dirname(there)
    info = os.statvfs(there)
    read_only = bool(info.f_flag & os.ST_RDONLY)
    return Volume(
        folder=folder,
        exists=there == real,
        kind=_kind(there),
        size=info.f_blocks * info.f_frsize,
        free=info.f_bavail * info.f_frsize,
        inodes=info.f_favail if info.f_files else None,
        writable=not read_only and os.access(there, os.W_OK | os.X_OK),
        used_before=any(os.path.exists(f"{folder}/{name}") for name in _TRACES),
    )


def _kind(folder: str) -> str:
    """Name the type of the file system that holds a folder: the mount with the longest path, the last one of equals."""
    mounts = [mount for mount in psutil.disk_partitions(all=True) if _holds(mount.mountpoint, folder)]
    return max(reversed(mounts), key=lambda mount: len(mount.mountpoint)).fstype if mounts else ""


def _holds(point: str, folder: str) -> bool:
    return folder == point or folder.startswith(f"{point.rstrip('/')}/")


def read_limits() -> Limits:
    """Return the limits of this process, which a build started from here inherits."""
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
    """Count the processes of this user; the limit counts threads too, so this is the least that counts.

    0 where they cannot be counted, as with hardly any open files: the other limits are still worth a word.
    """
    try:
        owners = [process.info["uids"] for process in psutil.process_iter(["uids"])]
    except OSError:
        return 0
    return sum(owner is not None and owner.real == os.getuid() for owner in owners)
