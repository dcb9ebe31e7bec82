"""Looks at how fast jobs grow by the clock, while memory would be short in a few seconds if none of them slept.

One more small read per process: 0.03 ms for a job of three. A machine with memory to spare does without, and so does
a job that keeps its core busy. Unaware of decisions.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from stoker.engine.govern.memory_watch import MemoryWatch
from stoker.engine.jobs.managed_job import Life
from stoker.engine.jobs.table import JobTable
from stoker.sense.proc.processes import Process
from stoker.sense.proc.task_times import task_times

SOON_SECONDS = 4.0
"""So long before memory could be used up the looks begin: they must go on for a second before they say anything."""

BUSY_PERCENT = 80.0
"""A job that has just used so much of its cores hardly slept."""


class GrowthWatch:
    """Measures the jobs whose growth may decide something."""

    def __init__(self, jobs: JobTable, memory: MemoryWatch) -> None:
        self._jobs = jobs
        self._memory = memory

    def look(self, processes: Mapping[int, Process]) -> None:
        """Look at them again; `processes` are those of the scan with which jobs have just been measured."""
        growing = [job for job in self._jobs.having(Life.RUNNING) if job.growth.rise]
        matters = sum([j.growth.rise * j.width for j in growing]) * SOON_SECONDS > self._memory.last.available
        for job in growing:
            pauses = job.seen.cpu_percent < BUSY_PERCENT * job.width
            tree = [processes[pid] for pid in job.seen.pids if pid in processes] if matters and pauses else []
            if tree and len(tree) == len(job.seen.pids):  # what a cache's server runs for it may be elsewhere
                job.growth.by_clock.note(time.monotonic(), job.rss, task_times(tree))
            else:
                job.growth.by_clock.forget()
