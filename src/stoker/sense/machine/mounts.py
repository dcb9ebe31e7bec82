"""The lines of /proc/PID/mountinfo. Unaware of what is mounted."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from stoker.sense.proc.processes import PROC
from stoker.sense.proc.procfs import read_all

_OCTAL = re.compile(rb"\\([0-7]{3})")


class Mount(NamedTuple):
    """A mount: `root` is the part of the file system that shows at `point`; `device` is MAJOR:MINOR."""

    device: str
    root: str
    point: str
    kind: str
    source: str
    options: frozenset[str]


def read_mounts(pid: int | str, proc_root: Path = PROC) -> list[Mount]:
    """Return what a process sees mounted (proc_pid_mountinfo(5)); empty if it cannot be read."""
    data = read_all(f"{proc_root}/{pid}/mountinfo") or b""
    return [m for line in data.splitlines() if (m := _mount(line)) is not None]


def _mount(line: bytes) -> Mount | None:
    mount_part, dash, right = line.partition(b" - ")
    before, after = mount_part.split(), right.split()
    if not dash or len(before) < 6 or len(after) < 2:
        return None
    options = after[2].split(b",") if len(after) > 2 else []
    return Mount(
        before[2].decode(),
        _text(before[3]),
        _text(before[4]),
        after[0].decode(errors="replace"),
        _text(after[1]),
        frozenset(o.decode(errors="replace") for o in options),
    )


def _text(field: bytes) -> str:
    return os.fsdecode(_OCTAL.sub(lambda m: bytes((int(m[1], 8) & 0xFF,)), field))
