"""The schedulers at work as an observer keeps them, and the reading of their ninja logs.

Two ninjas may write one log one after the other (`ninja a && ninja b`); the starts that its records imply tell them
apart. Unaware of processes beyond whether a scheduler lives, and of the journal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from stoker.engine.jobs.scheduler_book import SchedulerBook
from stoker.model import events as ev
from stoker.sense.ninja.build_files import log_path
from stoker.sense.ninja.build_log import CLOCK_SLACK, Entry, NinjaLog
from stoker.sense.proc.schedulers import Scheduler


@dataclass(slots=True)
class Tracked:
    """A scheduler that runs, its book, its log (`met_log`: all before this run is known), and its plan's making.

    `dear`: a package builder runs above it.
    """

    book: SchedulerBook
    log: NinjaLog | None = None
    met_log: bool = False
    planned_stamp: str | None = None
    plan_task: asyncio.Task[None] | None = None
    dear: bool = False


class Logs:
    """Every .ninja_log of the build, opened once."""

    def __init__(self) -> None:
        self._logs: dict[Path, NinjaLog] = {}

    def open(self, tracked: Tracked, scheduler: Scheduler, started: float) -> None:
        """Give a ninja its log; an earlier ninja of this build may have made it known up to here."""
        path = Path(log_path(scheduler.directory, scheduler.manifest))
        known = self._logs.get(path)
        log = known or self._logs.setdefault(path, NinjaLog(path))
        log.begin_run(started, scheduler.manifest)
        tracked.log, tracked.met_log = log, known is not None

    def read_all(self, all_tracked: Collection[Tracked], now: float, *, just_scanned: bool) -> list[ev.Event]:
        """Jobs that ninja has recorded since."""
        events: list[ev.Event] = []
        for tracked in all_tracked:
            if not just_scanned and not Path(f"/proc/{tracked.book.scheduler.pid}").exists():
                continue  # The next ninja may write this log already; the look that finds it tells them apart.
            events += self.read(tracked, all_tracked, now, just_scanned=just_scanned)
        return events

    def read(
        self, tracked: Tracked, all_tracked: Collection[Tracked], now: float, *, just_scanned: bool
    ) -> list[ev.JobFinished | ev.JobsUncounted]:
        """The same for one scheduler."""
        log, book = tracked.log, tracked.book
        if log is None:
            return []
        if tracked.met_log:
            entries, heir = log.read_new(), _heir(tracked, all_tracked)
            cut = _end_of_run(entries, heir.started, now) if heir is not None else len(entries)
            finished = book.recorded(entries[:cut], just_scanned=just_scanned)
            return [*finished, *heir.recorded(entries[cut:], just_scanned=just_scanned)] if heir else finished
        tracked.met_log = True
        first = log.first_read(book.started, now, book.scheduler.manifest)
        return book.recorded(first.this_run, just_scanned=just_scanned)


def _heir(tracked: Tracked, all_tracked: Collection[Tracked]) -> SchedulerBook | None:
    """The ninja that writes this log now, after the one that is tracked."""
    books = [t.book for t in all_tracked if t.log is tracked.log and t is not tracked]
    return next((b for b in books if b.started > tracked.book.started), None)


def _end_of_run(entries: Sequence[Entry], next_start: float, now: float) -> int:
    """How many of `entries`, read at Unix time `now`, come before those of a ninja that began at `next_start`.

    From 1.12 on ninja records when a command began, and so when that ninja did. 1.11 records when it ended, so that a
    long job seems to come from a later ninja, which has not run for so long. Before that, all count for the first.
    """
    latest_end = (now - next_start + CLOCK_SLACK) * 1000
    starts = (e.mtime / 1e9 - e.start_ms / 1000 if e.end_ms <= latest_end else 0.0 for e in entries)
    return next((i for i, start in enumerate(starts) if start >= next_start - CLOCK_SLACK), len(entries))
