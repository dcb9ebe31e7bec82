"""One tick of the build: facts, then state, and the events of both.

Only newborns are decided about and held here, since they cannot wait; `Engine` lets the governor decide about all other
jobs after each tick. Unaware of the journal, of sockets, and of steps and attempts.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from stoker.contract.process import Key, lives
from stoker.decide.policy.calm import answer_pause
from stoker.engine.aftermath.failures import Failures
from stoker.engine.govern.gate_driver import GateDriver
from stoker.engine.govern.governor import Governor
from stoker.engine.govern.growth_watch import GrowthWatch
from stoker.engine.govern.level_control import LevelControl
from stoker.engine.govern.memory_watch import MemoryWatch
from stoker.engine.jobs.interruptions import Interruptions
from stoker.engine.jobs.managed_job import Life, ManagedJob
from stoker.engine.jobs.newborn import Birth, Clocks, by_age, managed
from stoker.engine.jobs.output_watch import OutputWatch
from stoker.engine.jobs.planner import Planner
from stoker.engine.jobs.remote_watch import RemoteWatch
from stoker.engine.jobs.scheduler_book import SchedulerBook
from stoker.engine.jobs.scheduler_table import SchedulerTable
from stoker.engine.jobs.table import JobExpectations, JobTable
from stoker.engine.learn.forecast import Forecast
from stoker.engine.loop.sampler import Sampler
from stoker.engine.loop.senses import Newborn, Scan, Senses
from stoker.engine.steps import Roots
from stoker.model import events as ev
from stoker.model.remote import NO_HOST_YET
from stoker.model.samples import JobSample
from stoker.sense.commands.scheduler_args import ninja_arguments
from stoker.sense.machine.machine import MachineReader
from stoker.sense.proc.hosted_compilers import Hosted
from stoker.sense.proc.jobs import JobReport, JobUse
from stoker.sense.proc.other_ninjas import eldest_in, other_ninja
from stoker.sense.proc.processes import Process, again, start_wall
from stoker.sense.proc.schedulers import SchedulerProcess, Versions


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts that a tick works with, one owner for each thing; `wiring` puts them together."""

    expected: JobExpectations
    machine: MachineReader
    senses: Senses
    sampler: Sampler
    jobs: JobTable
    schedulers: SchedulerTable
    planner: Planner
    forecast: Forecast
    output: OutputWatch
    failures: Failures
    level: LevelControl
    memory: MemoryWatch
    growth: GrowthWatch
    gate: GateDriver
    governor: Governor
    remote: RemoteWatch
    interruptions: Interruptions


REMOTE_SECONDS = 0.05
"""Seconds between two checks whether a job has moved to another machine, which frees its place, or compiles here after
all."""


