"""Compilers that no scheduler started: what cargo, go or a setup.py without ninja runs by itself. Pure.

Unaware of the consequences, and of schedulers: it is used only while none runs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping

from stoker.sense.proc.phase import PASSES, is_wrapper
from stoker.sense.proc.processes import Process, start_wall

LASTING_SECONDS = 2.0
"""A younger one does not count: configure scripts try their compiler with files that take less."""

_MORE = re.compile(r"rustc|compile|clang(?:\+\+)?(?:-\d+)?|swift-frontend|ghc(?:-[\d.]+)?|javac|gnat1|ldc2|dmd|zig")
"""Compilers that are one process; `compile` is go's. As the kernel keeps names: 15 characters at most."""

_DRIVER = re.compile(r"(?:.*-)?(?:cc|c\+\+|gcc|g\+\+|clang(?:\+\+)?|gfortran|nvcc|hipcc)(?:-\d[\d.]*)?")
"""Programs that start compiler passes."""

_LINKERS = frozenset(("ld", "ld.gold", "ld.bfd", "ld.lld", "lld", "mold", "nvlink", "lto1"))

_WAITING = frozenset(("as", "collect2"))
"""Passes that wait at another one's pipe, or for it."""


def compilers(processes: Collection[Process], now: float) -> dict[str, int]:
    """How many of each run at Unix time `now` and have done so for a while, by the program's name."""
    found = [p for p in processes if p.state != "Z" and _compiles(p.comm)]
    parents = {p.ppid for p in found}
    return dict(
        Counter(
            p.comm for p in found if p.pid not in parents and now - start_wall(p.start_ticks, now) >= LASTING_SECONDS
        )
    )


def compilations(processes: Mapping[int, Process]) -> set[tuple[int, int]]:
    """Return the compilations among these processes, each by its outermost compiler process (pid, start): nvcc runs
    half a dozen passes for one."""
    found = (p for p in processes.values() if p.state != "Z" and p.comm not in _LINKERS and _compiles(p.comm))
    return {(p.pid, p.start_ticks) for p in (_outermost(pass_, processes) for pass_ in found)}


def _outermost(process: Process, processes: Mapping[int, Process]) -> Process:
    outermost, above, known = process, processes.get(process.ppid), {process.pid}
    while above is not None and above.pid not in known and (is_wrapper(above.comm) or _is_compiler(above.comm)):
        outermost = above if _is_compiler(above.comm) else outermost
        known.add(above.pid)
        above = processes.get(above.ppid)
    return outermost


def _is_compiler(comm: str) -> bool:
    return _compiles(comm) or _DRIVER.fullmatch(comm) is not None


def _compiles(comm: str) -> bool:
    return (comm in PASSES and comm not in _WAITING) or _MORE.fullmatch(comm) is not None
