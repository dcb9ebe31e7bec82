"""Detects failures as soon as they are certain, and drops the jobs on deck, since ninja then starts nothing more.

Text alone never ends a job: a test may print FAILED, and two ninjas may have outputs of the same name. Unaware of how
jobs are found and of how a build runs again.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from stoker.decide.recovery.deaths import FailedStep, shows_stop
from stoker.engine.aftermath.command_forms import Words, forms, said
from stoker.engine.govern.governor import Governor
from stoker.engine.jobs.output_watch import OutputWatch
from stoker.engine.jobs.scheduler_book import SchedulerBook
from stoker.model import events as ev
from stoker.sense.commands.classify import describe
from stoker.sense.proc.processes import Process

RECORD_SECONDS = 0.1
"""How long a successful job may lack ninja's record after its output appears: ninja prints first, then writes."""

HEARD_SECONDS = 2.0
"""Give up on a reported failure if no job of that name has exited within this time."""

SURE_SECONDS = 3.0
"""How long a ninja must have slept without starting anything before a job counts as failed although no output reports
it. Such a job is gone without a record, while one that ended later has its own. Dropping jobs cannot be undone."""

MAX_HEARD = 1000
"""Failures remembered by name: only -k has so many, and then nothing is dropped."""

KILLED = 137
"""What a scheduler reports for a dropped job: 128 + SIGKILL; ninja before 1.12 reports nothing."""

Hear = Callable[[ev.FailureFound], tuple[bool, list[ev.Event]]]
"""Says whether a failure is a real error, rather than a killed compiler, and returns the events to announce."""

IsRecorded = Callable[[int, str], bool]
"""Says whether that scheduler's log, read again, has a record of that output after all."""


@dataclass(slots=True)
class _Silent:
    """A job that seems to have failed without output, first seen so at `since` (Unix seconds).

    `recorded` is how many jobs its ninja had recorded then. A log that cannot be read, such as that of a ninja in a
    container, has none.
    """

    sid: int
    output: str
    since: float
    recorded: int | None = None


class Dropped:
    """Dropped jobs are known by output and by command line, because a job's output may still be unknown when it is
    dropped."""

    def __init__(self) -> None:
        self._outputs: set[str] = set()
        self._commands: set[Words] = set()

    def add(self, outputs: Iterable[str], commands: Iterable[Words]) -> None:
        """Jobs that were dropped: their outputs, and their arguments as the kernel shows them."""
        self._outputs.update(outputs)
        self._commands.update(map(said, commands))

    def explains(self, failure: ev.FailureFound) -> bool:
        """Say whether this is only the failure of a dropped job."""
        if failure.output in self._outputs:
            return True
        if failure.exit_code not in (None, KILLED):
            return False
        return not self._commands.isdisjoint(forms(failure.command))


