"""The control groups around a process: their limits of memory, CPU and processes, and usage; versions 1, 2 and both.

Unaware of the machine's own memory. Follows a container's view: which root is mounted where decides which folders can
be read.
"""

from __future__ import annotations

import posixpath
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from stoker.sense.machine.mounts import Mount, read_mounts
from stoker.sense.proc.containers import root_of
from stoker.sense.proc.processes import PROC, parse_stat
from stoker.sense.proc.procfs import read_all, read_int, read_once

UNLIMITED = 2**60
"""A version 1 limit this high means none: the kernel writes 2**63 - 1 rounded down to a page."""


class MemoryLimit(NamedTuple):
    """A limit and what counts against it. `used` excludes inactive file cache that can be dropped at any time without
    being written to a disk first."""

    path: str
    limit: int
    used: int

    @property
    def available(self) -> int:
        """Bytes left of it."""
        return max(0, self.limit - self.used)


@dataclass(frozen=True, slots=True)
class Cgroups:
    """The folders of a process's control groups, innermost first, as far as they are visible."""

    memory_v1: tuple[Path, ...] = ()
    cpu_v1: tuple[Path, ...] = ()
    unified: tuple[Path, ...] = ()
    pids_v1: tuple[Path, ...] = ()

    @property
    def pressure_folder(self) -> Path | None:
        """The version 2 group of the process itself, which may have PSI files of its own."""
        return self.unified[0] if self.unified else None

    def own_pressure(self, top: int, proc_root: Path = PROC) -> bool:
        """Return whether nothing lives in `pressure_folder` except process `top` and its descendants.

        Only then its figures are the build's. The root of the hierarchy, which has no type, stands for the machine.
        """
        folder = self.pressure_folder
        return folder is not None and (folder / "cgroup.type").exists() and _is_own(folder, top, proc_root)

    def own_memory(self, top: int, proc_root: Path = PROC) -> Path | None:
        """Return the group that accounts for the memory of process `top` and its descendants, and of nothing else."""
        folders = [chain[0] for chain in (self.memory_v1, self.unified) if chain]
        return next((f for f in folders if (f / "memory.stat").exists() and _is_own(f, top, proc_root)), None)

    def memory_limits(self, among: Container[str] | None = None) -> list[MemoryLimit]:
        """Return every limit around the process, with its current usage; those of the folders `among` these, if
        given."""
        v1, v2 = ([f for f in chain if among is None or str(f) in among] for chain in (self.memory_v1, self.unified))
        return [*_limits_v1(v1), *(limit for limit in map(_memory_v2, v2) if limit is not None)]

    def killed_as_one(self) -> Path | None:
        """Return the outermost group that the kernel kills as a whole when it runs out of memory."""
        wide = (folder for folder in reversed(self.unified) if read_int(f"{folder}/memory.oom.group") == 1)
        return next(wide, None)

    def cpu_quota(self) -> float | None:
        """Return the tightest CPU quota in cores, None if there is none."""
        quotas = [_quota_v1(folder) for folder in self.cpu_v1] + [_quota_v2(folder) for folder in self.unified]
        return min((q for q in quotas if q is not None), default=None)

    def processes_left(self) -> list[int]:
        """Return how many more processes and threads each limit around the process allows."""
        pairs = [
            (read_int(f"{folder}/pids.max"), read_int(f"{folder}/pids.current"))
            for folder in (*self.pids_v1, *self.unified)
        ]
        return [limit - current for limit, current in pairs if limit is not None and current is not None]


def find_cgroups(pid: int, proc_root: Path = PROC) -> Cgroups:
    """Return the control groups of a process; empty ones if there are none or they are not visible."""
    memory: tuple[Path, ...] = ()
    cpu: tuple[Path, ...] = ()
    unified: tuple[Path, ...] = ()
    pids: tuple[Path, ...] = ()
    # Its paths are relative to our view, so search for them in the hierarchies that we see: a container hides its own.
    viewer = "self" if root_of(pid, proc_root) else pid
    mounts = [m for m in read_mounts(viewer, proc_root) if m.kind in ("cgroup", "cgroup2")]
    for controllers, path in _memberships(pid, proc_root):
        if not controllers:
            unified = _chain(path, (m for m in mounts if m.kind == "cgroup2"))
        elif "memory" in controllers:
            memory = _chain(path, (m for m in mounts if m.kind == "cgroup" and "memory" in m.options))
        elif "cpu" in controllers:
            cpu = _chain(path, (m for m in mounts if m.kind == "cgroup" and "cpu" in m.options))
        if "pids" in controllers:
            pids = _chain(path, (m for m in mounts if m.kind == "cgroup" and "pids" in m.options))
    return Cgroups(memory, cpu, unified, pids)


def memory_group(pid: int, proc_root: Path = PROC) -> str:
    """Return the path of the process's memory group as seen here; "" if it has none of its own, or it is hidden."""
    group = ""
    for controllers, path in _memberships(pid, proc_root):
        if "memory" in controllers or not (controllers or group):
            group = path
    return "" if ".." in group.split("/") else group.rstrip("/")


