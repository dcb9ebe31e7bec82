"""Which pass a job is in: the innermost process of its tree that does the work. Pure."""

from __future__ import annotations

from collections.abc import Collection

from stoker.sense.proc.processes import Process

PASSES = (
    *("cicc", "ptxas", "cudafe++", "fatbinary", "nvlink"),
    *("cc1plus", "cc1", "cc1obj", "f951", "lto1", "ld", "ld.gold", "ld.bfd", "ld.lld", "lld", "mold", "collect2", "as"),
)
"""Compiler and linker passes, the most telling first: `as` waits at a pipe while cc1plus works."""

_RANK = {name: len(PASSES) - rank for rank, name in enumerate(PASSES)}
_WRAPPERS = frozenset(
    ["sh", "bash", "dash", "ash", "ccache", "sccache", "distcc", "icecc", "env", "nice", "time", "timeout", "libtool"]
)


def is_wrapper(comm: str) -> bool:
    """Whether a program of this name only runs another one."""
    return comm in _WRAPPERS


def innermost(processes: Collection[Process]) -> Process | None:
    """The process that best says what the tree is doing: a known pass, else the youngest leaf that is no shell."""
    alive = [p for p in processes if p.state != "Z"]
    parents = {p.ppid for p in alive}
    return max(alive, key=lambda p: _telling(p, p.pid not in parents), default=None)


def phase_of(processes: Collection[Process]) -> tuple[str, int]:
    """That process's name (at most 15 characters, as the kernel keeps it) and pid; empty and 0 when nothing is left."""
    process = innermost(processes)
    return (process.comm, process.pid) if process is not None else ("", 0)


def _telling(process: Process, leaf: bool) -> tuple[int, int, bool, int, int]:
    return (
        _RANK.get(process.comm, 0),
        process.comm not in _WRAPPERS,
        leaf,
        process.start_ticks,
        process.pid,
    )
