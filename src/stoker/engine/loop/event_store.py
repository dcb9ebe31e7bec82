"""The events of a build: written to the journal, counted into the state, and passed to viewers, in this order.

So a viewer never sees what is not recorded. Unaware of where events come from.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable, Sequence

from stoker.config.paths import BuildPaths
from stoker.model import events as ev
from stoker.model.reduce import reduce
from stoker.model.state import BuildState
from stoker.record.journal_reader import load_state
from stoker.record.journal_writer import JournalWriter

ROOM_SECONDS, TRY_SECONDS = 20.0, 0.1
"""How long the last records wait if the disk is full, and how often writing is retried."""


Publish = Callable[[Sequence[bytes], Sequence[ev.Record]], None]
"""Receives what viewers should see."""


class EventStore:
    """One build's journal, as far as it goes, and the resulting state."""

    def __init__(self, paths: BuildPaths) -> None:
        self._journal = JournalWriter(paths.journal)
        self._reserve = paths.journal_reserve
        self.state: BuildState = load_state(paths.journal)
        self.watched_until = self.state.time
        """Unix time of the last record of the previous engine: its contents were true then, not later."""
        self._problem: str | None = None

    def write(self, events: Iterable[ev.Event], now: float, publish: Publish) -> None:
        """Record these events, of Unix time `now`, count them, and pass them to `publish`."""
        lines, records = [], []
        for event in events:
            record, line = self._journal.append(event, now)
            self.state = reduce(self.state, record)
            records.append(record)
            lines.append(line)
        self._journal.flush()
        self._journal.checkpoint(self.state)
        publish(lines, records)
        self._report_problem(now, publish)

    def _report_problem(self, now: float, publish: Publish) -> None:
        """Report once that the journal cannot be written; records stay in memory and are written when there is
        space."""
        problem = self._journal.problem
        if problem != self._problem:
            self._problem = problem
            event = ev.Noticed("error", problem) if problem else ev.Noticed("info", "the journal can be written again")
            self.write([event], now, publish)

    async def close(self) -> None:
        """Close the journal. A full disk has space for the end, and often for all of it a while later."""
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
