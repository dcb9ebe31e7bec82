"""How much of the machine's load average is the build's own stopped jobs, which use no core.

A shell that is stopped while it starts a program waits in the kernel until that program goes on, and the kernel counts
whoever waits like that as load. Unaware of jobs and of the machine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from stoker.sense.proc.processes import Process

MINUTE = 60.0
"""Seconds over which the kernel smooths the load average that is shown."""


class HeldLoad:
    """Follows the number of such processes as the kernel's average of one minute does."""

    def __init__(self) -> None:
        self._average = 0.0
        self._at: float | None = None

    def measure(self, processes: Mapping[int, Process], now: float) -> float:
        """Return their share of the load at Unix time `now`: 0 at first."""
        parents = {p.ppid for p in processes.values() if p.state in "Tt"}
        waiting = sum([p.state == "D" for pid in parents if (p := processes.get(pid)) is not None])
        passed, self._at = 0.0 if self._at is None else max(0.0, now - self._at), now
        self._average += (waiting - self._average) * -math.expm1(-passed / MINUTE)
        return self._average
