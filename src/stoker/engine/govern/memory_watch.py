"""How tight memory is: what was read of it last, what running jobs may still take, and when to read it again.

Unaware of who decides on it, and of signals.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
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
"""Share of the budget from which on memory is in play: peaks of what runs, or what is in use."""

FRESH_SECONDS = 0.05
"""For how long a sample's reading of memory holds for the decisions of the same tick."""

KEPT_SECONDS, CHANGED_SECONDS = 5.0, 1.9
"""How long a promise is kept while there is plenty of memory, and no job comes or goes, or some do: what is expected
changes slowly, and working it out for 30 takes 3 ms, a third of what the engine does in a second (measured)."""


class MemoryPromise(NamedTuple):
    """Bytes that the jobs which were let go are expected to hold at most, and in each of OUTLOOK_SECONDS."""

    most: int = 0
    outlook: tuple[int, ...] = ()


class MemoryWatch:
    """Memory from one reading to the next. `read` gives the limit that binds now, given what the jobs hold."""

    def __init__(self, jobs: JobTable, level: LevelControl, read: Callable[[int], MemoryLimit]) -> None:
        self._jobs = jobs
        self._level = level
        self._read = read
        self._neighbours = NeighbourWatch()
        self.last = MemoryLimit("", 1, 0)
        """As read last for a decision."""
        self.sample: MachineSample | None = None
        self.ramdisk = SeenRamDisk()
        self._fresh_until = 0.0
        self._fresh_version = -1
        self._promise = MemoryPromise()
        self._promise_version = -1
        self._promise_at = -math.inf

    def read(self) -> MemoryLimit:
        """The limit that binds, read anew."""
        return self._read(self._jobs.held_bytes())

    def renew(self) -> MemoryLimit:
        """Read anew for a decision; not where a sample has just been taken and nobody stopped or let go since."""
        if self._jobs.version != self._fresh_version or time.monotonic() >= self._fresh_until:
            self.last = self.read()
        return self.last

    def see(self, sample: MachineSample) -> None:
        """Take up what the machine has for the build now."""
        self.sample = sample
        self.last = MemoryLimit(sample.memory_limit_source, sample.memory_budget, sample.memory_used)
        self._fresh_until, self._fresh_version = time.monotonic() + FRESH_SECONDS, self._jobs.version
        busy = bool(self._jobs.having(Life.RUNNING))
        self.ramdisk = self.ramdisk.after(sample.ramdisk, time.monotonic(), busy=busy)

    @property
    def reserve(self) -> float:
        """Bytes that are kept free of promises."""
        return self._level.limits.thresholds.reserve_of(self.last.limit)

    def tight(self) -> bool:
        """Whether memory is in play, by what was read of it last: then ticks are shorter."""
        line = TIGHT * self.last.limit
        if self.last.used > line or self._jobs.having(Life.FROZEN):
            return True
        return sum(max(self._jobs.curve(job).peak, job.rss) for job in self._jobs.having(Life.RUNNING)) > line

    def reading_pause(self) -> float:
        """Seconds after which to ask whether memory is `falling`; infinite while nothing runs that could take it."""
        running = len(self._jobs.having(Life.RUNNING))
        working = min(running, math.ceil(self._level.cores))
        return reading_pause(self.last.available, working) if running else math.inf

    def falling(self) -> bool:
        """Whether memory, read anew, has fallen so fast that jobs must be measured now."""
        return is_sudden(self.last.available, self.read().available)

    def promise(self, snapshot: Callable[[], View]) -> MemoryPromise:
        """What running and frozen jobs are expected to hold together, for the screens.

        A snapshot is taken only where the answer is worked out anew; decisions look for themselves.
        """
        now, version = time.monotonic(), self._jobs.version
        kept = KEPT_SECONDS if version == self._promise_version else CHANGED_SECONDS
        if now - self._promise_at >= kept or self.tight():
            view = snapshot()
            self._promise = MemoryPromise()
            if view.running or view.frozen:
                promised, crowd = Situation(view).promise, max(1.0, len(view.running) / self._level.cores)
                course = promised.course([seconds / crowd for seconds in OUTLOOK_SECONDS])
                self._promise = MemoryPromise(round(max(promised.mean)), tuple(map(round, course)))
            self._promise_version, self._promise_at = version, now
        return self._promise

    def stalls(self) -> list[ev.Noticed]:
        """That others stall on memory, if that is news; the line at which it is a stall is the one for starts."""
        if self.sample is None:
            return []
        return self._neighbours.look(self.sample, self.reserve, self._level.pressure_line, time.monotonic())
