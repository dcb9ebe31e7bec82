"""Whether other programs keep the cores busy: then jobs take longer, and a place takes longer to become free.

Unaware of jobs, of memory and of who asks.
"""

from __future__ import annotations

from collections import deque

from stoker.model.samples import MachineSample

BUSY_PERCENT = 90.0
"""Use of the whole machine from which hardly any core is idle."""

SMALL_SHARE = 0.5
"""Share of the cores that it may use below which a build does not keep the machine busy by itself."""

SAMPLES = 5
"""Samples that must agree before the answer changes: a second says little."""


class CoreWatch:
    """Takes in each sample; the answer is in `taken`."""

    def __init__(self) -> None:
        self.taken = False
        self._latest: deque[bool] = deque(maxlen=SAMPLES)

    def see(self, machine: MachineSample, build_cpu: float | None) -> None:
        """Take in a sample; the build used `build_cpu` percent of one core, None if that is not known."""
        if build_cpu is None:
            return
        little = build_cpu < 100 * SMALL_SHARE * machine.cpu_available
        self._latest.append(little and machine.cpu_percent >= BUSY_PERCENT)
        if len(self._latest) == SAMPLES and len(set(self._latest)) == 1:
            self.taken = self._latest[0]
