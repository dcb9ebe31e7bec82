"""One scheduler's book: which of its jobs run, which have vanished, and which ninja has recorded as done.

A job is finished when ninja says so in its log, and failed when it vanished and ninja never says so. Make keeps no
log: there a vanished job counts as ended. Unaware of processes beyond what it is told, and of the journal.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from stoker.model.events import JobFinished, JobOutcome
from stoker.model.tool import Tool
from stoker.sense.jobs import JobUse
from stoker.sense.ninja_log import Entry
from stoker.sense.output_tool import tool_of_output
from stoker.sense.plan import Plan
from stoker.sense.schedulers import Scheduler

PATIENCE_TICKS = 3
"""How many looks at the log of a ninja that sleeps a vanished job waits for its record. Ninja writes it in the same
loop in which it notices the death, so one look is enough. One that is stopped, or waits for a disk, may yet do so."""

SAME_START_SECONDS = 0.5
"""A record belongs to a vanished job whose start differs by less: ninja's clock starts after it has read its
manifest, which the calibration by other jobs takes out but for scheduling noise."""


@dataclass(slots=True)
class _Gone:
    """A vanished job that waits for ninja's word. `last_seen` is Unix seconds."""

    use: JobUse
    last_seen: float
    looks: int = 0


class SchedulerBook:
    """The jobs of one scheduler, by jid."""

    def __init__(self, sid: int, scheduler: Scheduler, started: float, finished: int = 0) -> None:
        self.sid = sid
        self.finished = finished
        self.scheduler = scheduler
        self.started = started
        self.plan: Plan | None = None
        self._running: dict[int, JobUse] = {}
        self._gone: dict[int, _Gone] = {}
        self._done_early: set[int] = set()
        self._names: dict[int, tuple[str, Tool]] = {}
        self._waiting: list[Entry] = []
        self._clock_offset: float | None = None
        self._dropped: set[int] = set()
        self.errors = 0

    @property
    def keeps_log(self) -> bool:
        """Whether finished jobs are told by a .ninja_log."""
        return self.scheduler.tool != "make"

    def may_start(self, live: int) -> bool:
        """Whether it may start a job while `live` of its jobs are there. Make runs some without a place for them.

        Not where the plan has no more than those: should it be outdated, what comes is found by the next look at all.
        """
        width, planned = self.scheduler.width, self.plan.total if self.plan is not None else None
        if not self.keeps_log:
            return True
        return (width is None or live < width) and (planned is None or self.finished + live < planned)

    def runs(self, jid: int, use: JobUse) -> None:
        """The job was seen running."""
        if jid not in self._done_early:
            self._running[jid] = use

    def name_jobs(self, plan: Plan) -> list[tuple[int, JobUse, str, Tool]]:
        """Take up a plan; the running jobs that it gives a name (jid, what was seen, output, tool)."""
        self.plan = plan
        named = []
        for jid, use in self._running.items():
            found = plan.output_of(use.job.argv)
            if found is not None and found[0] != use.job.output:
                self._names[jid] = found
                if found[0]:
                    named.append((jid, use, *found))
        return named

    def is_known(self, output: str) -> bool:
        """Whether the plan has an edge of that name. A job that is called by its command may be any edge."""
        return self.plan is not None and self.plan.is_edge(output)

    def vanished(self, jid: int, use: JobUse, last_seen: float) -> list[JobFinished]:
        """The job's process is gone; it was seen last at Unix time `last_seen`."""
        self._running.pop(jid, None)
        if jid in self._done_early:
            self._done_early.discard(jid)
            return []
        if not self.keeps_log:
            return [self._finished(jid, use, last_seen, "unknown")]
        self._gone[jid] = _Gone(use, last_seen)
        return []

    def drop(self, jids: Iterable[int]) -> set[str]:
        """These jobs were on deck and will never run: their end is no failure. Gives their outputs."""
        dropped = set(jids)
        self._dropped |= dropped
        return {self._name(jid, use) for jid, use in self._running.items() if jid in dropped}

    def lacks_record_of(self, output: str) -> bool:
        """Whether a job that makes `output` is gone, and ninja has not recorded that it ended well."""
        return any(self._name(jid, gone.use) == output for jid, gone in self._gone.items())

    def all_vanished(self, last_seen: float) -> list[JobFinished]:
        """The scheduler is gone, and with it the jobs that ran at the last look, at Unix time `last_seen`."""
        return [f for jid, use in list(self._running.items()) for f in self.vanished(jid, use, last_seen)]

    def recorded(self, entries: Iterable[Entry], *, just_scanned: bool) -> list[JobFinished]:
        """Ninja's records of jobs that ended well, matched with the jobs that were seen.

        A record that might belong to a nameless job waits for the next scan, and those behind it with it, so that
        they stay in order: if the job was its, it will have vanished by then.
        """
        finished: list[JobFinished] = []
        if just_scanned:
            waiting, self._waiting = self._waiting, []
            finished += [self._recorded(entry, self._by_output(entry)) for entry in waiting]
        for entry in entries:
            jid = self._by_output(entry)
            if self._waiting or (jid is None and self._has_nameless()):
                self._waiting.append(entry)
            else:
                finished.append(self._recorded(entry, jid))
        return finished

    def _recorded(self, entry: Entry, jid: int | None) -> JobFinished:
        self.finished += 1
        if jid is None:
            jid = self._by_start(entry)
        use = self._take(jid) if jid is not None else None
        tool = self._tool(jid, use) if jid is not None and use is not None else self._tool_of(entry.output)
        return JobFinished(
            jid,
            self.sid,
            entry.output,
            tool,
            round((entry.end_ms - entry.start_ms) / 1000, 3),
            "ok",
            peak_rss=use.peak_rss if use else None,
            cpu_seconds=round(use.cpu_seconds, 2) if use else None,
            log_offset=entry.offset_after,
        )

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
        for jid, use in self._candidates():
            if self._name(jid, use) == entry.output:
                self._calibrate(use, entry)
                return jid
        return None

    def _calibrate(self, use: JobUse, entry: Entry) -> None:
        if self._clock_offset is None:
            self._clock_offset = use.job.started - entry.start_ms / 1000

    def _by_start(self, entry: Entry) -> int | None:
        """A vanished job whose output nothing told, or told in other words, by its start. The plan's own are known.

        Ninja's own start is the first guess of its clock. From 1.11 on a record's time is when its command began, which
        holds also where ninja took long to get going.
        """
        offset = self.started if self._clock_offset is None else self._clock_offset
        starts = (offset + entry.start_ms / 1000, entry.mtime / 1e9)
        nameless = {j: gone.use for j, gone in self._gone.items() if not self.is_known(self._name(j, gone.use))}
        likely = [(min(abs(use.job.started - s) for s in starts), jid) for jid, use in nameless.items()]
        distance, jid = min(likely, default=(SAME_START_SECONDS, 0))
        return jid if distance < SAME_START_SECONDS else None

    def _candidates(self) -> list[tuple[int, JobUse]]:
        return [*((jid, gone.use) for jid, gone in self._gone.items()), *self._running.items()]

    def settle(self, *, at_once: bool, unrecorded: JobOutcome = "failed") -> list[JobFinished]:
        """After a look at the log: vanished jobs without a record for long enough have failed."""
        failed: list[JobFinished] = []
        if at_once:
            waiting, self._waiting = self._waiting, []
            failed += [self._recorded(entry, self._by_output(entry)) for entry in waiting]
        for jid, gone in list(self._gone.items()):
            gone.looks += 1
            if at_once or gone.looks >= PATIENCE_TICKS:
                del self._gone[jid]
                failed.append(self._finished(jid, gone.use, gone.last_seen, unrecorded))
        return failed

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
