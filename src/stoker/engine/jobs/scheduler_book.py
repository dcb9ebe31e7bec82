"""One scheduler's book: ninja's records, the job that each record belongs to, and the counts.

A job is finished when ninja records it in its log, and failed when it has exited and ninja never records it. Make keeps
no log: there an exit is the end. Unaware of processes and of the journal; a job's state is in the `JobTable`.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import replace

from stoker.engine.jobs.managed_job import EXITED, RUNNING, ManagedJob
from stoker.engine.jobs.record_clock import RecordClock
from stoker.engine.jobs.table import JobTable
from stoker.model import events as ev
from stoker.model.events import JobFinished, JobOutcome, JobsUncounted
from stoker.model.tool import Tool
from stoker.sense.commands.output_tool import tool_of_output
from stoker.sense.ninja.build_files import is_manifest
from stoker.sense.ninja.build_log import Entry
from stoker.sense.ninja.plan import Plan
from stoker.sense.proc.schedulers import SchedulerProcess

PATIENCE_TICKS = 3
"""For how many readings of a sleeping ninja's log an exited job waits for its record. Ninja writes it in the same loop
in which it notices the exit, so one is enough. A ninja that is stopped, or waits for a disk, may still write it."""

MAX_SPARE = 2000
"""Records kept of jobs that nobody saw, in case one belongs to a job whose end is noticed later: as many short jobs as
end on a large machine while an engine is stopped for some seconds."""

MAX_FIRST = 1000
"""Jobs remembered from a ninja's start until its plan says which of them only regenerated its manifest."""


