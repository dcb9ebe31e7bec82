"""The running schedulers, each with its book, its log and its plan.

Two ninjas may write one log one after the other (`ninja a && ninja b`); the start times implied by the records keep
them apart. Unaware of how processes are found, of decisions and of the journal.
"""

from __future__ import annotations

import os
import time
from collections.abc import Container, Iterator, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from stoker.contract.process import Key
from stoker.engine.jobs.interruptions import Interruptions
from stoker.engine.jobs.newborn import left_behind
from stoker.engine.jobs.scheduler_book import SchedulerBook
from stoker.engine.jobs.table import JobTable
from stoker.model import events as ev
from stoker.model import state as state_of
from stoker.model.state import BuildState
from stoker.model.tool import Tool
from stoker.sense.ninja.build_files import log_path
from stoker.sense.ninja.build_log import CLOCK_SLACK, Entry, NinjaLog
from stoker.sense.ninja.plan import Plan
from stoker.sense.proc.schedulers import SchedulerProcess


@dataclass(slots=True)
class Tracked:
    """A running scheduler, its book and its log.

    `knows_log`: all of the log before this run is known. `costly`: a package builder runs above it, which starts all
    over when a job has been ended.
    """

    book: SchedulerBook
    log: NinjaLog | None = None
    knows_log: bool = False
    costly: bool = False


class SchedulerTable:
    """All running schedulers, in the order in which they were found."""

    def __init__(self, jobs: JobTable, state: BuildState, interruptions: Interruptions) -> None:
        """`state` is what earlier engines have announced."""
        self._jobs = jobs
        self._interruptions = interruptions
        self._tracked: dict[Key, Tracked] = {}
        self._logs: dict[tuple[str, str], NinjaLog] = {}
        """By the container that each is in, if any, and its path there."""
        self._last_plans: dict[tuple[str, str, str], Plan] = {}
        """The last plan of each manifest whose ninja has ended."""
        self._next_sid = max(state.schedulers, default=0) + 1
        self._predecessors = {s.pid: s for s in state.schedulers.values() if s.ended is None}
        self.found_any = state.step is not None and state.step.schedulers > 0
        """Whether the current command has had a scheduler."""

    def __iter__(self) -> Iterator[Tracked]:
        return iter(self._tracked.values())

    def __contains__(self, key: Key) -> bool:
        return key in self._tracked

    def keys(self) -> Set[Key]:
        """Their processes."""
        return self._tracked.keys()

    def books(self) -> list[SchedulerBook]:
        """The books of all running schedulers."""
        return [tracked.book for tracked in self._tracked.values()]

    def by_pid(self) -> dict[int, SchedulerProcess]:
        """All running schedulers, by pid."""
        return {book.scheduler.pid: book.scheduler for book in self.books()}

    def contained(self) -> list[int]:
        """Those that run in containers, by pid."""
        return [pid for pid, scheduler in self.by_pid().items() if scheduler.root]

    def book(self, key: Key) -> SchedulerBook:
        """Return the book of a running scheduler; KeyError for any other."""
        return self._tracked[key].book

    def births_due(self) -> bool:
        """Say whether a scheduler may start a job now. A ninja starts none while it has as many as it may."""
        return any(book.may_start() for book in self.books())

    @property
    def costly(self) -> bool:
        """Whether a package builder runs above one of them."""
        return any(tracked.costly for tracked in self._tracked.values())

    def begin_command(self) -> None:
        """Another command runs now."""
        self.found_any = False

    # -- coming and going --------------------------------------------------------------------------------------

    def open(self, scheduler: SchedulerProcess, started: float, *, costly: bool = False) -> tuple[SchedulerBook, bool]:
        """Open the book of a scheduler that started at Unix time `started`; say whether it is new to the journal."""
        before = self._predecessors.get(scheduler.pid)
        if before is not None and before.start_ticks in (None, scheduler.start_ticks):
            del self._predecessors[scheduler.pid]
        else:
            before = None
        tracked = self._track(scheduler, before, started)
        tracked.costly = costly
        return tracked.book, before is None

    def _track(self, scheduler: SchedulerProcess, before: state_of.Scheduler | None, started: float) -> Tracked:
        sid = before.sid if before is not None else self._next_sid
        self._next_sid = max(self._next_sid, sid + 1)
        self.found_any = True
        counted = before.finished_by_tool if before is not None else None
        tracked = Tracked(SchedulerBook(sid, scheduler, started, self._jobs, counted))
        if scheduler.tool != "make":
            path = log_path(scheduler.directory, scheduler.manifest, scheduler.root)
            key = (scheduler.container or scheduler.root, path.removeprefix(scheduler.root))
            tracked.knows_log = key in self._logs  # an earlier ninja of this build has read the log up to here
            if key not in self._logs:
                self._logs[key] = NinjaLog(Path(path), hold=bool(scheduler.root))
            tracked.log = self._logs[key]
            tracked.log.begin_run(started, scheduler.manifest)
            if before is not None and before.log_offset is not None:
                tracked.log.resume(before.log_offset)
                tracked.knows_log = True
        self._tracked[scheduler.key] = tracked
        return tracked

    def take_up_lost(self, last_tick: float) -> None:
        """Close what the journal knows and what went while no engine ran: records of its jobs may have come since.

        The jobs have exited since the last tick of an engine, at Unix time `last_tick`.
        """
        for before in self._predecessors.values():
            self._track(_left_behind(before), before, before.started)
        self._predecessors.clear()
        books = {book.sid: book for book in self.books()}
        for before_job in self._jobs.lost_between_engines(books.keys()):
            job = left_behind(before_job, books[before_job.sid].scheduler, last_tick)
            self._jobs.add(job)
            self._jobs.exit(job.job.key, last_tick, time.time())

    def close(self, alive: set[Key], last_tick: float, now: float, reported: Container[str] = ()) -> list[ev.Event]:
        """Close the books of those that are no longer `alive`: their last records, and the jobs without one. The
        outputs in `reported` have failed, as the build's output says."""
        events: list[ev.Event] = []
        for key in [key for key in self._tracked if key not in alive]:
            events += self._close(self._tracked.pop(key), last_tick, now, reported)
        return events

    def _close(self, tracked: Tracked, last_tick: float, now: float, reported: Container[str]) -> list[ev.Event]:
        """A job without a record has failed, if there were any records, and if the scheduler could wait for it."""
        book = tracked.book
        if book.plan is not None:
            self._last_plans[_manifest_of(book.scheduler)] = book.plan
        lost = tracked.log is not None and tracked.log.lost
        open_jobs = [job for job in self._jobs.open_jobs(book.sid) if job.name not in reported]
        cut_off = self._interruptions.cut_off(book.scheduler.key, open_jobs)
        unrecorded: ev.JobOutcome = "interrupted" if cut_off else "unknown" if lost else "failed"
        book.end_all(last_tick, now)
        events: list[ev.Event] = [
            *book.end_unrecorded("interrupted" if cut_off else "unknown"),
            *self._read(tracked, now, just_scanned=True),
            *book.settle(at_once=True, unrecorded=unrecorded, reported=reported),
            ev.SchedulerEnded(book.sid),
        ]
        if tracked.log is not None and all(other.log is not tracked.log for other in self._tracked.values()):
            tracked.log.close()
            if book.scheduler.root:
                self._logs = {key: log for key, log in self._logs.items() if log is not tracked.log}
        return events

    # -- what they say -----------------------------------------------------------------------------------------

    def resolve(self, scheduler: SchedulerProcess, argv: tuple[str, ...]) -> tuple[str, Tool] | None:
        """Return the output and tool of a command line in the plan of a scheduler; None if the plan does not have
        it.

        Until there is a plan, that of an earlier ninja of the same manifest: a job keeps its name in the next attempt.
        """
        tracked = self._tracked.get(scheduler.key)
        plan = tracked.book.plan if tracked is not None else None
        plan = plan or self._last_plans.get(_manifest_of(scheduler))
        return plan.output_of(argv) if plan is not None else None

    def read_logs(self, now: float, *, just_scanned: bool) -> list[ev.Event]:
        """Return the jobs that ninja has recorded since the last reading."""
        events: list[ev.Event] = []
        for tracked in list(self._tracked.values()):
            if not just_scanned and not os.path.exists(f"/proc/{tracked.book.scheduler.pid}"):  # a few times a second
                continue  # The next ninja may already write this log; the tick that finds it keeps them apart.
            events += self._read(tracked, now, just_scanned=just_scanned)
        return events

    def _read(self, tracked: Tracked, now: float, *, just_scanned: bool) -> list[ev.JobFinished | ev.JobsUncounted]:
        log, book = tracked.log, tracked.book
        if log is None:
            return []
        if tracked.knows_log:
            entries, heir = log.read_new(), self._heir(tracked)
            cut = _end_of_run(entries, book.started, heir.started, now) if heir is not None else len(entries)
            finished = book.recorded(entries[:cut], just_scanned=just_scanned)
            return [*finished, *heir.recorded(entries[cut:], just_scanned=just_scanned)] if heir else finished
        tracked.knows_log = True
        first = log.first_read(book.started, now, book.scheduler.manifest)
        return book.recorded(first.this_run, just_scanned=just_scanned)

    def _heir(self, tracked: Tracked) -> SchedulerBook | None:
        """Return the ninja that writes this log now, after the tracked one."""
        books = [t.book for t in self._tracked.values() if t.log is tracked.log and t is not tracked]
        return next((b for b in books if b.started > tracked.book.started), None)

    def is_recorded(self, sid: int, output: str) -> bool:
        """Say whether ninja's log, read again, records the success of this output."""
        logs = [t.log for t in self._tracked.values() if t.book.sid == sid and t.log is not None]
        return any(log.holds(output, time.time()) for log in logs)

    def notes(self) -> list[str]:
        """Messages about logs that could not be read, each once."""
        return [note for t in self._tracked.values() if t.log is not None for note in t.log.notes.take()]