def held_in(folder: Path) -> int | None:
    """Return bytes that a memory group holds and could not release at once; None if it does not report them.

    These are anonymous memory, tmpfs, and file pages that are mapped or dirty.
    """
    stat = read_once(f"{folder}/memory.stat", 16384) or b""
    v1 = _field(stat, b"total_rss", -1) >= 0
    names = (b"total_rss", b"total_shmem", b"total_mapped_file") if v1 else (b"anon", b"shmem", b"file_mapped")
    anonymous, shared, mapped = (_field(stat, name, -1) for name in names)
    if anonymous < 0:
        return None
    shared = max(0, shared)
    return anonymous + shared + max(0, mapped - shared) + _unwritten(stat)


def _unwritten(stat: bytes) -> int:
    """Return bytes of a group's file pages that must be written to a disk before they can be dropped."""
    names = (b"total_dirty", b"total_writeback", b"file_dirty", b"file_writeback")
    return sum(_field(stat, name, 0) for name in names)


def _is_own(folder: Path, top: int, proc_root: Path) -> bool:
    pids = _members(folder)
    return bool(pids) and all(_is_below(pid, top, proc_root) for pid in pids)


def _members(folder: Path) -> list[int]:
    """Return the processes of a group and of all groups below it."""
    lists = [folder / "cgroup.procs", *folder.rglob("cgroup.procs")]
    return [int(pid) for file in dict.fromkeys(lists) for pid in (read_all(str(file)) or b"").split() if pid.isdigit()]


def _is_below(pid: int, top: int, proc_root: Path) -> bool:
    """Return whether a process is `top` or a descendant of it. One that has just ended belongs to nobody else."""
    while pid not in (top, 0, 1):
        process = parse_stat(read_once(f"{proc_root}/{pid}/stat") or b"")
        if process is None:
            return True
        pid = process.ppid
    return pid == top


def _memberships(pid: int, proc_root: Path) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the controllers of each hierarchy (none: version 2's), and the path of the process's group in it."""
    for line in (read_all(f"{proc_root}/{pid}/cgroup") or b"").decode(errors="surrogateescape").splitlines():
        _, _, rest = line.partition(":")
        names, colon, path = rest.partition(":")
        if colon:
            yield tuple(names.split(",")) if names else (), path


def _chain(path: str, mounts: Iterator[Mount]) -> tuple[Path, ...]:
    """Return the groups from the process's own up to the mount point.

    In a container the path may lie outside of what is mounted; then the mount point is the nearest known group.
    """
    mount = next(mounts, None)
    if mount is None:
        return ()
    top = Path(mount.point)
    below = _below(path, mount.root)
    folder = top / below if below is not None else top
    if not folder.is_dir():
        folder = top
    chain = [folder]
    while chain[-1] != top:
        chain.append(chain[-1].parent)
    return tuple(chain)


def _below(path: str, root: str) -> str | None:
    """Return the path relative to the mount's root, None if it is not below it."""
    path, root = posixpath.normpath(path), posixpath.normpath(root)
    if ".." in path.split("/"):
        return None
    if root == "/":
        return path.lstrip("/")
    if path == root:
        return ""
    return path[len(root) + 1 :] if path.startswith(root + "/") else None


def _limits_v1(chain: Iterable[Path]) -> Iterator[MemoryLimit]:
    """Yield those of the chain, innermost first, up to a group that reports no limit for itself and all above it.

    `hierarchical_memory_limit` includes limits of outer groups that a container cannot see.
    """
    for folder in chain:
        limit, stat = read_int(f"{folder}/memory.limit_in_bytes"), read_once(f"{folder}/memory.stat", 16384) or b""
        if limit is None:
            continue
        tightest = _field(stat, b"hierarchical_memory_limit", -1)
        if min(limit, tightest) >= UNLIMITED:
            return
        limit = min(limit, tightest) if tightest >= 0 else limit
        usage = read_int(f"{folder}/memory.usage_in_bytes")
        if usage is not None and limit < UNLIMITED:
            yield MemoryLimit(str(folder), limit, _in_use(usage, stat, b"total_inactive_file"))


def _memory_v2(folder: Path) -> MemoryLimit | None:
    """Return the limit of a group; memory.high too, beyond which the kernel throttles a build to a standstill."""
    limits = [read_int(f"{folder}/{name}") for name in ("memory.max", "memory.high")]
    limit = min((n for n in limits if n is not None), default=UNLIMITED)
    if limit >= UNLIMITED:
        return None
    usage = read_int(f"{folder}/memory.current")
    if usage is None:
        return None
    stat = read_once(f"{folder}/memory.stat", 16384) or b""
    return MemoryLimit(str(folder), limit, _in_use(usage, stat, b"inactive_file"))


def _in_use(usage: int, stat: bytes, inactive: bytes) -> int:
    return max(0, usage - max(0, _field(stat, inactive, 0) - _unwritten(stat)))


def _field(stat: bytes, name: bytes, default: int) -> int:
    start = (b"\n" + stat).find(b"\n" + name + b" ")
    if start < 0:
        return default
    try:
        return int(stat[start + len(name) + 1 :].partition(b"\n")[0])
    except ValueError:
        return default


def _quota_v1(folder: Path) -> float | None:
    quota, period = read_int(f"{folder}/cpu.cfs_quota_us"), read_int(f"{folder}/cpu.cfs_period_us")
    return quota / period if quota and period and quota > 0 and period > 0 else None


def _quota_v2(folder: Path) -> float | None:
    quota, _, period = (read_once(f"{folder}/cpu.max", 64) or b"").partition(b" ")
    try:
        return int(quota) / int(period)
    except (ValueError, ZeroDivisionError):
        return None
