"""Turns what the senses read into events: schedulers that come and go, jobs, plans, samples, failures.

Keeps what it needs to tell news from what is known. Unaware of the journal, of sockets and of decisions.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from stoker.contract.process import Key
from stoker.engine.aftermath.failures import Failures
from stoker.engine.govern.governor import Governor
from stoker.engine.jobs.deck import Birth
from stoker.engine.jobs.ninja_logs import Logs, Tracked
from stoker.engine.jobs.output_watch import OutputWatch
from stoker.engine.jobs.planner import Planner
from stoker.engine.jobs.recalled import remembered, remembered_use
from stoker.engine.jobs.scheduler_book import SchedulerBook
from stoker.engine.loop.sampler import Sampler
from stoker.engine.loop.steps import Roots
from stoker.model import events as ev
from stoker.model import state as state_of
from stoker.model.samples import JobSample
from stoker.model.state import BuildState
from stoker.model.tool import Tool
from stoker.sense.commands.frontends import builds_packages
from stoker.sense.commands.scheduler_args import ninja_arguments
from stoker.sense.machine.machine import MachineReader
from stoker.sense.proc.births import BirthWatch
from stoker.sense.proc.exits import ExitWatch
from stoker.sense.proc.jobs import Job, JobReport, JobTracker, JobUse
from stoker.sense.proc.processes import Process, ProcessTable, again, children_of, read_cmdline, start_wall
from stoker.sense.proc.schedulers import Scheduler, SchedulerFinder, Versions

UNREADY_SECONDS = 5.0
"""For how long a newborn is waited for that has not executed its command; one that shows none for longer has none."""

_Told = TypeVar("_Told", state_of.Job, state_of.Scheduler)


class Observer:
    """One look after the other at a build; each gives the events that are news."""

    def __init__(
        self,
        roots: Roots,
        state: BuildState,
        watched_until: float,
        output: Path,
        scratch: Path,
        machine: MachineReader,
        governor: Governor,
    ) -> None:
        """`watched_until`: the Unix time at which an engine last knew how the jobs of `state` were."""
        self._roots = roots
        self.planner = Planner(scratch)
        self._table = ProcessTable(roots.top)
        self._table.include(roots.build)
        self._finder = SchedulerFinder()
        self._tracker = JobTracker(resolve=self._resolve)
        self._versions = Versions()
        self._machine = machine
        self._governor = governor
        self._births = BirthWatch()
        self._unready: dict[int, Process] = {}
        self._exits = ExitWatch(self._exited)
        self._exited_at: dict[Key, float] = {}
        self.left: Callable[[int], None] = lambda _jid: None
        """Called when a job's process has ended, before its end is told."""
        self._output = OutputWatch(output, state)
        self.failures = Failures(self._output, governor)
        self.failures.is_recorded = self._is_recorded
        self._tracked: dict[Key, Tracked] = {}
        self._logs = Logs()
        self._jids: dict[Key, int] = {}
        self._last_look = watched_until
        self._next_sid = max(state.schedulers, default=0) + 1
        self._met_any = state.step is not None and state.step.schedulers > 0
        self._next_jid = state.last_jid + 1
        self._schedulers_before = {s.pid: s for s in state.schedulers.values() if s.ended is None}
        self._jobs_before = {job.pid: job for job in (*state.jobs.values(), *state.leaving.values())}
        self.sampler = Sampler(machine, roots.top, state.disk_written, orphaned=roots.top == roots.build)

        self._processes: Mapping[int, Process] = {}
        self._schedulers: Mapping[int, Scheduler] = {}

    # -- one look ----------------------------------------------------------------------------------------------

    def scan(self) -> None:
        """See what runs. Of every command that has a scheduler here the supervisor has told by now."""
        self._processes = self._build_processes()
        self._schedulers = self._finder.find(self._processes)

    async def look(self, now: float, *, sample: bool = True) -> list[ev.Event]:
        """What is new in the last scan, at Unix time `now`, since the last look; `sample`: with a sample of it all."""
        events = self._plans()
        processes, schedulers = self._processes, self._schedulers
        report = self._tracker.update(processes, schedulers, now)
        new = self._new_schedulers(schedulers, now)
        # Their jobs are held before anything is awaited: a wide ninja starts a hundred while another process answers.
        born = self._governor.receive([b for j in report.started if (b := self._birth(j, processes[j.pid]))], now)
        for tracked, parent in new:
            events.append(_started(tracked.book, await self._versions.read(tracked.book.scheduler.exe), parent))
        events += [*born, *self.births(now)]
        events += self._used(report)
        events += self._vanished_jobs(report)
        events += self._lost_between_engines()  # before ninja's records are read, which are theirs
        events += self._logs.read_all(self._tracked.values(), now, just_scanned=True)
        events += self._unrecorded(processes)
        events += self._output.percent(self.live_schedulers())
        events += self.read_output()
        events += self.failures.look(events, self.live_schedulers(), processes, now)
        events += self._ended_schedulers(schedulers, now)
        events += self._notes()
        if sample:
            events.append(self._sample(processes, schedulers, report, now))
        self._last_look = now
        return events

    def births(self, now: float) -> list[ev.Event]:
        """Jobs that were born since the last look, at Unix time `now`: the price of this is a small read."""
        schedulers = {t.book.scheduler.pid: t.book.scheduler for t in self._tracked.values()}
        unready, self._unready = self._unready, {}
        born = [*(p for p in map(again, unready.values()) if p is not None), *self._births.look(schedulers.keys())]
        births = []
        for process in born:
            scheduler = schedulers.get(process.ppid)
            if scheduler is None:
                continue
            argv = self._tracker.command_of(process, scheduler)
            if not argv and now - start_wall(process.start_ticks, now) < UNREADY_SECONDS:
                self._unready[process.pid] = process
            use = self._tracker.meet(process, scheduler, argv, now) if argv else None
            birth = self._birth(use.job, process) if use is not None else None
            if birth is not None and use is not None:
                self._tracked[scheduler.key].book.runs(birth.jid, use)
                births.append(birth)
        events = self._governor.receive(births, now)
        self.failures.note(events, now)
        return events

    @property
    def expecting(self) -> bool:
        """Whether a newborn was seen that has not executed its command yet."""
        return bool(self._unready)

    @property
    def births_due(self) -> bool:
        """Whether a scheduler may start a job now. A ninja starts none while it has as many as it may."""
        return any(t.book.may_start(self._governor.deck.living(t.book.sid)) for t in self._tracked.values())

    def spots_scheduler(self) -> bool:
        """Whether a scheduler runs that no look has found yet."""
        return any(s.key not in self._tracked for s in self._finder.find(self._build_processes()).values())

    def watch_below(self, pid: int) -> None:
        """Go on from another process, another supervisor's or, where there is none, the command's own."""
        self._table.root_pid = pid
        self._machine.pid = pid
        self.sampler.go_on_from(pid)

    def read_output(self, *, to_the_end: bool = False) -> list[ev.Event]:
        """What the build has written since."""
        return self.failures.read(self.live_schedulers(), time.time(), to_the_end=to_the_end)

    def finish(self, now: float) -> list[ev.Event]:
        """The build is over: the last records, and the failure of every job that vanished without one."""
        return self._last_of_command({}, now)

    def end_command(self, now: float) -> list[ev.Event]:
        """A command has ended, and another one may run already: the last of the one before. Scans anew."""
        self.scan()
        return self._last_of_command(self._schedulers, now)

    def watch_command(self, roots: Roots) -> None:
        """From now on this command is the one that runs."""
        self._roots, self._met_any = roots, False
        self._table.include(roots.build)
        self.failures.begin_command()

    def _last_of_command(self, living: Mapping[int, Scheduler], now: float) -> list[ev.Event]:
        events = self._plans()
        if not self._met_any:
            events += self._unseen_ninja()
        events += self.read_output(to_the_end=True)
        events += self._ended_schedulers(living, now)
        return events

    async def close(self) -> None:
        """End what runs in the background, and let go of the GPU driver."""
        await self.planner.close()
        self._exits.close()
        self._machine.close()

    def _build_processes(self) -> Mapping[int, Process]:
        """The tree without the engine itself and what the engine started."""
        held = self._governor.deck.having("on_deck")
        processes = dict(self._table.scan(pid for m in held for pid in self._tracker.still(m.job.key)))
        children = children_of(processes.values())
        own = [os.getpid()]
        while own:
            pid = own.pop()
            processes.pop(pid, None)
            own += [p.pid for p in children.get(pid, ())]
        return processes

    # -- schedulers --------------------------------------------------------------------------------------------

    def _new_schedulers(self, schedulers: Mapping[int, Scheduler], now: float) -> list[tuple[Tracked, int | None]]:
        """Open the books of all that are new; those the journal does not know, with the number of the outer one."""
        new: list[tuple[Tracked, int | None]] = []
        # The outer ones first: they have the lower start, and their numbers are what the inner ones refer to.
        for scheduler in sorted(schedulers.values(), key=lambda s: s.start_ticks):
            if scheduler.key in self._tracked:
                continue
            before = _taken(self._schedulers_before, scheduler.key)
            tracked = self._track(scheduler, before, start_wall(scheduler.start_ticks, now))
            if before is None:
                outer = schedulers.get(scheduler.parent) if scheduler.parent is not None else None
                parent = self._tracked.get(outer.key) if outer is not None else None
                new.append((tracked, parent.book.sid if parent else None))
        self.planner.make(self._tracked.values())
        self._governor.dear = any(tracked.dear for tracked in self._tracked.values())
        return new

    def _is_dear(self, scheduler: Scheduler) -> bool:
        """Whether pip or its like runs above it."""
        above = self._processes.get(scheduler.pid)
        while above is not None and (above := self._processes.get(above.ppid)) is not None:
            if builds_packages(read_cmdline(above.pid)):
                return True
        return False

    def _track(self, scheduler: Scheduler, before: state_of.Scheduler | None, started: float) -> Tracked:
        """Open a book: a new one, or the one that the journal tells of."""
        sid = before.sid if before is not None else self._next_sid
        self._next_sid = max(self._next_sid, sid + 1)
        self._met_any = True
        tracked = Tracked(SchedulerBook(sid, scheduler, started, before.finished_by_tool if before else None))
        tracked.dear = self._is_dear(scheduler)
        if scheduler.tool != "make":
            self._logs.open(tracked, scheduler, started)
            if before is not None and before.log_offset is not None and tracked.log is not None:
                tracked.log.resume(before.log_offset)
                tracked.met_log = True
        self._tracked[scheduler.key] = tracked
        return tracked

    def _ended_schedulers(self, schedulers: Mapping[int, Scheduler], now: float) -> list[ev.Event]:
        """Close the books of those that are gone, also of those that went while no engine was looking."""
        events = self._lost_between_engines()
        alive = {s.key for s in schedulers.values()}
        for key in [k for k in self._tracked if k not in alive]:
            events += self._close(self._tracked.pop(key), now)
        return events

    def _close(self, tracked: Tracked, now: float) -> list[ev.Event]:
        """The last records of a scheduler; a job without one has failed, if there were records at all."""
        if tracked.plan_task is not None:
            tracked.plan_task.cancel()
        lost = tracked.log is not None and tracked.log.lost
        events: list[ev.Event] = [
            *tracked.book.all_vanished(self._last_look, now),
            *self._logs.read(tracked, self._tracked.values(), now, just_scanned=True),
            *tracked.book.settle(at_once=True, unrecorded="unknown" if lost else "failed"),
            ev.SchedulerEnded(tracked.book.sid),
        ]
        if tracked.log is not None:
            tracked.log.close()
        return events

    def _unseen_ninja(self) -> list[ev.Event]:
        """A ninja that was over before the first look: its command line tells where its log is."""
        argv = self._roots.command
        if not argv or Path(argv[0]).name not in ("ninja", "samu"):
            return []
        arguments = ninja_arguments(argv)
        directory = str(Path(self._roots.cwd, arguments.directory or "."))
        scheduler = Scheduler(0, 0, "ninja", directory, "", argv, arguments.width, arguments.manifest, ())
        tracked = self._track(scheduler, None, self._roots.begun)
        return [_started(tracked.book, "", None)]

    def live_schedulers(self) -> list[SchedulerBook]:
        """The schedulers at work, in the order in which they were found."""
        return [t.book for t in self._tracked.values()]

    # -- jobs --------------------------------------------------------------------------------------------------

    def _resolve(self, scheduler: Scheduler, argv: tuple[str, ...]) -> tuple[str, Tool] | None:
        tracked = self._tracked.get(scheduler.key)
        plan = tracked.book.plan if tracked is not None else None
        return plan.output_of(argv) if plan is not None else None

    def _plans(self) -> list[ev.Event]:
        """Plans that have been made meanwhile, and the names that they give to jobs."""
        events = self.planner.take()
        return [n for e in events if (n := self._named(e) if isinstance(e, ev.JobStarted) else e) is not None]

    def _named(self, event: ev.JobStarted) -> ev.JobStarted | None:
        """None for a job whose end has been told: it must not come to life again."""
        member = self._governor.rename(event.jid, event.output, event.tool)
        return replace(event, state=member.state) if member is not None else None

    def _birth(self, job: Job, process: Process) -> Birth | None:
        """A new job's number, or the one that an engine before this one gave to the same process."""
        tracked = self._tracked.get(job.scheduler)
        before = _taken(self._jobs_before, job.key)
        jid = before.jid if before is not None else self._next_jid
        self._next_jid = max(self._next_jid, jid + 1)
        self._jids[job.key] = jid
        self._exits.watch(job.key)
        # Read again: what was read before its exec may be older than its process group.
        process = again(process) or process
        if tracked is None:
            return None
        return Birth(jid, tracked.book.sid, job, process, tracked.book.scheduler, before)

    def _exited(self, key: Key) -> None:
        self._exited_at[key] = time.time()
        self._governor.exited(key)
        if (jid := self._jids.get(key)) is not None:
            self.left(jid)

    def _used(self, report: JobReport) -> list[ev.Event]:
        """What the jobs use now, for their schedulers' books and for the governor."""
        uses = {self._jids[use.job.key]: use for use in report.running}
        for jid, use in uses.items():
            tracked = self._tracked.get(use.job.scheduler)
            if tracked is not None:
                tracked.book.runs(jid, use)
        return [*self._governor.set_carriers(report.nested), *self._governor.observe(uses)]

    def _vanished_jobs(self, report: JobReport) -> list[ev.Event]:
        events: list[ev.Event] = []
        for use in report.vanished:
            tracked = self._tracked.get(use.job.scheduler)
            jid = self._jids.pop(use.job.key)
            self._exits.forget(use.job.key)
            exited_at = self._exited_at.pop(use.job.key, None)
            self._governor.gone(jid)
            if exited_at is None:
                self.left(jid)
            if tracked is not None:
                seen, noticed = (self._last_look, time.time()) if exited_at is None else (exited_at, exited_at)
                events += tracked.book.vanished(jid, use, seen, noticed)
        return events

    def _unrecorded(self, processes: Mapping[int, Process]) -> list[ev.Event]:
        """Jobs that vanished, and for which ninja wrote no record although it had nothing to do but wait."""
        books = [t.book for t in self._tracked.values() if t.book.scheduler.pid in processes]
        asleep = [book for book in books if processes[book.scheduler.pid].state == "S"]

        def is_left(use: JobUse) -> bool:
            alive = (p for p in processes.values() if p.state != "Z")
            return any(p.pgrp == use.job.pid or p.pid in use.pids for p in alive)

        return [failed for book in asleep for failed in book.settle(at_once=False, is_left=is_left)]

    def _lost_between_engines(self) -> list[ev.Event]:
        """What the journal tells of and went while no engine was looking: records of its jobs may have come since."""
        events: list[ev.Event] = []
        for before in self._schedulers_before.values():
            self._track(remembered(before), before, before.started)
        self._schedulers_before.clear()
        books = {t.book.sid: t.book for t in self._tracked.values()}
        for job in self._jobs_before.values():
            book = books.get(job.sid)
            if book is not None:
                use = remembered_use(job, book.scheduler)
                self.left(job.jid)
                events += book.vanished(job.jid, use, self._last_look, time.time())
        self._jobs_before.clear()
        return events

    def read_logs(self, now: float) -> list[ev.Event]:
        """Jobs that ninja has recorded since."""
        return self._logs.read_all(self._tracked.values(), now, just_scanned=False)

    def _is_recorded(self, sid: int, output: str) -> bool:
        """Whether ninja itself says that this has ended well."""
        logs = [t.log for t in self._tracked.values() if t.book.sid == sid and t.log is not None]
        return any(log.holds(output, time.time()) for log in logs)

    # -- figures -----------------------------------------------------------------------------------------------

    def _notes(self) -> list[ev.Event]:
        notes = [*self._table.notes.take(), *self._machine.notes.take(), *self._exits.notes.take()]
        for tracked in self._tracked.values():
            if tracked.log is not None:
                notes += tracked.log.notes.take()
        return [ev.Noticed("warning", note) for note in notes]

    def _sample(
        self, processes: Mapping[int, Process], schedulers: Mapping[int, Scheduler], report: JobReport, now: float
    ) -> ev.Sampled:
        sample = self.sampler.sample(processes, now, jobs=self._governor.deck.held_bytes(), busy=bool(schedulers))
        self._governor.machine(sample.machine)
        sample = self._governor.promised(sample)
        size, read = self._output.size, self._output.settled
        return replace(sample, jobs=self._job_samples(report), log_size=size, log_read=read)

    def _job_samples(self, report: JobReport) -> tuple[JobSample, ...]:
        """Those on deck are left out: nothing changes there, and there may be hundreds."""
        waiting = {m.jid for m in self._governor.deck.having("on_deck")}
        return tuple(
            JobSample(jid, use.rss, use.cpu_percent, use.phase, use.state)
            for use in report.running
            if (jid := self._jids[use.job.key]) not in waiting
        )


def _started(book: SchedulerBook, version: str, parent: int | None) -> ev.SchedulerStarted:
    s = book.scheduler
    return ev.SchedulerStarted(book.sid, s.tool, s.pid, s.directory, version, s.width, parent, s.start_ticks)


def _taken(before: dict[int, _Told], key: Key) -> _Told | None:
    """What the journal tells of this very process, by its pid and start: clocks are set, and pids used again."""
    told = before.get(key[0])
    return before.pop(key[0]) if told is not None and told.start_ticks in (None, key[1]) else None
