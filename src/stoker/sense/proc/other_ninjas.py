"""A ninja that somebody else runs in a build's folder: both would write the same objects and the same log.

Unaware of what is done about it. Reads all processes' names, so it is asked when a scheduler is met, not at each tick.
"""

from __future__ import annotations

import os
from collections.abc import Container, Mapping
from pathlib import Path

from stoker.sense.commands.scheduler_args import ninja_arguments
from stoker.sense.proc.processes import PROC, Process, parse_stat, read_cmdline, read_cwd
from stoker.sense.proc.procfs import read_once

_NAMES = ("ninja", "ninja-build", "samu", "samurai")


def other_ninja(directory: str, ours: Container[int], proc_root: Path = PROC) -> int | None:
    """Return the pid of the eldest ninja that builds in `directory` and is none of `ours`, nor below one of them; None
    if there is none that can be seen: another user's folder cannot be read.

    A child that our own ninja has just forked is called ninja, too, and is younger than any list of ours.
    """
    try:
        names = [name for name in os.listdir(proc_root) if name.isdigit() and int(name) not in ours]
    except OSError:
        return None
    read = (read_once(f"{proc_root}/{name}/stat") for name in names)
    processes = {p.pid: p for p in (parse_stat(data) for data in read if data) if p is not None}
    others = [p for p in processes.values() if p.comm in _NAMES and not _is_below(p, ours, processes)]
    ninjas = [p for p in others if _builds_in(p, directory, proc_root)]
    return min(ninjas, key=lambda p: (p.start_ticks, p.pid)).pid if ninjas else None


def _is_below(process: Process, ours: Container[int], processes: Mapping[int, Process]) -> bool:
    seen = set()
    above: Process | None = process
    while above is not None and above.pid not in seen:
        if above.ppid in ours:
            return True
        seen.add(above.pid)
        above = processes.get(above.ppid)
    return False


def _builds_in(process: Process, directory: str, proc_root: Path) -> bool:
    if process.state == "Z":
        return False
    argv = read_cmdline(process.pid, proc_root)
    builds = bool(argv) and not ninja_arguments(argv).builds_nothing
    return builds and read_cwd(process.pid, proc_root) == directory