class Failures:
    """Detects failures from the output, and from jobs that are gone without a record."""

    def __init__(
        self,
        output: OutputWatch,
        governor: Governor,
        hear: Hear,
        is_recorded: IsRecorded,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self._output = output
        self._governor = governor
        self._hear = hear
        self._is_recorded = is_recorded
        self._stopping = stopping
        self._dropped = Dropped()
        self._heard: dict[str, None] = {}
        self._reported: dict[str, str] = {}
        self._errors: dict[str, float] = {}
        self._silent: dict[int, _Silent] = {}

    @property
    def waits(self) -> bool:
        """Whether the output reported an error that still needs confirmation: the sooner, the less is built in vain."""
        return bool(self._errors)

    @property
    def reported(self) -> Container[str]:
        """The outputs that the command has reported as failed."""
        return self._heard

    def begin_command(self) -> None:
        """Another command runs: forget pending failures; a job that was dropped before may now fail by itself."""
        self._dropped = Dropped()
        self._heard.clear()
        self._reported.clear()
        self._errors.clear()
        self._silent.clear()

    def read(self, books: Sequence[SchedulerBook], now: float, *, to_the_end: bool = False) -> list[ev.Event]:
        """Take in the output that the build has written by Unix time `now`, without failures of jobs that were dropped,
        or that a stop has ended."""
        events = self._output.read_all(books) if to_the_end else self._output.read(books)
        kept = [e for e in events if not (isinstance(e, ev.FailureFound) and self._is_none(e))]
        return [known for event in kept for known in self._heard_of(event, now)]

    def _is_none(self, failure: ev.FailureFound) -> bool:
        step = FailedStep(failure.output, failure.command, failure.exit_code, failure.excerpt)
        return self._dropped.explains(failure) or (self._stopping() and shows_stop(step))

    def _heard_of(self, event: ev.Event, now: float) -> list[ev.Event]:
        """Return the event, preceded by what is known about a failure: that it was a kill, or nothing."""
        if not isinstance(event, ev.FailureFound):
            return [event]
        is_error, known = self._hear(event)
        if len(self._heard) < MAX_HEARD:
            self._heard[event.output] = None
            self._reported[describe(("sh", "-c", event.command))] = event.output
        if is_error and len(self._errors) < MAX_HEARD:
            self._errors.setdefault(event.output, now)
        return [*known, event]

    def name_lost(self, books: Sequence[SchedulerBook]) -> None:
        """Name jobs that ended between two engines after the failures that the output reported."""
        for book in books if self._reported else ():
            book.name_lost(self._reported)

    def look(
        self,
        events: Iterable[ev.Event],
        books: Sequence[SchedulerBook],
        processes: Mapping[int, Process],
        now: float,
    ) -> list[ev.Event]:
        """Return the consequences of failures, after a scan and a reading of the logs at Unix time `now`; `events` are
        new."""
        self.note(events, now)
        return [*self._confirmed(books, now), *self._sure(books, processes, now)]

    def _confirmed(self, books: Sequence[SchedulerBook], now: float) -> list[ev.Event]:
        """Handle errors that the output reported and whose job has exited without a record."""
        found: list[ev.Event] = []
        for output, since in list(self._errors.items()):
            if 0 <= now - since < RECORD_SECONDS:
                continue
            failed = [b for b in books if b.lacks_record_of(output)]
            if failed or not 0 <= now - since < HEARD_SECONDS:
                del self._errors[output]
            if len(failed) == 1:
                found += self._drop(failed[0], output)
        return found

    def _sure(self, books: Sequence[SchedulerBook], processes: Mapping[int, Process], now: float) -> list[ev.Event]:
        """Handle failures that no output reports, as below pip.

        It is not known yet whether it was an error or a killed compiler. Either way ninja starts nothing more, and its
        output arrives once it has ended.
        """
        found: list[ev.Event] = []
        for jid, silent in list(self._silent.items()):
            book = next((b for b in books if b.sid == silent.sid), None)
            process = processes.get(book.scheduler.pid) if book is not None else None
            if book is None:
                del self._silent[jid]
                continue
            silent.recorded = book.finished if silent.recorded is None else silent.recorded
            awake = process is None or process.state != "S"
            if awake or book.finished <= silent.recorded or not book.is_known(silent.output):
                silent.since = now
            elif not 0 <= now - silent.since < SURE_SECONDS:
                del self._silent[jid]
                found += [] if self._is_recorded(book.sid, silent.output) else self._drop(book, silent.output)
        return found

    def note(self, events: Iterable[ev.Event], now: float) -> None:
        """Track which jobs have failed without output according to these events, and which have not after all."""
        for e in events:
            if isinstance(e, ev.JobStarted):
                self._silent = {jid: s for jid, s in self._silent.items() if s.sid != e.sid}
            elif isinstance(e, ev.JobFinished) and e.outcome != "failed":
                self._silent = {jid: s for jid, s in self._silent.items() if s.output != e.output}
            elif isinstance(e, ev.JobFinished) and e.jid is not None and e.output not in self._heard:
                self._silent[e.jid] = _Silent(e.sid, e.output, now)

    def _drop(self, book: SchedulerBook, output: str) -> list[ev.Event]:
        """Count one more failure of a scheduler, after which it starts nothing unless it keeps going (-k).

        Not for make: it keeps no log, so only its output would show it.
        """
        if book.scheduler.failures is None or not book.keeps_log:
            return []
        book.errors += 1
        if book.errors < book.scheduler.failures:
            return []
        why = f"{output} failed, and {book.scheduler.tool} starts nothing more"
        jobs, events = self._governor.drop(book.sid, output, why)
        self._dropped.add({job.name for job in jobs if job.name}, [job.job.argv for job in jobs])
        return events
