"""How tight memory is: the last reading, what running jobs may still take, and when to read again.

Unaware of who decides based on it, and of signals.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from stoker.decide.memory.alert import is_sudden, reading_pause
from stoker.decide.memory.ramdisk_growth import SeenRamDisk
from stoker.decide.policy.situation import Situation
from stoker.decide.policy.snapshot import View
from stoker.engine.govern.level_control import LevelControl
from stoker.engine.govern.neighbours import NeighbourWatch
from stoker.engine.jobs.managed_job import Life
from stoker.engine.jobs.table import JobTable
from stoker.model import events as ev
from stoker.model.samples import OUTLOOK_SECONDS, MachineSample
from stoker.sense.machine.cgroup import MemoryLimit

TIGHT = 0.5
"""Share of the budget above which memory is in play: by the peaks of running jobs, or by memory in use."""

FRESH_SECONDS = 0.05
"""For how long a sample's memory reading is valid for the decisions of the same tick."""

KEPT_SECONDS, CHANGED_SECONDS = 5.0, 1.9
"""How long a promise is kept while memory is plentiful, without and with jobs that come or go. Expectations change
slowly, and computing them for 30 jobs takes 3 ms, a third of what the engine does in a second (measured)."""


class MemoryPromise(NamedTuple):
    """Bytes that these released jobs are expected to hold at most, and at each of OUTLOOK_SECONDS."""

    most: int = 0
    outlook: tuple[int, ...] = ()
    jids: frozenset[int] = frozenset()


class MemoryWatch:
    """Memory from one reading to the next. `read` returns the limit that binds now, given what the jobs hold."""

    def __init__(self, jobs: JobTable, level: LevelControl, read: Callable[[int], MemoryLimit]) -> None:
        self._jobs = jobs
        self._level = level
        self._read = read
        self._neighbours = NeighbourWatch()
        self.last = MemoryLimit("", 1, 0)
        """The last reading made for a decision."""
        self.sample: MachineSample | None = None
        self.ramdisk = SeenRamDisk()
        self._fresh_until = 0.0
        self._fresh_version = -1
        self._promise = MemoryPromise()
        self._promise_version = -1
        self._promise_at = -math.inf

    def read(self) -> MemoryLimit:
        """Read the binding limit."""
        return self._read(self._jobs.held_bytes())

    def renew(self) -> MemoryLimit:
        """Read again for a decision, unless a sample has just been taken and nothing was stopped or released since."""
        if self._jobs.version != self._fresh_version or time.monotonic() >= self._fresh_until:
            self.last = self.read()
        return self.last

    def see(self, sample: MachineSample) -> None:
        """Take in what the machine has for the build now."""
        self.sample = sample
        self.last = MemoryLimit(sample.memory_limit_source, sample.memory_budget, sample.memory_used)
        self._fresh_until, self._fresh_version = time.monotonic() + FRESH_SECONDS, self._jobs.version
        busy = bool(self._jobs.having(Life.RUNNING))
        self.ramdisk = self.ramdisk.after(sample.ramdisk, time.monotonic(), busy=busy)

    @property
    def reserve(self) -> float:
        """Bytes that no promise may use."""
        return self._level.limits.thresholds.reserve_of(self.last.limit)

    def tight(self) -> bool:
        """Whether memory is in play, by the last reading: then ticks are shorter."""
        line = TIGHT * self.last.limit
        if self.last.used > line or self._jobs.having(Life.FROZEN):
            return True
        return sum(max(self._jobs.curve(job).peak, job.rss) for job in self._jobs.having(Life.RUNNING)) > line

    def reading_pause(self) -> float:
        """Seconds until `falling` should be asked again; infinite while nothing runs that could take memory."""
        running = len(self._jobs.having(Life.RUNNING))
        working = min(running, math.ceil(self._level.cores))
        return reading_pause(self.last.available, working) if running else math.inf

    def falling(self) -> bool:
        """Say whether memory, read again, has fallen so fast that jobs must be measured now."""
        return is_sudden(self.last.available, self.read().available)

    def promise(self, snapshot: Callable[[], View]) -> MemoryPromise:
        """Return what running and frozen jobs are expected to hold together, for the screens: without what waits on
        deck, which no promise is about.

        A snapshot is taken only if the answer must be computed; decisions take their own. While an answer is kept, jobs
        that have started since count with their peak.
        """
        now, version = time.monotonic(), self._jobs.version
        kept = KEPT_SECONDS if version == self._promise_version else CHANGED_SECONDS
        if now - self._promise_at >= kept or self.tight():
            self._promise = self._look_out(snapshot())
            self._promise_version, self._promise_at = version, now
        new = [job for job in self._jobs.having(Life.RUNNING) if job.jid not in self._promise.jids]
        return self._promise._replace(most=self._promise.most + sum(self._jobs.peak(job) for job in new))

    def _look_out(self, view: View) -> MemoryPromise:
        view = replace(view, candidates=())
        if not (view.running or view.frozen):
            return MemoryPromise()
        promised, crowd = Situation(view).promise, max(1.0, len(view.running) / self._level.cores)
        course = promised.course([seconds / crowd for seconds in OUTLOOK_SECONDS])
        jids = frozenset(job.jid for job in (*view.running, *view.frozen))
        return MemoryPromise(round(max(promised.mean)), tuple(map(round, course)), jids)

    def stalls(self) -> list[ev.Noticed]:
        """Announce that others stall on memory, if that is new; the threshold is the one for starts."""
        if self.sample is None:
            return []
        return self._neighbours.look(self.sample, self.reserve, self._level.pressure_line, time.monotonic())
