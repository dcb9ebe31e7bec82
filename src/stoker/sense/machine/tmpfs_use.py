"""File systems in memory: which of them can take a build's temporary files, and how much one folder in one holds.

Unaware of builds and of who puts files there. The contents of a tmpfs count as used memory, in /proc/meminfo and in the
control group of the process that wrote them.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from stoker.model.samples import RamDisk
from stoker.model.units import format_bytes
from stoker.sense.machine.mounts import read_mounts
from stoker.sense.proc.procfs import Notes

DEFAULT_SHARE = 0.25
"""Share of the memory that a RAM disk may take if a profile sets no size: temporary files of a compiler are a small
part of its memory."""

LEAST_INODES = 10_000
"""Files that must fit: pip creates some thousands in TMPDIR for each package that it builds."""

MAX_ENTRIES = 4000
"""Entries read for one measurement: some ten milliseconds. If there are more files, only the file system's total is
read."""

ENTRIES_A_READ = 250
"""Entries that a measurement may cost on average, about a millisecond. If there are more, most measurements attribute
the change of the file system's total since the last count to the folder: nobody else writes much there."""

FULL = 0.95
"""Share of a file system in use above which compilers are about to fail."""


class Place(NamedTuple):
    """A tmpfs that we may write to: its mount point, its size and what is free (bytes)."""

    path: str
    size: int
    free: int
    runs_programs: bool
    inodes: int


class Choice(NamedTuple):
    """Where a RAM disk of `size` bytes goes; without a place `why` gives the reason and the remedy."""

    place: Place | None
    size: int
    why: str = ""


def choose(wanted: int | None, memory: int, environ: Mapping[str, str]) -> Choice:
    """Return a tmpfs with room for `wanted` bytes (None: a share of `memory`, which is what the build may use in
    all)."""
    size = wanted if wanted is not None else int(memory * DEFAULT_SHARE)
    if size >= memory:
        why = f"no RAM disk of {format_bytes(size)}: the build may use {format_bytes(memory)} of memory in all"
        return Choice(None, size, f"{why}, and a RAM disk is a part of it; make tmp.size smaller")
    found = places(environ)
    good = [p for p in found if p.runs_programs and p.free >= size and p.inodes >= LEAST_INODES]
    if good:
        return Choice(max(good, key=lambda p: p.free), size)
    return Choice(None, size, _why_none(found, size))


def places(environ: Mapping[str, str]) -> list[Place]:
    """Return the file systems in memory that this user may write to, each once. If the user has a TMPDIR, only that
    one."""
    names = [environ["TMPDIR"]] if environ.get("TMPDIR") else ["/dev/shm", "/tmp", environ.get("XDG_RUNTIME_DIR", "")]  # noqa: S108
    found: dict[int, Place] = {}
    for name in names:
        with contextlib.suppress(OSError):
            device = os.stat(name).st_dev
            if device not in found and is_in_memory(name) and os.access(name, os.W_OK | os.X_OK):
                found[device] = _place(name)
    return list(found.values())


def is_in_memory(folder: str) -> bool:
    """Say whether a folder is in a tmpfs; raises OSError if it does not exist."""
    device = os.stat(folder).st_dev
    name = f"{os.major(device)}:{os.minor(device)}"
    return any(mount.device == name and mount.kind == "tmpfs" for mount in read_mounts("self"))


class RamDiskReader:
    """Measures one folder of at most `size` bytes; nothing enforces that size."""

    def __init__(self, folder: str, size: int) -> None:
        self.notes = Notes()
        self._folder = folder
        self._size = size
        self._others = 0
        self._rest = 0

    def read(self) -> RamDisk | None:
        """Return what it holds now; None if it is gone."""
        self._rest -= 1
        try:
            info = os.statvfs(self._folder)
            counted = _held(self._folder) if self._rest < 0 else None
        except OSError:
            return None
        total = (info.f_blocks - info.f_bfree) * info.f_frsize
        if counted is not None:
            self._rest = counted.entries // ENTRIES_A_READ
            if counted.entries <= MAX_ENTRIES:
                self._others = max(0, total - counted.size)
        held = max(0, total - self._others)
        free = info.f_bavail * info.f_frsize if info.f_blocks else None
        self._warn(held, free, info.f_blocks * info.f_frsize)
        return RamDisk(self._folder, held, self._size, free)

    def _warn(self, held: int, free: int | None, whole: int) -> None:
        if held > self._size:
            self.notes.say(
                f"the RAM disk {self._folder} holds more than the {format_bytes(self._size)} that the profile allows; "
                "nothing can enforce that, and all of it counts as memory"
            )
        if free is not None and free < (1 - FULL) * whole:
            self.notes.say(
                f"{format_bytes(free)} are free in the file system of the RAM disk {self._folder}: compilers are about "
                "to fail with 'No space left on device'; remove what others have put there, or build without tmp"
            )


def _place(name: str) -> Place:
    info = os.statvfs(name)
    free = info.f_bavail * info.f_frsize if info.f_blocks else 2**62  # size=0 and nr_inodes=0 set no limit (tmpfs(5))
    inodes = info.f_favail if info.f_files else 2**62
    return Place(name, info.f_blocks * info.f_frsize, free, not info.f_flag & os.ST_NOEXEC, inodes)


def _why_none(found: list[Place], size: int) -> str:
    if not found:
        return f"no RAM disk of {format_bytes(size)}: there is no tmpfs to write to (/dev/shm is one on most machines)"
    each = ", ".join(f"{p.path} {_obstacle(p, size)}" for p in found)
    first = found[0]
    whole = -(-(first.size - first.free + size) // 2**20)
    more = f"as root: mount -o remount,exec,size={whole}M {first.path} (docker run: --tmpfs or --shm-size)"
    return f"no RAM disk of {format_bytes(size)}: {each}; {more}, or make tmp.size smaller"


def _obstacle(place: Place, size: int) -> str:
    if not place.runs_programs:
        return "runs no programs (noexec), and configure scripts need that"
    if place.free < size:
        return f"has {format_bytes(place.free)} free of {format_bytes(place.size)}"
    return f"has room for {place.inodes} more files only"


class _Held(NamedTuple):
    size: int
    entries: int


def _held(folder: str) -> _Held:
    """Return bytes and number of all files below a folder, up to MAX_ENTRIES and one. Raises OSError if it is gone."""
    total = entries = 0
    linked: set[int] = set()
    todo = [folder]
    while todo:
        for entry, about in _entries(todo.pop(), folder):
            entries += 1
            if entries > MAX_ENTRIES:
                return _Held(total, entries)
            if entry.is_dir(follow_symlinks=False):
                todo.append(entry.path)
            elif about.st_nlink == 1 or about.st_ino not in linked:
                linked.update([about.st_ino] if about.st_nlink > 1 else [])
                total += about.st_blocks * 512  # in units of 512 bytes whatever the file system (stat(2))
    return _Held(total, entries)


def _entries(folder: str, top: str) -> Iterator[tuple[os.DirEntry[str], os.stat_result]]:
    """Return the contents of a folder; what vanishes meanwhile is left out. Raises OSError if the top folder is
    gone."""
    try:
        entries = os.scandir(folder)
    except OSError:
        if folder == top:
            raise
        return
    with entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                yield entry, entry.stat(follow_symlinks=False)
