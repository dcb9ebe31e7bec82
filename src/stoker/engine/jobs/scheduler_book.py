"""One scheduler's book: which of its jobs run, which have vanished, and which ninja has recorded as done.

A job is finished when ninja says so in its log, and failed when it vanished and ninja never says so. Make keeps no
log: there a vanished job counts as ended. Unaware of processes beyond what it is told, and of the journal.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from stoker.engine.jobs.record_clock import RecordClock
from stoker.model.events import JobFinished, JobOutcome, JobsUncounted
from stoker.model.tool import Tool
from stoker.sense.commands.output_tool import tool_of_output
from stoker.sense.ninja.build_files import is_manifest
from stoker.sense.ninja.build_log import Entry
from stoker.sense.ninja.plan import Plan
from stoker.sense.proc.jobs import JobUse
from stoker.sense.proc.schedulers import Scheduler

PATIENCE_TICKS = 3
"""How many looks at the log of a ninja that sleeps a vanished job waits for its record. Ninja writes it in the same
loop in which it notices the death, so one look is enough. One that is stopped, or waits for a disk, may yet do so."""

MAX_SPARE = 200
"""Records kept of jobs that nobody saw, in case one of them is that of a job whose end is noticed later."""

MAX_FIRST = 1000
"""Jobs remembered from a ninja's start on until its plan tells which of them only renewed its manifest."""


@dataclass(slots=True)
class _Gone:
    """A vanished job that waits for ninja's word. It ended between `last_seen` and `noticed`, in Unix seconds."""

    use: JobUse
    last_seen: float
    noticed: float
    looks: int = 0