def _manifest_of(scheduler: SchedulerProcess) -> tuple[str, str, str]:
    """Return which manifest this is, also in a container."""
    return scheduler.container or scheduler.root, scheduler.directory, scheduler.manifest


def _left_behind(before: state_of.Scheduler) -> SchedulerProcess:
    """Return a scheduler of the journal that has ended meanwhile, as far as the journal knows it."""
    return SchedulerProcess(
        before.pid,
        before.start_ticks or -before.sid,
        before.tool,
        before.directory,
        "",
        (),
        before.width,
        "build.ninja",
        (),
    )


def _end_of_run(entries: Sequence[Entry], started: float, next_start: float, now: float) -> int:
    """Return how many of `entries`, read at Unix time `now`, belong to a ninja that started at `started` and come
    before those of the next one, which started at `next_start`.

    From 1.12 on ninja records when a command started, which reveals its own start: of two in quick succession, the one
    that it is nearer to. 1.11 records when it ended, so a long job would seem to come from a later ninja, which has not
    run for so long. Before that, all count for the first.
    """
    first_of_next = max(next_start - CLOCK_SLACK, (started + next_start) / 2)
    latest_end = (now - next_start + CLOCK_SLACK) * 1000
    starts = (e.mtime / 1e9 - e.start_ms / 1000 if e.end_ms <= latest_end else 0.0 for e in entries)
    return next((i for i, start in enumerate(starts) if start >= first_of_next), len(entries))
