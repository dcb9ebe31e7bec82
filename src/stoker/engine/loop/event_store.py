"""What is told of a build: written into the journal, counted into the state, and given to viewers, in this order.

So nobody sees what is not written down. Unaware of where events come from.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from stoker.config.paths import BuildPaths
from stoker.model import events as ev
from stoker.model.reduce import reduce
from stoker.model.state import BuildState
from stoker.record.journal import JournalWriter, load_state

ROOM_SECONDS, TRY_SECONDS = 20.0, 0.1
"""How long the last records wait where the disk is full, and how often it is tried."""


class Ledger:
    """One build's journal, as far as it goes, and the state that follows from it."""

    def __init__(self, paths: BuildPaths) -> None:
        self._journal = JournalWriter(paths.journal)
        self._reserve = paths.journal_reserve
        self.state: BuildState = load_state(paths.journal)
        self.watched_until = self.state.time
        """Unix time of the last record of the engine before this one: what it says of jobs was true then, not later."""
        self.learn: Callable[[ev.JobFinished], ev.JobFinished] = lambda event: event
        """Told of each job's end before it is written down, which is what it gives back."""
        self.heard: Callable[[Iterable[ev.Event], float], None] = lambda _events, _now: None
        """Told of everything, with its Unix time."""
        self.publish: Callable[[Sequence[bytes], Sequence[ev.Record]], None] = lambda _lines, _records: None
        """Given what viewers are to see."""
        self._left: set[int] = set()
        self._problem: str | None = None

    def left(self, jid: int) -> None:
        """A job's process has ended. That is told before whatever is told next: another may have its place by then."""
        self._left.add(jid)

    @property
    def owes(self) -> bool:
        """Whether a job has left of which that has to be told."""
        return bool(self._left)

    def write(self, events: Iterable[ev.Event], now: float | None = None) -> None:
        """Tell of these events, of Unix time `now`."""
        now = time.time() if now is None else now
        lines, records = [], []
        for event in self._with_exits(list(events)):
            told = self.learn(event) if isinstance(event, ev.JobFinished) else event
            record, line = self._journal.append(told, now)
            self.state = reduce(self.state, record)
            records.append(record)
            lines.append(line)
        self.heard((record.event for record in records), round(now, 3))
        self._journal.flush()
        self._journal.checkpoint(self.state)
        self.publish(lines, records)
        self._report_problem(now)

    def _with_exits(self, events: list[ev.Event]) -> Iterator[ev.Event]:
        """Before them the jobs that have left; not those whose end is among them, or of which nothing was told yet."""
        if self._left:
            ends = {event.jid for event in events if isinstance(event, ev.JobFinished)}
            if gone := tuple(sorted(jid for jid in self._left - ends if jid in self.state.jobs)):
                yield ev.JobsExited(gone)
            self._left = {jid for jid in self._left if jid > self.state.last_jid}
        yield from events

    def _report_problem(self, now: float) -> None:
        """A journal that cannot be written is told to viewers once; it is in memory, and written when there is room."""
        problem = self._journal.problem
        if problem != self._problem:
            self._problem = problem
            event = ev.Noticed("error", problem) if problem else ev.Noticed("info", "the journal can be written again")
            self.write([event], now)

    async def close(self) -> None:
        """Nothing more will be told. A full disk has room for the end, and often for all of it a while later."""
        room = 0
        with contextlib.suppress(OSError):
            room = self._reserve.stat().st_size
            self._reserve.unlink()
        if self._journal.problem and room:
            self._journal.squeeze(room)
        give_up_at = time.monotonic() + ROOM_SECONDS
        while self._journal.problem and time.monotonic() < give_up_at:
            await asyncio.sleep(TRY_SECONDS)
            self._journal.flush()
        self._journal.close()
