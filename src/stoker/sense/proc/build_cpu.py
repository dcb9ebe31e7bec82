"""How much CPU the build's processes use together, including those that have ended in between.

Unaware of jobs and of the machine.
"""

from __future__ import annotations

from collections.abc import Mapping

from stoker.sense.proc.processes import CLK_TCK, Process


class BuildCpu:
    """Measures the build's CPU between two looks.

    A process's total passes to its parent when that has waited for it, so compilers that live for less than a look
    count too.
    """

    def __init__(self) -> None:
        self._before: tuple[float, int] | None = None
        self._seen: Mapping[int, Process] = {}

    def measure(self, processes: Mapping[int, Process], now: float) -> float | None:
        """Return the percent of one core used since the last call by these, at Unix time `now`; None at first."""
        ticks, by_present = 0, 0
        for pid, p in processes.items():
            ticks += p.cpu_ticks + p.child_ticks
            seen = self._seen.get(pid)
            if seen is not p:  # it has not slept since
                same = seen is not None and seen.start_ticks == p.start_ticks
                by_present += p.cpu_ticks - (seen.cpu_ticks if seen is not None and same else 0)
        before, self._before, self._seen = self._before, (now, ticks), processes
        if before is None or now <= before[0]:
            return None
        # A killed job may take its total with it, so that the sum falls. What the others did still counts.
        return round(100.0 * max(ticks - before[1], by_present, 0) / CLK_TCK / (now - before[0]), 1)