class BuildLoop:
    """The ticks; each returns the new events."""

    def __init__(self, parts: Parts, roots: Roots, last_tick: float) -> None:
        """`last_tick` is when an engine last looked at the build, in Unix seconds."""
        self._parts = parts
        self._jobs, self._schedulers, self._senses = parts.jobs, parts.schedulers, parts.senses
        self._gate, self._governor, self._remote = parts.gate, parts.governor, parts.remote
        self.roots = roots
        """The command that runs."""
        self._last_tick = last_tick
        self._versions = Versions()
        self._scan = Scan({}, {})
        self._scanned = 0.0
        """When the last scan began, by the monotonic clock."""
        self._ended_since: set[int] = set()
        """The processes of jobs that have exited since then."""
        self._others: dict[str, Process] = {}
        """The foreign ninja that was last warned about, by the folder that both build in."""

    # -- the turn ----------------------------------------------------------------------------------------------

    def scan(self) -> None:
        """Scan the processes. The supervisor has announced the step of every command with a scheduler here."""
        self._scanned = time.monotonic()
        self._ended_since.clear()
        self._scan = self._senses.scan(job.job.key for job in self._jobs.on_deck())

    async def tick(self, now: float, *, whole: bool) -> list[ev.Event]:
        """Return what is new in the last scan, at Unix time `now`, and its consequences; `whole`: with a sample of
        everything."""
        scan, report = self._scan, self._senses.jobs(self._scan, now)
        self.take_exits()
        plans = self._plans()
        new = self._new_schedulers(scan)
        # Newborns are held before anything is awaited: a wide ninja starts a hundred while another process answers.
        born = self._receive(_newborns(scan, report), now)
        events = [*plans, *[await self._started(book, parent) for book, parent in new], *born, *self.births(now)]
        events += self._not_alone([book for book, _ in new], scan)
        events += self._measure(report, now)
        self._parts.growth.look(scan.processes)
        self.take_exits(report.vanished)
        events += self._ends(scan, now)
        percent = self._parts.output.percent(self._schedulers.books())
        events += self.read_output()
        events += self._parts.failures.look(events, self._schedulers.books(), scan.processes, now)
        events += self._schedulers_ended(scan.schedulers, now)
        running = {book.sid for book in self._schedulers.books()}
        events += [p for p in percent if p.sid in running]  # behind the ends that an ended make's status has decided
        events += self._notes()
        if whole:
            events += self._remote.news(now) if self._jobs.launched else []
            events.append(self._sample(scan, report, now))
        self._last_tick = now
        return events

    def births(self, now: float) -> list[ev.Event]:
        """Receive the jobs that were born since the last call, at Unix time `now`."""
        events = self._receive(self._senses.newborns(self._schedulers.by_pid(), now), now)
        self._parts.failures.note(events, now)
        return events

    def follow_remote(self, now: float) -> list[ev.Event]:
        """At Unix time `now`, between two ticks: find jobs that have become remote or work here after all, and the
        consequences."""
        if self.remote_pause() == math.inf:
            return []
        left = self._remote.glance(self._may_leave(), now)
        for job, host in left.items():
            self._jobs.send_away(job, host)
        away = {pid: job for job in self._jobs.away() for pid in (job.job.pid, *job.seen.pids)}
        born, hosted = self._senses.born_below(away)
        back = dict[ManagedJob, tuple[Key, ...]]()
        for process, start in born:
            job = away[process.ppid]
            if process.pid in away or not job.host:
                continue
            if job.host == NO_HOST_YET:
                self._jobs.bring_home(job)
            else:
                back[job] = job.seen.launchers or ((process.ppid, start),)
        back |= self._newly_hosted(hosted)
        events = self._take_back(back)
        return [*events, *self._governor.step()] if left or back else []

    def _newly_hosted(self, born: Iterable[Hosted]) -> dict[ManagedJob, tuple[Key, ...]]:
        """Return jobs for which a cache's server has just begun to compile here, with their launchers."""
        back = {}
        for hosted in born:
            job = self._jobs.by_key(hosted.job)
            if job is not None and job.host and job.lives and not hosted.prepares:
                self._gate.hosted.add(job, hosted.key)
                back[job] = job.seen.launchers
        return back

    def remote_pause(self) -> float:
        """Return the seconds to the next such check; infinite if no job is remote, nor frees a place by becoming so."""
        if not (self._jobs.launched and self._remote.engaged):
            return math.inf
        waiting = self._jobs.on_deck() or self._jobs.having(Life.FROZEN)
        return REMOTE_SECONDS if self._jobs.away() or (waiting and self._may_leave()) else math.inf

    def _may_leave(self) -> list[ManagedJob]:
        return [job for job in self._jobs.having(Life.RUNNING) if self._remote.may_leave(job)]

    def _take_back(self, jobs: Mapping[ManagedJob, tuple[Key, ...]]) -> list[ev.Event]:
        for job in jobs:
            self._remote.fell_back(job.was_away or job.host)
        return self._gate.take_back(jobs) if jobs else []

    def is_calm(self) -> bool:
        """Say whether births and ends may be answered a moment later. No log would report a make's job that came and
        went meanwhile."""
        keep_logs = all(book.keeps_log for book in self._schedulers.books())
        return keep_logs and not self._parts.failures.waits and self._governor.is_calm()

    def answer_pause(self, *, calm: bool) -> float:
        """Return the seconds within which an exit that was just noticed must be answered."""
        working = len(self._jobs.having(Life.RUNNING)) - self._senses.exits
        return answer_pause(working, self._parts.level.cores, calm=calm)

    def take_exits(self, vanished: Iterable[JobUse] = ()) -> int:
        """Mark the jobs that have exited, `vanished` from a scan or noticed since; return how many."""
        exits = self._senses.take_exits()
        jobs = [self._jobs.exit(key, last_seen, noticed) for key, last_seen, noticed in exits]
        for use in vanished:
            self._senses.forget_exit(use.job.key)
            jobs.append(self._jobs.exit(use.job.key, self._last_tick, time.time()))
        for job in jobs:
            if job is not None:
                self._ended_since.update(job.pids)
                self._gate.exited(job)
                self._credit(job)
        return sum(job is not None for job in jobs)

    def _credit(self, job: ManagedJob) -> None:
        """Find out whether an exited job was on another machine although no look has found it there."""
        if job.job.sends is None or job.ended or job.job.scheduler not in self._schedulers:
            return
        folder = self._schedulers.book(job.job.scheduler).scheduler.directory
        if host := self._remote.compiled_by(job, folder):
            self._jobs.credit(job, host)

    def read_logs(self, now: float) -> list[ev.Event]:
        """Return the jobs that ninja has recorded since the last reading."""
        return self._schedulers.read_logs(now, just_scanned=False)

    def read_output(self, *, to_the_end: bool = False) -> list[ev.Event]:
        """Return what the build has written since the last reading."""
        return self._parts.failures.read(self._schedulers.books(), time.time(), to_the_end=to_the_end)

    # -- commands that come and go -----------------------------------------------------------------------------

    def watch_below(self, pid: int) -> None:
        """Continue from another process: another supervisor's or, without one, the command's own."""
        self._senses.watch_below(pid)
        self._parts.machine.follow(pid)
        self._parts.sampler.go_on_from(pid)

    def watch_command(self, roots: Roots) -> None:
        """This is the command that runs from now on."""
        self.roots = roots
        self._senses.include(roots.build)
        self._schedulers.begin_command()
        self._parts.failures.begin_command()

    def end_command(self, now: float) -> list[ev.Event]:
        """A command has ended, and another one may already run: return the last events of the old one. Scans again."""
        self.scan()
        return self._last_of_command(self._scan.schedulers, now)

    def finish(self, now: float) -> list[ev.Event]:
        """The build is over: return the last records, and the failure of every job that exited without one."""
        return self._last_of_command({}, now)

    def _last_of_command(self, living: Mapping[int, SchedulerProcess], now: float) -> list[ev.Event]:
        self.take_exits()
        events = self._plans()
        if not self._schedulers.found_any:
            events += self._unseen_ninja()
        events += self.read_output(to_the_end=True)
        events += self._lost_between_engines()
        events += self._schedulers_ended(living, now)
        return events

    def _unseen_ninja(self) -> list[ev.Event]:
        """Take in a ninja that ended before the first tick: its command line shows where its log is."""
        argv = self.roots.command
        if not argv or Path(argv[0]).name not in ("ninja", "samu"):
            return []
        arguments = ninja_arguments(argv)
        directory = str(Path(self.roots.cwd, arguments.directory or "."))
        scheduler = SchedulerProcess(0, 0, "ninja", directory, "", argv, arguments.width, arguments.manifest, ())
        book, _ = self._schedulers.open(scheduler, self.roots.begun)
        return [_scheduler_started(book, "", None)]

    # -- schedulers --------------------------------------------------------------------------------------------

    def _new_schedulers(self, scan: Scan) -> list[tuple[SchedulerBook, int | None]]:
        """Open the books of all new schedulers; announce those that are not in the journal, with the number of the
        outer one."""
        new: list[tuple[SchedulerBook, int | None]] = []
        # Outer ones first: they started earlier, and the inner ones refer to their numbers.
        for scheduler in sorted(scan.schedulers.values(), key=lambda s: s.start_ticks):
            if scheduler.key in self._schedulers:
                continue
            costly = scan.is_in_package_build(scheduler)
            # Not by the tick's own time: if the machine stalled since, the start would seem so much earlier, and the
            # records of the run before would be taken for this one's.
            started = start_wall(scheduler.start_ticks, time.time())
            book, is_news = self._schedulers.open(scheduler, started, costly=costly)
            if is_news:
                outer = scan.schedulers.get(scheduler.parent) if scheduler.parent is not None else None
                is_inside = outer is not None and outer.key in self._schedulers
                new.append((book, self._schedulers.book(outer.key).sid if outer is not None and is_inside else None))
        self._parts.planner.make(self._schedulers.books())
        self._parts.machine.watch(self._schedulers.contained())
        self._governor.set_costly(costly=self._schedulers.costly)
        return new

    def _not_alone(self, new: Collection[SchedulerBook], scan: Scan) -> list[ev.Event]:
        """Warn about another user's or shell's ninja in a folder of this build, whichever started first."""
        outsiders, events = self._senses.take_outsiders(), list[ev.Event]()
        if not (outsiders or new):
            return []
        for book in self._schedulers.books():
            folder = book.scheduler.directory
            if book.scheduler.tool == "make" or book.scheduler.root:
                continue
            other = other_ninja(folder, scan.processes) if book in new else eldest_in(folder, outsiders)
            said = self._others.get(folder)
            if other is None or (said is not None and again(said) is not None):
                continue
            self._others[folder] = other
            events.append(ev.Noticed("warning", _other_text(other.pid, folder)))
        return events

    async def _started(self, book: SchedulerBook, parent: int | None) -> ev.Event:
        # A container's program is not ours to run.
        version = "" if book.scheduler.root else await self._versions.read(book.scheduler.exe)
        return _scheduler_started(book, version, parent)

    def _schedulers_ended(self, schedulers: Mapping[int, SchedulerProcess], now: float) -> list[ev.Event]:
        """Close the books of those that are gone."""
        alive = {s.key for s in schedulers.values()}
        self._parts.planner.cancel(t.book.sid for t in self._schedulers if t.book.scheduler.key not in alive)
        return self._schedulers.close(alive, self._last_tick, now, self._parts.failures.reported)

    def _lost_between_engines(self) -> list[ev.Event]:
        """Take in what went while no engine ran, and the ends that no record will report."""
        self._schedulers.take_up_lost(self._last_tick)
        self._parts.failures.name_lost(self._schedulers.books())
        outcome: ev.JobOutcome = "interrupted" if self._parts.interruptions.any_now() else "unknown"
        # How a scheduler ended that is gone, perhaps since the scan, decides about its jobs: see SchedulerTable.close.
        living = [book for book in self._schedulers.books() if lives(book.scheduler.key)]
        return [end for book in living for end in book.end_unrecorded(outcome)]

    # -- jobs --------------------------------------------------------------------------------------------------

    def _receive(self, newborns: Iterable[Newborn], now: float) -> list[ev.Event]:
        """Add new jobs, oldest first, and hold those that may not run."""
        births = [self._birth(newborn) for newborn in newborns]
        if not births:
            return []
        clocks = Clocks.now()
        jobs = [managed(birth, now, clocks, held=not self._gate.open) for birth in by_age(births)]
        for job in jobs:
            self._senses.watch_exit(job.job.key)
        return self._governor.receive(jobs)

    def _birth(self, newborn: Newborn) -> Birth:
        """Return a job with its number, and its process as it is now: what was read before its exec may be older than
        its process group."""
        use, process, scheduler = newborn
        jid, before = self._jobs.number(use.job.key)
        sid = self._schedulers.book(scheduler.key).sid
        return Birth(jid, sid, use, again(process) or process, scheduler, before)

    def _plans(self) -> list[ev.Event]:
        """Take in the plans that have been made, and the names that they give to jobs."""
        events: list[ev.Event] = []
        for book, plan, note in self._parts.planner.take():
            if note:
                events.append(ev.Noticed("info", note))
            if plan is not None:
                self._parts.forecast.planned(book.sid, plan)
                events += self._named(book)
                events += book.recount()
                after = plan.graph.recordable() if plan.graph is not None else ()
                events.append(ev.SchedulerPlanned(book.sid, plan.total, "dry-run", plan.summary.tools, after=after))
        return events

    def _named(self, book: SchedulerBook) -> list[ev.Event]:
        """Apply the names that a new plan gives to jobs; precautions may apply to them."""
        events = book.name_jobs()
        for event in events:
            if isinstance(event, ev.JobStarted) and (job := self._jobs.get(event.jid)) is not None:
                self._governor.name(job)
        return events

    def _measure(self, report: JobReport, now: float) -> list[ev.Event]:
        """Take in what the jobs use now, and where; correct those that are not in their intended state."""
        uses = {job: use for use in report.running if (job := self._jobs.by_key(use.job.key)) is not None}
        return [*self._gate.carry(report.nested), *self._locate(uses, now), *self._gate.correct(uses)]

    def _locate(self, uses: Mapping[ManagedJob, JobUse], now: float) -> list[ev.Event]:
        """Note which jobs another machine compiles at Unix time `now`; stop those that work here after all."""
        if not self._jobs.any_launched(uses.values()):
            return []
        hosts = self._remote.look(uses.values(), now)
        back: dict[ManagedJob, tuple[Key, ...]] = {}
        begun = [job for job, use in uses.items() if job.life is Life.ON_DECK and self._remote.has_begun(job, use)]
        for job, use in uses.items():
            if self._remote.has_engine(use.sends):
                self._gate.spare(job, use.launchers)
            host = hosts.get(use.job.key, "")
            if host and job.life is Life.RUNNING and (job.counts or job.host not in ("", host)):
                self._jobs.send_away(job, host)
            elif job.host and job.lives and (use.prepares or self._begins(job, use)):
                self._jobs.bring_home(job)
            elif job.host and job.lives and use.works_here:
                back[job] = use.launchers
        return [*self._take_back(back), *(event for job in begun for event in self._gate.thaw_one(job))]

    def _begins(self, job: ManagedJob, use: JobUse) -> bool:
        """Return whether a job that had waited for its first host has one, which may be this machine."""
        return job.host == NO_HOST_YET and use.works_here and not use.hosted

    def _ends(self, scan: Scan, now: float) -> list[ev.Event]:
        """Find out how jobs ended: by ninja's records, or because there is none although ninja only waits."""
        events = self._lost_between_engines()  # before reading ninja's records, which belong to them
        events += self._schedulers.read_logs(now, just_scanned=True)

        def is_left(job: ManagedJob) -> bool:
            alive = (p for p in scan.processes.values() if p.state != "Z")
            return any(p.pgrp == job.job.pid or p.pid in job.seen.pids for p in alive)

        unrecorded: ev.JobOutcome = "interrupted" if self._parts.interruptions.any_now() else "failed"
        reported = self._parts.failures.reported
        for book in self._schedulers.books():
            ninja = scan.processes.get(book.scheduler.pid)
            if ninja is not None and ninja.state == "S":
                events += book.settle(at_once=False, unrecorded=unrecorded, reported=reported, is_left=is_left)
        return events

    # -- figures -----------------------------------------------------------------------------------------------

    def _notes(self) -> list[ev.Event]:
        notes = [*self._senses.notes(), *self._parts.machine.notes.take(), *self._schedulers.notes()]
        return [ev.Noticed("warning", note) for note in notes]

    def _sample(self, scan: Scan, report: JobReport, now: float) -> ev.Sampled:
        """Measure the machine and the build, and use both for the decisions that follow."""
        parts, memory = self._parts, self._parts.memory
        held, busy = self._jobs.held_bytes(), bool(scan.schedulers)
        measured = parts.sampler.sample(scan.processes, now, jobs=held, busy=busy, ended=self._ended_since)
        parts.expected.set_cores(measured.machine.cpu_available)
        parts.level.set_cores(measured.machine.cpu_available)
        parts.level.core_watch.see(measured.machine, measured.cpu)
        memory.see(measured.machine)
        promise, growth = memory.promise(self._governor.snapshot), memory.ramdisk.growth
        return ev.Sampled(
            measured.machine,
            self._job_samples(report),
            measured.build_holds,
            measured.processes,
            measured.written,
            measured.activity,
            parts.output.size,
            promise.most,
            round(memory.reserve + growth),
            round(growth),
            parts.output.settled,
            measured.ungoverned,
            promise.outlook,
            measured.cpu,
            measured.compilations,
        )

    def _job_samples(self, report: JobReport) -> tuple[JobSample, ...]:
        """Jobs on deck are left out: nothing changes there, and there may be hundreds."""
        known = ((use, self._jobs.by_key(use.job.key)) for use in report.running)
        return tuple(
            JobSample(job.jid, use.rss, use.cpu_percent, use.phase, self._shown(job, use), job.host, _phase_pid(use))
            for use, job in known
            if job is not None and not (job.counts and job.life is Life.ON_DECK)
        )

    def _shown(self, job: ManagedJob, use: JobUse) -> Literal["running", "frozen"]:
        """Return the state that a job's processes show. What was released after they were read runs: it showed the
        deck."""
        return "running" if job.life is Life.RUNNING and job.since >= self._scanned else use.state


def _newborns(scan: Scan, report: JobReport) -> list[Newborn]:
    """Return jobs that a scan has found first."""
    uses: dict[Key, JobUse] = {use.job.key: use for use in report.running} if report.started else {}
    by_key: dict[Key, SchedulerProcess] = {scheduler.key: scheduler for scheduler in scan.schedulers.values()}
    processes: Mapping[int, Process] = scan.processes
    return [Newborn(uses[job.key], processes[job.pid], by_key[job.scheduler]) for job in report.started]


def _other_text(pid: int, folder: str) -> str:
    where = f"another ninja (pid {pid}) builds in {folder}, outside this build"
    return f"{where}: both write the same files; end one of them ('kill {pid}' ends the other)"


def _scheduler_started(book: SchedulerBook, version: str, parent: int | None) -> ev.SchedulerStarted:
    s = book.scheduler
    return ev.SchedulerStarted(
        book.sid, s.tool, s.pid, s.directory, version, s.width, parent, s.start_ticks, s.container, s.failures
    )


def _phase_pid(use: JobUse) -> int:
    """Return the process that works for a job, if that is not the job's own."""
    return use.phase_pid if use.phase_pid != use.job.key[0] else 0
