"""How much CPU the build's processes use together, including those that have ended in between.

Unaware of jobs and of the machine.
"""

from __future__ import annotations

from collections.abc import Iterable

from stoker.sense.proc.processes import CLK_TCK, Process


class BuildCpu:
    """Measures the build's CPU between two looks.

    A process's total passes to its parent when that has waited for it, so compilers that live for less than a look
    count too.
    """

    def __init__(self) -> None:
        self._before: tuple[float, int] | None = None

    def measure(self, processes: Iterable[Process], now: float) -> float | None:
        """Return the percent of one core used since the last call, at Unix time `now`; None at first."""
        ticks = sum(p.cpu_ticks + p.child_ticks for p in processes)
        before, self._before = self._before, (now, ticks)
        if before is None or now <= before[0]:
            return None
        return round(100.0 * max(0, ticks - before[1]) / CLK_TCK / (now - before[0]), 1)
