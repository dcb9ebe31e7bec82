"""All processes of one job with what each of them does, read on request: a scan has no time for it.

Unaware of who asks, and of which processes are a job's: a scan has found those.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from pathlib import Path

from stoker.contract.process import Key
from stoker.model.job_tree import MAX_NAME, MAX_ROWS, Doing, ProcessRow, ProcessTree
from stoker.sense.commands.task import task_of
from stoker.sense.proc.jobs import JobUse
from stoker.sense.proc.processes import CLK_TCK, PROC, Process, children_of, parse_stat, read_cmdline, shared_pages
from stoker.sense.proc.procfs import read_once

_DOING: Mapping[str, Doing] = {"R": "running", "D": "kernel", "T": "stopped", "t": "stopped"}
"""What the kernel's letters mean (proc_pid_stat(5)); all others wait."""


def processes_of(use: JobUse, now: float | None = None, proc_root: Path = PROC) -> ProcessTree:
    """Return the processes that a scan has found of a job, as they are at Unix time `now`; without those that ended
    since.

    What a cache's server runs for the job comes last.
    """
    hosted = frozenset(key for tree in use.hosted for key in tree)
    found = _read({use.job.pid, *use.pids}, proc_root)  # no scan has found any of a newborn yet
    children = children_of(sorted(found.values(), key=lambda p: (p.start_ticks, p.pid)))
    rows: list[tuple[Process, int, bool]] = []
    roots = [(p, False) for p in found.values() if _key(p) == use.job.key]
    roots += [(p, True) for p in found.values() if _key(p) in hosted and p.ppid not in found]
    for root, elsewhere in roots:
        _walk(root, elsewhere, children, rows)
    shown = tuple(_row(process, depth, elsewhere, proc_root) for process, depth, elsewhere in rows[:MAX_ROWS])
    return ProcessTree(time.time() if now is None else now, shown, len(rows) - len(shown))


def _read(pids: Collection[int], proc_root: Path) -> dict[int, Process]:
    """Those that live, by pid."""
    read = (parse_stat(read_once(f"{proc_root}/{pid}/stat") or b"") for pid in pids)
    return {p.pid: p for p in read if p is not None and p.state not in "ZX"}


def _walk(
    root: Process, elsewhere: bool, children: Mapping[int, list[Process]], rows: list[tuple[Process, int, bool]]
) -> None:
    """Yield a process and all its descendants, each after its parent; one whose pid was reused is below nobody."""
    stack = [(root, 0)]
    while stack:
        process, depth = stack.pop()
        rows.append((process, depth, elsewhere))
        stack += [(child, depth + 1) for child in reversed(children.get(process.pid, ()))]


def _row(process: Process, depth: int, elsewhere: bool, proc_root: Path) -> ProcessRow:
    argv = read_cmdline(process.pid, proc_root)
    held = max(0, process.rss - shared_pages(process.pid, proc_root))
    name, doing = process.comm[:MAX_NAME], _DOING.get(process.state, "waiting")
    return ProcessRow(
        process.pid, depth, name, task_of(argv) if argv else "", held, process.cpu_ticks / CLK_TCK, doing, elsewhere
    )


def _key(process: Process) -> Key:
    return (process.pid, process.start_ticks)
