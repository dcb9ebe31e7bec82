"""The disk behind a folder: its write rate and free space.

Unaware of who writes. Folders without a block device behind them (tmpfs, overlay, network) have no write rate.
"""

from __future__ import annotations

import os
from pathlib import Path

from stoker.sense.machine.mounts import read_mounts
from stoker.sense.proc.processes import PROC
from stoker.sense.proc.procfs import read_once

SYS = Path("/sys")
SECTOR = 512
"""Bytes of a sector in /sys/dev/block/*/stat, whatever the device's own sectors are (Documentation/block/stat.rst)."""
_SECTORS_WRITTEN = 6


class DiskReader:
    """Reads the write rate between two calls, of the one device that matters."""

    def __init__(self, folder: str, proc_root: Path = PROC, sys_root: Path = SYS) -> None:
        self._folder = folder
        self._sys = sys_root
        self._device = _block_device(folder, proc_root, sys_root)
        self._before: tuple[float, int] | None = None

    def write_rate(self, now: float) -> float | None:
        """Return bytes per second written to the device since the last call; None at first and if unknown."""
        written = self._written()
        if written is None:
            return None
        before, self._before = self._before, (now, written)
        if before is None or now <= before[0]:
            return None
        return max(0.0, (written - before[1]) / (now - before[0]))

    def free(self) -> int | None:
        """Return bytes that an ordinary user may still write there, None if the folder is gone."""
        try:
            info = os.statvfs(self._folder)
        except OSError:
            return None
        return info.f_bavail * info.f_frsize

    def _written(self) -> int | None:
        if self._device is None:
            return None
        fields = (read_once(f"{self._sys}/dev/block/{self._device}/stat") or b"").split()
        try:
            return int(fields[_SECTORS_WRITTEN]) * SECTOR
        except (IndexError, ValueError):
            return None


def _block_device(folder: str, proc_root: Path, sys_root: Path) -> str | None:
    """Return MAJOR:MINOR of the device under a folder, as /sys/dev/block names it."""
    try:
        device = os.stat(folder).st_dev
    except OSError:
        return None
    name = f"{os.major(device)}:{os.minor(device)}"
    if os.path.exists(f"{sys_root}/dev/block/{name}/stat"):
        return name
    # btrfs and similar file systems have their own number for st_dev, and the device as the mount's source.
    for mount in read_mounts("self", proc_root):
        if mount.device == name and mount.source.startswith("/dev/"):
            return _device_file(mount.source)
    return None


def _device_file(path: str) -> str | None:
    try:
        device = os.stat(path).st_rdev
    except OSError:
        return None
    return f"{os.major(device)}:{os.minor(device)}"
