"""Says whether jobs that ended without a record were interrupted: their scheduler was killed, or the build is being
stopped.

A scheduler that ends by itself has waited for all its jobs. Unaware of records and of how jobs are found.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from stoker.contract.process import Key, death_signal, lives
from stoker.contract.supervisor_files import LeftOver
from stoker.engine.jobs.managed_job import STOPPED, ManagedJob


class Interruptions:
    """What the processes show of it, and what the supervisor has announced."""

    def __init__(self, stopping: Callable[[], bool], left_over: Callable[[], LeftOver | None]) -> None:
        self._stopping = stopping
        self._left_over = left_over

    def any_now(self) -> bool:
        """Say whether the build is being stopped."""
        return self._stopping()

    def cut_off(self, scheduler: Key, jobs: Collection[ManagedJob]) -> bool:
        """Say whether a scheduler that is gone could not wait for these jobs, which have no record.

        Of a scheduler that was killed, the kernel ends stopped jobs at once: it hangs up on their process groups.
        """
        keys = {job.job.key for job in jobs}
        # In this order: the supervisor announces what is left before it ends that, and before it reaps the command.
        if self._stopping() or any(lives(key) for key in keys) or death_signal(scheduler):
            return True
        if any(not job.doom and (job.was_stopped or job.life in STOPPED) for job in jobs):
            return True
        left = self._left_over()
        if left is None:
            return False
        return (left.command == scheduler and left.signal is not None) or not keys.isdisjoint(left.processes)
