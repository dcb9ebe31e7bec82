"""What has failed, as soon as that is sure, and what is dropped for it: ninja starts nothing more after a failure.

No text alone ends a job: a test may print FAILED, and two ninjas may make outputs of one name. Unaware of how jobs are
found and of how a build runs again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from stoker.engine.aftermath.command_forms import Words, forms, said
from stoker.engine.govern.governor import Governor
from stoker.engine.jobs.output_watch import OutputWatch
from stoker.engine.jobs.scheduler_book import SchedulerBook
from stoker.model import events as ev
from stoker.sense.commands.classify import describe
from stoker.sense.proc.processes import Process

RECORD_SECONDS = 0.1
"""How long after its words a job that ended well may lack ninja's record: it prints first, and writes then."""

HEARD_SECONDS = 2.0
"""Give up on a reported failure if no job of that name has exited within this time."""

SURE_SECONDS = 3.0
"""For how long a ninja must have slept and started nothing before a job that is gone without a record, while one that
ended later has its own, counts as failed although no output reports it. What follows cannot be taken back."""

MAX_HEARD = 1000
"""Failures by name that are remembered: so many with -k only, where nothing is dropped."""

KILLED = 137
"""What a scheduler says of a dropped job, 128 + SIGKILL; ninja before 1.12 says nothing."""

Hear = Callable[[ev.FailureFound], tuple[bool, list[ev.Event]]]
"""Says whether a failure is a real error, rather than a compiler that was killed, and gives what to announce of it."""

IsRecorded = Callable[[int, str], bool]
"""Says whether that scheduler's log, read anew, has a record of that output after all."""


@dataclass(slots=True)
class _Silent:
    """A job that has failed without a word, seen so since `since` (Unix seconds).

    `recorded` is how many jobs its ninja had recorded when that was first seen: a log that cannot be read, as that of a
    ninja in a container, has none.
    """

    sid: int
    output: str
    since: float
    recorded: int | None = None


class Dropped:
    """Known by output, and by command line: what a job makes may not have been learnt when it is dropped."""

    def __init__(self) -> None:
        self._outputs: set[str] = set()
        self._commands: set[Words] = set()

    def add(self, outputs: Iterable[str], commands: Iterable[Words]) -> None:
        """Jobs that were dropped: what they make, and their arguments as the kernel shows them."""
        self._outputs.update(outputs)
        self._commands.update(map(said, commands))

    def explains(self, failure: ev.FailureFound) -> bool:
        """Whether this failure is only that of a dropped job."""
        if failure.output in self._outputs:
            return True
        if failure.exit_code not in (None, KILLED):
            return False
        return not self._commands.isdisjoint(forms(failure.command))


class Failures:
    """Hears of failures by the output, and by jobs that are gone without a record."""

    def __init__(self, output: OutputWatch, governor: Governor, hear: Hear, is_recorded: IsRecorded) -> None:
        self._output = output
        self._governor = governor
        self._hear = hear
        self._is_recorded = is_recorded
        self._dropped = Dropped()
        self._heard: dict[str, None] = {}
        self._reported: dict[str, str] = {}
        self._errors: dict[str, float] = {}
        self._silent: dict[int, _Silent] = {}

    @property
    def waits(self) -> bool:
        """Whether an error was heard that a look has to confirm: the sooner, the less is built in vain."""
        return bool(self._errors)

    def begin_command(self) -> None:
        """Another command runs: nothing that failed before is waited for, and what was dropped may fail of itself."""
        self._dropped = Dropped()
        self._heard.clear()
        self._reported.clear()
        self._errors.clear()
        self._silent.clear()

    def read(self, books: Sequence[SchedulerBook], now: float, *, to_the_end: bool = False) -> list[ev.Event]:
        """What the build has written until Unix time `now`; a failure that only ended what was dropped is none."""
        events = self._output.read_all(books) if to_the_end else self._output.read(books)
        kept = [e for e in events if not (isinstance(e, ev.FailureFound) and self._dropped.explains(e))]
        return [known for event in kept for known in self._heard_of(event, now)]

    def _heard_of(self, event: ev.Event, now: float) -> list[ev.Event]:
        """The event, and before a failure what is known of it: that it was a kill, or nothing."""
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
        """Name jobs that ended between two engines by the failures that the output has reported."""
        for book in books if self._reported else ():
            book.name_lost(self._reported)

    def look(
        self,
        events: Iterable[ev.Event],
        books: Sequence[SchedulerBook],
        processes: Mapping[int, Process],
        now: float,
    ) -> list[ev.Event]:
        """What follows from failures, after a scan and the logs of Unix time `now`; `events` are those of this look."""
        self.note(events, now)
        return [*self._confirmed(books, now), *self._sure(books, processes, now)]

    def _confirmed(self, books: Sequence[SchedulerBook], now: float) -> list[ev.Event]:
        """Errors that the output reported, whose job has exited without a record."""
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
        """Failures that no output reports, as below pip.

        Whether it was an error or a killed compiler is not known then. Neither way will ninja start more, and what it
        says is heard once it has ended.
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
        """Which jobs have failed without a word by these events, and which have not, after all."""
        for e in events:
            if isinstance(e, ev.JobStarted):
                self._silent = {jid: s for jid, s in self._silent.items() if s.sid != e.sid}
            elif isinstance(e, ev.JobFinished) and e.outcome != "failed":
                self._silent = {jid: s for jid, s in self._silent.items() if s.output != e.output}
            elif isinstance(e, ev.JobFinished) and e.jid is not None and e.output not in self._heard:
                self._silent[e.jid] = _Silent(e.sid, e.output, now)

    def _drop(self, book: SchedulerBook, output: str) -> list[ev.Event]:
        """One more failure of a scheduler, after which it starts nothing unless it keeps going (-k).

        Not of make: it keeps no log, so that only its words would show it.
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
