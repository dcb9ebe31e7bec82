"""Compilers that no scheduler started: what cargo, go or a setup.py without ninja runs by itself. Pure.

Unaware of the consequences, and of schedulers: it is used only while none runs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection

from stoker.sense.proc.phase import PASSES
from stoker.sense.proc.processes import Process, start_wall

LASTING_SECONDS = 2.0
"""A younger one does not count: configure scripts try their compiler with files that take less."""

_MORE = re.compile(r"rustc|compile|clang(?:\+\+)?(?:-\d+)?|swift-frontend|ghc(?:-[\d.]+)?|javac|gnat1|ldc2|dmd|zig")
"""Compilers that are one process; `compile` is go's. As the kernel keeps names: 15 characters at most."""

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


def _compiles(comm: str) -> bool:
    return (comm in PASSES and comm not in _WAITING) or _MORE.fullmatch(comm) is not None
