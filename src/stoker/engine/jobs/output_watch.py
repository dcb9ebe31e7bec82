"""Reads what the build's output adds to what the processes show: totals, percentages, failed steps.

Only a supplement: below pip there is nothing to read until the end. Unaware of processes and of the journal.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from stoker.engine.jobs.scheduler_book import SchedulerBook
from stoker.model import events as ev
from stoker.model.state import BuildState
from stoker.model.text import plain
from stoker.sense.ninja.build_output import BuildOutput, PercentLine, ReportedFailure, StatusLine

READ_SECONDS = 0.1
"""How many seconds a look may read if a build writes faster than 2 MiB per look: some 20 MiB."""

MAX_AT_END = 256 * 2**20
"""Bytes read when a command is over, the last ones: at worst ten seconds of work; after that the supervisor would give
up on the engine. What ended the command is at the end."""

PLAUSIBLE_DISTANCE = 8
"""How far ninja's count may differ from ours, beyond its width, before a status line is attributed to another ninja."""


class OutputWatch:
    """Follows one output log from where an earlier engine has read it."""

    def __init__(self, path: Path, state: BuildState) -> None:
        self._path = path
        self._reader = BuildOutput(path, max(state.output.failures_end, state.output.read))
        self._heard_percent: PercentLine | None = None
        self._percent_announced: dict[int, ev.SchedulerPlanned] = {}
        self._heard: dict[int, tuple[StatusLine, int]] = {}

    @property
    def size(self) -> int:
        """Size of the log in bytes."""
        try:
            return self._path.stat().st_size
        except OSError:
            return 0

    @property
    def settled(self) -> int:
        """The byte up to which everything has been announced."""
        return self._reader.settled

    def read(self, books: Sequence[SchedulerBook]) -> list[ev.Event]:
        """Return what is new, given the running schedulers; of a flood the part for which there is time."""
        give_up_at = time.monotonic() + READ_SECONDS
        events = self._events(self._reader.read_new(), books)
        while self._reader.offset < self.size and time.monotonic() < give_up_at:
            events += self._events(self._reader.read_new(), books)
        return events

    def read_all(self, books: Sequence[SchedulerBook]) -> list[ev.Event]:
        """Return what is left when nothing more will be written."""
        end = self.size
        if end - self._reader.offset > MAX_AT_END:
            self._reader.skip_to(end - MAX_AT_END)
        events: list[ev.Event] = []
        before = -1
        while before < self._reader.offset < end:  # a truncated log yields nothing more
            before = self._reader.offset
            events += self._events(self._reader.read_new(), books)
        return events + self._events(self._reader.finish(), books)

    def _events(
        self, found: Iterable[StatusLine | PercentLine | ReportedFailure], books: Sequence[SchedulerBook]
    ) -> list[ev.Event]:
        events: list[ev.Event] = []
        for item in found:
            if isinstance(item, ReportedFailure):
                events.append(_failure(item))
            elif isinstance(item, StatusLine):
                events += self._total(item, [b for b in books if b.keeps_log])
            else:
                self._heard_percent = item
        return events

    def _total(self, line: StatusLine, ninjas: Sequence[SchedulerBook]) -> list[ev.Event]:
        """Take in ninja's own total: restat rules prune it, dyndep files add to it. Only if it is clear which ninja
        printed it.

        A nested ninja's lines appear in the outer one's output. So if there is a plan, another total counts only when
        it appears again after another job has finished, by ninja's count and by ours. While ninja regenerates its
        manifest it has a total for that alone: so the first plan, which separates the two, is awaited.
        """
        if len(ninjas) != 1:
            return []
        book = ninjas[0]
        book.said_total = line.total
        near = PLAUSIBLE_DISTANCE + (book.scheduler.width or 0)
        if abs(line.done - book.finished) > near or line.total == book.total:
            return []
        if book.plan is None and book.plan_is_due:
            return []
        if book.plan is not None and not self._confirmed(line, book):
            return []
        book.total = line.total
        tools = book.plan.summary.tools if book.plan is not None else {}
        return [ev.SchedulerPlanned(book.sid, line.total, "status", tools)]

    def _confirmed(self, line: StatusLine, book: SchedulerBook) -> bool:
        heard = self._heard.get(book.sid)
        if heard is None or heard[0].total != line.total:
            self._heard[book.sid] = (line, book.finished)
            return False
        first, finished = heard
        return line.done > first.done and book.finished > finished

    def percent(self, books: Sequence[SchedulerBook]) -> list[ev.SchedulerPlanned]:
        """Return CMake's percentage, with and without the jobs that it counts as done while they run or wait; only for
        a single top-level make.

        Call it after a scan and before the next reading: then every job announced so far is known.
        """
        tops = [b for b in books if b.scheduler.parent is None]
        if self._heard_percent is None or len(tops) != 1 or tops[0].scheduler.tool != "make":
            return []
        live = sum(b.present for b in books if not b.keeps_log)
        line, sid = self._heard_percent, tops[0].sid
        percent = float(round(max(0.0, line.percent - live * line.each)))
        planned = ev.SchedulerPlanned(sid, None, "percent", percent=percent, begun=float(line.percent))
        if self._percent_announced.get(sid) == planned:
            return []
        self._percent_announced[sid] = planned
        return [planned]


def _failure(step: ReportedFailure) -> ev.FailureFound:
    return ev.FailureFound(
        step.output,
        step.command,
        step.exit_code,
        tuple(plain(line) for line in step.excerpt),
        step.log_start,
        step.log_end,
    )
