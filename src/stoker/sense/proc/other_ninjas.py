"""A ninja that somebody else runs in a build's folder: both would write the same objects and the same log.

Unaware of what is done about it. Reads all processes' names, so it is asked when a scheduler is met, not at each tick.
"""

from __future__ import annotations

import os
from collections.abc import Container
from pathlib import Path

from stoker.sense.commands.scheduler_args import ninja_arguments
from stoker.sense.proc.processes import PROC, Process, parse_stat, read_cmdline, read_cwd
from stoker.sense.proc.procfs import read_once

_NAMES = ("ninja", "ninja-build", "samu", "samurai")


def other_ninja(directory: str, ours: Container[int], proc_root: Path = PROC) -> int | None:
    """Return the pid of the eldest ninja that builds in `directory` and is none of `ours`; None if there is none that
    can be seen: another user's folder cannot be read."""
    try:
        names = [name for name in os.listdir(proc_root) if name.isdigit() and int(name) not in ours]
    except OSError:
        return None
    read = (read_once(f"{proc_root}/{name}/stat") for name in names)
    ninjas = [
        p for p in (parse_stat(data) for data in read if data) if p is not None and _builds_in(p, directory, proc_root)
    ]
    return min(ninjas, key=lambda p: (p.start_ticks, p.pid)).pid if ninjas else None


def _builds_in(process: Process, directory: str, proc_root: Path) -> bool:
    if process.comm not in _NAMES or process.state == "Z":
        return False
    argv = read_cmdline(process.pid, proc_root)
    builds = bool(argv) and not ninja_arguments(argv).builds_nothing
    return builds and read_cwd(process.pid, proc_root) == directory
