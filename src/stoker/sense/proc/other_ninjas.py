"""Detects a foreign ninja in a build's folder: both would write the same objects and the same log.

Unaware of the consequences. `other_ninja` reads all processes, so it is called when a scheduler is found. One that
starts later is found by the scans of the build's own processes (`ProcessTable.take_outsiders`), without further reads,
and `eldest_in` says whether it is one.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Mapping
from pathlib import Path

from stoker.sense.commands.scheduler_args import ninja_arguments
from stoker.sense.proc.processes import PROC, Process, parse_stat, read_cmdline, read_cwd, read_exe
from stoker.sense.proc.procfs import read_once
from stoker.sense.proc.schedulers import is_interpreter

NINJAS = frozenset(("ninja", "ninja-build", "samu", "samurai"))
"""Process names that may belong to one."""


def other_ninja(directory: str, ours: Container[int], proc_root: Path = PROC) -> Process | None:
    """Return the oldest ninja that builds in `directory` and is neither one of `ours` nor below one; None if none is
    visible: another user's folder cannot be read.

    A child that our own ninja has just forked is called ninja, too, and is younger than any list of ours.
    """
    try:
        names = [name for name in os.listdir(proc_root) if name.isdigit() and int(name) not in ours]
    except OSError:
        return None
    read = (read_once(f"{proc_root}/{name}/stat") for name in names)
    processes = {p.pid: p for p in (parse_stat(data) for data in read if data) if p is not None}
    others = [p for p in processes.values() if p.comm in NINJAS and not _is_below(p, ours, processes)]
    return eldest_in(directory, others, proc_root)


def eldest_in(directory: str, processes: Iterable[Process], proc_root: Path = PROC) -> Process | None:
    """Return the one of these processes that has been building in `directory` for longest; None if none does."""
    eldest_first = sorted(processes, key=lambda p: (p.start_ticks, p.pid))
    return next((p for p in eldest_first if _builds_in(p, directory, proc_root)), None)


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
    if not argv or ninja_arguments(argv).builds_nothing or is_interpreter(read_exe(process.pid, proc_root) or ""):
        return False
    return read_cwd(process.pid, proc_root) == directory and _is_same_folder(process, directory, proc_root)


def _is_same_folder(process: Process, directory: str, proc_root: Path) -> bool:
    """Say whether the folder of this name, as the process sees it, is ours and not a container's of the same name."""
    try:
        return os.path.samefile(f"{proc_root}/{process.pid}/cwd", directory)
    except OSError:
        return False