class SchedulerBook:
    """What ninja has recorded of one scheduler's jobs, and how many there are in all."""

    def __init__(
        self,
        sid: int,
        scheduler: SchedulerProcess,
        started: float,
        jobs: JobTable,
        counted: Mapping[str, int] | None = None,
    ) -> None:
        """`counted` are the jobs that an earlier engine has counted, by tool."""
        self.sid = sid
        self._jobs = jobs
        self._counted: Counter[str] = Counter(counted or {})
        self.finished = self._counted.total()
        self.scheduler = scheduler
        self.started = started
        self.plan: Plan | None = None
        self.total: int | None = None
        """How many jobs it has in all, by its plan or by a later total of its own."""
        self.said_total: int | None = None
        """What the last status line said, before any plan confirms it."""
        self.plan_is_due = False
        """Whether a plan is in progress."""
        self._waiting: list[Entry] = []
        self._spare: deque[Entry] = deque(maxlen=MAX_SPARE)
        self._first: list[tuple[str, str]] = []
        self._clock = RecordClock(started, scheduler.manifest)
        self.errors = 0

    @property
    def keeps_log(self) -> bool:
        """Whether it records finished jobs in a .ninja_log."""
        return self.scheduler.tool != "make"

    @property
    def present(self) -> int:
        """How many of its jobs have a process, running or held."""
        return sum(job.life is not EXITED for job in self._jobs.open_jobs(self.sid))

    def may_start(self) -> bool:
        """Say whether it may start a job now. Make runs some without a place for them.

        Not if the plan has no more jobs than those that are alive; if the plan is outdated, the next tick finds new
        ones.
        """
        if not self.keeps_log:
            return True
        live, width, total = self._jobs.living(self.sid), self.scheduler.width, self.total
        return (width is None or live < width) and (total is None or self.finished + live < total)

    def take_plan(self, plan: Plan) -> None:
        """Take in a plan."""
        self.plan = plan
        self.total = plan.total if plan.total is not None else self.total

    def name_jobs(self) -> list[ev.Event]:
        """Give live jobs the names that they have in the plan."""
        events: list[ev.Event] = []
        for job in self._jobs.open_jobs(self.sid) if self.plan is not None else ():
            planned = self.plan.output_of(job.job.argv) if self.plan is not None else None
            if planned is not None:
                events += self._jobs.rename(job, *planned)
        return events

    def name_lost(self, reported: Mapping[str, str]) -> None:
        """Name jobs that ended while no engine ran, if the output has reported their failure since.

        Without a plan the journal knows such a job by a few words of its command, and its process is gone. `reported`
        maps these words of each failed command to its output.
        """
        for job in self._nameless():
            if not job.job.argv and (output := reported.get(job.name)) is not None:
                self._jobs.rename(job, output, job.tool)

    def recount(self) -> list[JobsUncounted]:
        """Return what was counted before the plan showed that it only regenerated the manifest."""
        renewing = self.plan.summary.renewing if self.plan is not None else ()
        wrong = Counter[str](tool for output, tool in self._first if output in renewing)
        self._first.clear()
        return self._uncount(wrong)

    def _uncount(self, tools: Counter[str]) -> list[JobsUncounted]:
        self._counted -= tools
        self.finished -= tools.total()
        return [JobsUncounted(self.sid, dict(tools))] if tools else []

    def is_known(self, output: str) -> bool:
        """Say whether the plan has an edge of that name. A job that is named after its command may be any edge."""
        return self.plan is not None and self.plan.is_edge(output)

    def lacks_record_of(self, output: str) -> bool:
        """Say whether a job that makes `output` has exited and ninja has not recorded its success."""
        return any(job.name == output for job in self._jobs.exited(self.sid))

    def end_unrecorded(self, outcome: JobOutcome = "unknown") -> list[JobFinished]:
        """Return the ends of exited jobs of a make, which records nothing."""
        return [] if self.keeps_log else [self._lose(job, outcome) for job in self._jobs.exited(self.sid)]

    def end_all(self, last_seen: float, noticed: float) -> None:
        """Note that the scheduler was gone at Unix time `noticed`, and with it the jobs that ran at the tick at
        `last_seen`."""
        for job in list(self._jobs.open_jobs(self.sid)):
            self._jobs.exit(job.job.key, last_seen, noticed)

    def recorded(self, entries: Iterable[Entry], *, just_scanned: bool) -> list[JobFinished | JobsUncounted]:
        """Match ninja's records of successful jobs with the jobs that were seen.

        A record that may belong to a nameless job, or to one that was stopped when last seen, waits for the next scan,
        and so do the records after it, which keeps their order: if it belongs to that job, the job will have exited by
        then.
        """
        finished: list[JobFinished | JobsUncounted] = []
        if just_scanned:
            waiting, self._waiting = self._waiting, []
            finished += [event for entry in waiting for event in self._recorded(entry)]
        for entry in entries:
            if self._waiting or (self._by_output(entry) is None and self._may_be_later(entry)):
                self._waiting.append(entry)
            else:
                finished += self._recorded(entry)
        return finished

    def _may_be_later(self, entry: Entry) -> bool:
        """Say whether the next scan may find that the job of this record has exited."""
        present = [job for job in self._jobs.open_jobs(self.sid) if job.life is not EXITED]
        return any(not job.name or job.name == entry.output for job in present)

    def _recorded(self, entry: Entry) -> list[JobFinished | JobsUncounted]:
        """Count one record's job; not if it regenerated the manifest, nor what was counted before that."""
        self._clock.pass_record(entry)
        job = self._by_output(entry)
        if job is None:
            job = self._by_times(entry)
        else:
            self._clock.pair(entry, job.job.started)
        self._clock.leave_record(entry)
        tool = job.tool if job is not None else self._tool_of(entry.output)
        regenerated = is_manifest(entry.output, self.scheduler.manifest)
        counted = not regenerated and (self.plan is None or entry.output not in self.plan.summary.renewing)
        if counted:
            self._count(entry.output, tool)
        if job is None:
            self._spare.append(entry)
        finished = self._end_well(job, entry, tool, counted=counted)
        if not regenerated:
            return [finished]
        self._first.clear()
        return [finished, *self._uncount(Counter(self._counted))]

    def _count(self, output: str, tool: Tool) -> None:
        self.finished += 1
        self._counted[tool] += 1
        if self.plan is None and len(self._first) < MAX_FIRST:
            self._first.append((output, tool))

    def _tool_of(self, output: str) -> Tool:
        """For a job that nobody saw: the plan knows better than the file's name."""
        planned = self.plan.tool_of(output) if self.plan is not None else None
        return planned or tool_of_output(output)

    def _by_output(self, entry: Entry) -> ManagedJob | None:
        """Return the job of that name, preferably an exited one. A stopped job cannot have ended."""
        jobs = [job for job in self._jobs.open_jobs(self.sid) if job.name == entry.output]
        exited = next((job for job in jobs if job.life is EXITED), None)
        return exited or next((job for job in jobs if job.life is RUNNING), None)

    def _by_times(self, entry: Entry) -> ManagedJob | None:
        """Return an exited job whose output has no name, or a different one. Excludes jobs that the plan knows by
        name."""
        fits = [(fit, job.jid, job) for job in self._nameless() if (fit := self._misfit(entry, job)) is not None]
        return min(fits)[2] if fits else None

    def _nameless(self) -> list[ManagedJob]:
        return [job for job in self._jobs.exited(self.sid) if not self.is_known(job.name)]

    def _misfit(self, entry: Entry, job: ManagedJob, *, stalled: bool = False) -> float | None:
        return self._clock.misfit(entry, job.job.started, job.last_seen, job.noticed, stalled=stalled)

    def settle(
        self,
        *,
        at_once: bool,
        unrecorded: JobOutcome = "failed",
        reported: Container[str] = (),
        is_left: Callable[[ManagedJob], bool] = lambda _job: False,
    ) -> list[JobFinished]:
        """Give up on records, after a reading of the log: jobs without one for long enough have failed.

        Not if an unmatched record may be theirs, nor if ninja has recorded all that it had to do, nor, unless
        `at_once`, if something `is_left` of them: ninja waits for every process that can write to its pipe. Jobs
        whose outputs ninja has `reported` as failed have failed, whatever else is `unrecorded`.
        """
        ended: list[JobFinished] = []
        complete = at_once and self._is_complete()
        for job in self._jobs.exited(self.sid):
            job.waited += 1
            if not at_once and (job.waited < PATIENCE_TICKS or is_left(job)):
                continue
            if self._has_renewed(job):
                ended.append(replace(self._lose(job, "unknown"), counted=False))
                continue
            spare = self._spare_of(job) or (self._spare_of(job, stalled=True) if complete else None)
            if spare is not None:
                self._spare.remove(spare)
                ended.append(self._end_well(job, spare, job.tool, counted=False))
            else:
                outcome: JobOutcome = "unknown" if complete else "failed" if job.name in reported else unrecorded
                end = self._lose(job, outcome)
                ended.append(replace(end, counted=False) if complete else end)
        return ended

    def _has_renewed(self, job: ManagedJob) -> bool:
        """Say whether a job without a record has regenerated the manifest: ninja starts others after it only if it
        succeeded.

        CMake calls a ninja in it, and a ninja of another version starts a new log: the record is lost.
        """
        if not is_manifest(job.name, self.scheduler.manifest):
            return False
        return any(other.job.started > job.job.started for other in self._jobs.open_jobs(self.sid))

    def _is_complete(self) -> bool:
        """Say whether ninja has recorded all that it had to do, by the plan or, if none came in time, its own count."""
        return self.finished == (self.said_total if self.total is None else self.total)

    def _spare_of(self, job: ManagedJob, *, stalled: bool = False) -> Entry | None:
        """Return a record that was counted without a job, and may belong to this one."""
        if self.is_known(job.name):
            return None
        fits = [(fit, entry) for entry in self._spare if (fit := self._misfit(entry, job, stalled=stalled)) is not None]
        return min(fits)[1] if fits else None

    def _lose(self, job: ManagedJob, outcome: JobOutcome) -> JobFinished:
        """End a job without a record."""
        seconds = round(max(0.0, job.last_seen - job.job.started), 3)
        use, name = job.seen, job.name or job.job.label
        end = JobFinished(job.jid, self.sid, name, job.tool, seconds, outcome)
        return self._jobs.end(job, replace(end, peak_rss=use.peak_rss, cpu_seconds=round(use.cpu_seconds, 2)))

    def _end_well(self, job: ManagedJob | None, entry: Entry, tool: Tool, *, counted: bool) -> JobFinished:
        """End a job by its record; a job that nobody saw has no number."""
        seconds = round((entry.end_ms - entry.start_ms) / 1000, 3)
        jid, use = (job.jid, job.seen) if job is not None else (None, None)
        end = JobFinished(
            jid,
            self.sid,
            entry.output,
            tool,
            seconds,
            "ok",
            peak_rss=use.peak_rss if use else None,
            cpu_seconds=round(use.cpu_seconds, 2) if use else None,
            log_offset=entry.offset_after,
            counted=counted,
        )
        return self._jobs.end(job, end) if job is not None else end
