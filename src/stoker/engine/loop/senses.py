"""What is read of the build's processes: the tree, its schedulers and jobs, births and exits.

Returns facts; keeps only what it needs to derive the next facts from the last ones. Stops no process and decides
nothing.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from stoker.contract.process import Key, start_ticks
from stoker.sense.commands.frontends import builds_packages
from stoker.sense.proc.births import BirthWatch
from stoker.sense.proc.exits import ExitWatch
from stoker.sense.proc.hosted_compilers import SERVER, Hosted
from stoker.sense.proc.jobs import JobReport, JobTracker, JobUse, Resolve
from stoker.sense.proc.other_ninjas import NINJAS
from stoker.sense.proc.processes import Process, ProcessTable, again, read_cmdline, start_wall
from stoker.sense.proc.schedulers import SchedulerFinder, SchedulerProcess

UNREADY_SECONDS = 5.0
"""How long to wait for a newborn to exec its command; one that has not done so by then has none."""


class Scan(NamedTuple):
    """The build's processes at one moment, and the schedulers among them, both by pid."""

    processes: Mapping[int, Process]
    schedulers: Mapping[int, SchedulerProcess]

    def is_in_package_build(self, scheduler: SchedulerProcess) -> bool:
        """Say whether pip or a similar builder runs above a scheduler."""
        above = self.processes.get(scheduler.pid)
        while above is not None and (above := self.processes.get(above.ppid)) is not None:
            if builds_packages(read_cmdline(above.pid)):
                return True
        return False


AWAY_SECONDS = 2.5
"""The longest normal time from one wait of the loop to an exit noticed in the next: two ticks plus the duration of a
tick. If it was longer, the engine was stopped or had no core, and the process may have ended at any time meanwhile."""


class Exit(NamedTuple):
    """A process that has ended between these two Unix times."""

    key: Key
    last_seen: float
    noticed: float


class Newborn(NamedTuple):
    """A scheduler's new job, as it was found."""

    use: JobUse
    process: Process
    scheduler: SchedulerProcess


class Senses:
    """The processes of one build. `resolve` knows outputs by command lines; `wake` is called when a job exits."""

    def __init__(self, top: int, build: int, resolve: Resolve, wake: Callable[[], None]) -> None:
        self._table = ProcessTable(top, noticed=NINJAS)
        self._table.include(build)
        self._finder = SchedulerFinder()
        self._tracker = JobTracker(resolve=resolve)
        self._births = BirthWatch()
        self._births_below = BirthWatch(by_pid=True)
        self._unready: dict[int, Process] = {}
        self._unready_hosted: list[Process] = []
        self._exit_watch = ExitWatch(self._exited)
        self._exits: list[Exit] = []
        self._waits = (math.inf, math.inf)
        self._wake = wake

    # -- where to read -----------------------------------------------------------------------------------------

    def watch_below(self, pid: int) -> None:
        """Continue from another process: another supervisor's or, without one, the command's own."""
        self._table.root_pid = pid

    def include(self, pid: int) -> None:
        """Another command's process belongs to the build."""
        self._table.include(pid)

    # -- the whole tree ----------------------------------------------------------------------------------------

    def scan(self, held: Iterable[Key] = ()) -> Scan:
        """Return the tree without the engine itself and what the engine started; `held` are jobs that wait on deck."""
        processes = dict(self._table.scan(pid for key in held for pid in self._tracker.still(key)))
        own = [os.getpid()]
        while own:
            for pid in own:
                processes.pop(pid, None)
            own = [p.pid for p in processes.values() if p.ppid in own]
        return Scan(processes, self._finder.find(processes))

    def take_outsiders(self) -> list[Process]:
        """Return processes called ninja that are not part of this build, as seen by scans since the last call."""
        return self._table.take_outsiders()

    def jobs(self, scan: Scan, now: float) -> JobReport:
        """Return the jobs of a scan of Unix time `now`."""
        return self._tracker.update(scan.processes, scan.schedulers, now)

    def spots_scheduler(self, known: Collection[Key]) -> bool:
        """Say whether a scheduler runs that no tick has found yet."""
        return any(s.key not in known for s in self.scan().schedulers.values())

    # -- between two scans -------------------------------------------------------------------------------------

    def newborns(self, schedulers: Mapping[int, SchedulerProcess], now: float) -> list[Newborn]:
        """Return the jobs that were born since the last call, at Unix time `now`: this costs one small read."""
        unready, self._unready = self._unready, {}
        born = [*(p for p in map(again, unready.values()) if p is not None), *self._births.look(schedulers.keys())]
        newborns = []
        for process in born:
            scheduler = schedulers.get(process.ppid)
            if scheduler is None:
                continue
            argv = self._tracker.command_of(process, scheduler)
            if not argv and now - start_wall(process.start_ticks, now) < UNREADY_SECONDS:
                self._unready[process.pid] = process
            use = self._tracker.newborn(process, scheduler, argv, now) if argv else None
            if use is not None:
                newborns.append(Newborn(use, process, scheduler))
        return newborns

    def born_below(self, parents: Collection[int]) -> tuple[list[tuple[Process, int]], list[Hosted]]:
        """Return the children of these processes that were born since the last call, each with its parent's start; and
        those of a cache's servers that work for jobs."""
        servers = self._tracker.server_pids()
        unready, self._unready_hosted = self._unready_hosted, []
        born = [*(p for p in map(again, unready) if p is not None), *self._births_below.look({*parents, *servers})]
        hosted = []
        for process in born:
            if process.ppid in servers:
                found = self._tracker.new_hosted(process)
                if found is not None:
                    hosted.append(found)
                elif process.comm == SERVER:  # it has not exec'ed its command yet
                    self._unready_hosted.append(process)
        below = [(p, start) for p in born if p.ppid not in servers and (start := start_ticks(p.ppid)) is not None]
        return below, hosted

    @property
    def expecting(self) -> bool:
        """Whether a newborn was seen that has not exec'ed its command yet."""
        return bool(self._unready)

    def watch_exit(self, key: Key) -> None:
        """Watch for the end of a process."""
        self._exit_watch.watch(key)

    def forget_exit(self, key: Key) -> None:
        """Stop watching: a scan has seen its end."""
        self._exit_watch.forget(key)

    @property
    def exits(self) -> int:
        """How many processes have ended since the last call of `take_exits`."""
        return len(self._exits)

    def take_exits(self) -> list[Exit]:
        """Return the processes that have ended since the last call."""
        exits, self._exits = self._exits, []
        return exits

    def listen(self, now: float) -> None:
        """The loop starts to wait at Unix time `now`: it notices exits from now on, and those since its last wait."""
        self._waits = (self._waits[1], now)

    def _exited(self, key: Key) -> None:
        noticed, listened = time.time(), self._waits[0]
        was_away = noticed - listened > AWAY_SECONDS
        self._exits.append(Exit(key, listened if was_away else noticed, noticed))
        self._wake()

    # -- the rest ----------------------------------------------------------------------------------------------

    def notes(self) -> list[str]:
        """Messages about what could not be read, each once."""
        return [*self._table.notes.take(), *self._exit_watch.notes.take()]

    def close(self) -> None:
        """Stop watching all processes."""
        self._exit_watch.close()
