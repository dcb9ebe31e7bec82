"""How long each thread of some processes has been on a core, and has waited for one, by the kernel's own account.

Of a process that used little CPU it shows whether it got no more, or did not want more. Unaware of jobs.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from stoker.sense.proc.processes import PROC, Process
from stoker.sense.proc.procfs import read_once

MOST_THREADS = 64
"""Threads of one process that are read at most, one small read each: what has more is at work."""


def task_times(processes: Iterable[Process], proc_root: Path = PROC) -> dict[int, tuple[float, float]] | None:
    """Return the seconds on a core, and waiting for one, of each thread by its number; None if that is not known.

    The kernel counts them if it was built to (CONFIG_SCHED_INFO); otherwise the files are missing, or say 0.
    """
    times: dict[int, tuple[float, float]] = {}
    for process in processes:
        if process.nthreads > MOST_THREADS:
            return None
        for thread in _threads(process, proc_root):
            fields = (read_once(f"{proc_root}/{process.pid}/task/{thread}/schedstat", 128) or b"").split()
            if len(fields) == 3:  # otherwise it has just gone
                times[thread] = int(fields[0]) / 1e9, int(fields[1]) / 1e9
    return times if any(on for on, _ in times.values()) else None


def _threads(process: Process, proc_root: Path) -> list[int]:
    if process.nthreads == 1:
        return [process.pid]
    try:
        return [int(name) for name in os.listdir(f"{proc_root}/{process.pid}/task")]
    except OSError:
        return []