class SchedulerBook:
    """The jobs of one scheduler, by jid."""

    def __init__(
        self, sid: int, scheduler: Scheduler, started: float, counted: Mapping[str, int] | None = None
    ) -> None:
        """`counted` are the jobs that an engine before this one has counted, by tool."""
        self.sid = sid
        self._counted: Counter[str] = Counter(counted or {})
        self.finished = self._counted.total()
        self.scheduler = scheduler
        self.started = started
        self.plan: Plan | None = None
        self.total: int | None = None
        """How many jobs it has in all, by its plan or by its own later word."""
        self.plan_is_due = False
        """Whether a plan is being made."""
        self._running: dict[int, JobUse] = {}
        self._gone: dict[int, _Gone] = {}
        self._done_early: set[int] = set()
        self._names: dict[int, tuple[str, Tool]] = {}
        self._waiting: list[Entry] = []
        self._spare: deque[Entry] = deque(maxlen=MAX_SPARE)
        self._first: list[tuple[str, str]] = []
        self._clock = RecordClock(started, scheduler.manifest)
        self._dropped: set[int] = set()
        self.errors = 0

    @property
    def keeps_log(self) -> bool:
        """Whether finished jobs are told by a .ninja_log."""
        return self.scheduler.tool != "make"

    @property
    def living(self) -> int:
        """How many of its jobs are there, running or held."""
        return len(self._running)

    def may_start(self, live: int) -> bool:
        """Whether it may start a job while `live` of its jobs are there. Make runs some without a place for them.

        Not where the plan has no more than those: should it be outdated, what comes is found by the next look at all.
        """
        if not self.keeps_log:
            return True
        width, total = self.scheduler.width, self.total
        return (width is None or live < width) and (total is None or self.finished + live < total)

    def runs(self, jid: int, use: JobUse) -> None:
        """The job was seen running."""
        if jid not in self._done_early:
            self._running[jid] = use

    def name_jobs(self, plan: Plan) -> list[tuple[int, JobUse, str, Tool]]:
        """Take up a plan; the jobs that it gives a name (jid, what was seen, output, tool).

        Those that have vanished and have no end yet are among them: ninja reports their end by that name.
        """
        self.plan = plan
        self.total = plan.total if plan.total is not None else self.total
        named = []
        for jid, use in self._candidates():
            found = plan.output_of(use.job.argv)
            if found is not None and found[0] != use.job.output:
                self._names[jid] = found
                if found[0]:
                    named.append((jid, use, *found))
        return named

    def recount(self) -> list[JobsUncounted]:
        """What was counted before the plan told that it only renewed the manifest."""
        renewing = self.plan.summary.renewing if self.plan is not None else ()
        wrong = Counter[str](tool for output, tool in self._first if output in renewing)
        self._first.clear()
        return self._uncount(wrong)

    def _uncount(self, tools: Counter[str]) -> list[JobsUncounted]:
        self._counted -= tools
        self.finished -= tools.total()
        return [JobsUncounted(self.sid, dict(tools))] if tools else []

    def is_known(self, output: str) -> bool:
        """Whether the plan has an edge of that name. A job that is called by its command may be any edge."""
        return self.plan is not None and self.plan.is_edge(output)

    def vanished(self, jid: int, use: JobUse, last_seen: float, noticed: float) -> list[JobFinished]:
        """The job's process is gone; it was seen last at Unix time `last_seen`, and found to be gone at `noticed`."""
        self._running.pop(jid, None)
        if jid in self._done_early:
            self._done_early.discard(jid)
            return []
        if not self.keeps_log:
            return [self._finished(jid, use, last_seen, "unknown")]
        self._gone[jid] = _Gone(use, last_seen, noticed)
        return []

    def drop(self, jids: Iterable[int]) -> set[str]:
        """These jobs were on deck and will never run: their end is no failure. Gives their outputs."""
        dropped = set(jids)
        self._dropped |= dropped
        return {self._name(jid, use) for jid, use in self._running.items() if jid in dropped}

    def lacks_record_of(self, output: str) -> bool:
        """Whether a job that makes `output` is gone, and ninja has not recorded that it ended well."""
        return any(self._name(jid, gone.use) == output for jid, gone in self._gone.items())

    def all_vanished(self, last_seen: float, noticed: float) -> list[JobFinished]:
        """The scheduler is gone at Unix time `noticed`, and with it the jobs that ran at the look at `last_seen`."""
        return [f for jid, use in list(self._running.items()) for f in self.vanished(jid, use, last_seen, noticed)]

    def recorded(self, entries: Iterable[Entry], *, just_scanned: bool) -> list[JobFinished | JobsUncounted]:
        """Ninja's records of jobs that ended well, matched with the jobs that were seen.

        A record that might belong to a nameless job waits for the next scan, and those behind it with it, so that
        they stay in order: if the job was its, it will have vanished by then.
        """
        finished: list[JobFinished | JobsUncounted] = []
        if just_scanned:
            waiting, self._waiting = self._waiting, []
            finished += [event for entry in waiting for event in self._recorded(entry)]
        for entry in entries:
            if self._waiting or (self._by_output(entry) is None and self._has_nameless()):
                self._waiting.append(entry)
            else:
                finished += self._recorded(entry)
        return finished

    def _recorded(self, entry: Entry) -> list[JobFinished | JobsUncounted]:
        """One record's job, counted; not if it renewed the manifest, nor what was counted before that."""
        self._clock.pass_record(entry)
        jid = self._by_output(entry)
        if jid is None:
            jid = self._by_times(entry)
        else:
            self._clock.pair(entry, self._use(jid).job.started)
        self._clock.leave_record(entry)
        use = self._take(jid) if jid is not None else None
        tool = self._tool(jid, use) if jid is not None and use is not None else self._tool_of(entry.output)
        anew = is_manifest(entry.output, self.scheduler.manifest)
        counted = not anew and (self.plan is None or entry.output not in self.plan.summary.renewing)
        if counted:
            self._count(entry.output, tool)
        if jid is None:
            self._spare.append(entry)
        finished = _well_ended(entry, jid, self.sid, tool, use, counted=counted)
        if not anew:
            return [finished]
        self._first.clear()
        return [finished, *self._uncount(Counter(self._counted))]

    def _count(self, output: str, tool: Tool) -> None:
        self.finished += 1
        self._counted[tool] += 1
        if self.plan is None and len(self._first) < MAX_FIRST:
            self._first.append((output, tool))

    def _has_nameless(self) -> bool:
        return any(not self._name(jid, use) for jid, use in self._running.items())

    def _name(self, jid: int, use: JobUse) -> str:
        named = self._names.get(jid)
        return named[0] if named is not None else use.job.output

    def _tool(self, jid: int, use: JobUse) -> Tool:
        named = self._names.pop(jid, None)
        return named[1] if named is not None else use.job.tool

    def _tool_of(self, output: str) -> Tool:
        """For a job that nobody saw: the plan knows better than the file's name."""
        planned = self.plan.tool_of(output) if self.plan is not None else None
        return planned or tool_of_output(output)

    def _take(self, jid: int) -> JobUse:
        gone = self._gone.pop(jid, None)
        if gone is not None:
            return gone.use
        self._done_early.add(jid)
        return self._running.pop(jid)

    def _by_output(self, entry: Entry) -> int | None:
        return next((jid for jid, use in self._candidates() if self._name(jid, use) == entry.output), None)

    def _by_times(self, entry: Entry) -> int | None:
        """A vanished job whose output nothing told, or told in other words. What the plan calls by name is none."""
        nameless = {j: gone for j, gone in self._gone.items() if self._is_nameless(j, gone)}
        fits = {j: self._misfit(entry, gone) for j, gone in nameless.items()}
        return min(((misfit, jid) for jid, misfit in fits.items() if misfit is not None), default=(0.0, None))[1]

    def _misfit(self, entry: Entry, gone: _Gone) -> float | None:
        return self._clock.misfit(entry, gone.use.job.started, gone.last_seen, gone.noticed)

    def _is_nameless(self, jid: int, gone: _Gone) -> bool:
        return not self.is_known(self._name(jid, gone.use))

    def _use(self, jid: int) -> JobUse:
        return self._gone[jid].use if jid in self._gone else self._running[jid]

    def _candidates(self) -> list[tuple[int, JobUse]]:
        return [*((jid, gone.use) for jid, gone in self._gone.items()), *self._running.items()]

    def settle(
        self,
        *,
        at_once: bool,
        unrecorded: JobOutcome = "failed",
        is_left: Callable[[JobUse], bool] = lambda _use: False,
    ) -> list[JobFinished]:
        """After a look at the log: vanished jobs without a record for long enough have failed.

        Not if one of the records that nobody's job was found for may be theirs, nor where ninja has recorded all that
        it had to do, nor, unless `at_once`, where something `is_left` of them: ninja waits for all that can write.
        """
        ended: list[JobFinished] = []
        complete = at_once and self.finished == self.total
        for jid, gone in list(self._gone.items()):
            gone.looks += 1
            if at_once or (gone.looks >= PATIENCE_TICKS and not is_left(gone.use)):
                spare = self._spare_of(jid, gone)
                del self._gone[jid]
                if spare is not None:
                    self._spare.remove(spare)
                    tool = self._tool(jid, gone.use)
                    ended.append(_well_ended(spare, jid, self.sid, tool, gone.use, counted=False))
                elif complete:
                    ended.append(replace(self._finished(jid, gone.use, gone.last_seen, "unknown"), counted=False))
                else:
                    ended.append(self._finished(jid, gone.use, gone.last_seen, unrecorded))
        return ended

    def _spare_of(self, jid: int, gone: _Gone) -> Entry | None:
        """A record that was counted without a job, and may be this one's."""
        if not self._is_nameless(jid, gone):
            return None
        fits = [(self._misfit(entry, gone), entry) for entry in self._spare]
        return min(((fit, entry) for fit, entry in fits if fit is not None), default=(0.0, None))[1]

    def _finished(self, jid: int, use: JobUse, last_seen: float, outcome: JobOutcome) -> JobFinished:
        if jid in self._dropped:
            self._dropped.discard(jid)
            outcome = "dropped"
        return JobFinished(
            jid,
            self.sid,
            self._name(jid, use) or use.job.label,
            self._tool(jid, use),
            round(max(0.0, last_seen - use.job.started), 3),
            outcome,
            peak_rss=use.peak_rss,
            cpu_seconds=round(use.cpu_seconds, 2),
        )


def _well_ended(
    entry: Entry, jid: int | None, sid: int, tool: Tool, use: JobUse | None, *, counted: bool
) -> JobFinished:
    return JobFinished(
        jid,
        sid,
        entry.output,
        tool,
        round((entry.end_ms - entry.start_ms) / 1000, 3),
        "ok",
        peak_rss=use.peak_rss if use else None,
        cpu_seconds=round(use.cpu_seconds, 2) if use else None,
        log_offset=entry.offset_after,
        counted=counted,
    )
