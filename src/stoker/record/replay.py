"""Plays a recorded journal like a live build, at any speed, forwards and backwards.

Unaware of screens and of the engine. Implements `stoker.show.update_source.UpdateSource` structurally.
"""

from __future__ import annotations

import asyncio
import math
import time
from bisect import bisect_right
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stoker.model.events import Record
from stoker.model.job_tree import ProcessTree
from stoker.model.reduce import reduce
from stoker.model.state import BuildState
from stoker.model.update import CommandRefused, Link, Update
from stoker.record.journal_reader import JournalReader
from stoker.record.output_log import FileLog

CHECKPOINT_RECORDS = 500
"""Records between two saved states: going back then costs about 20 ms."""

MAX_CHECKPOINTS = 400
"""Beyond this, every second one is dropped and the spacing doubles: memory stays within some 10 MB."""

STEP_SECONDS = 0.1
"""Records closer together than this (on the viewer's clock) are shown at once; screens do not draw faster."""

BATCH_RECORDS = 200
"""Records reduced in one go before others get a turn: about 10 ms."""


@dataclass(frozen=True, slots=True)
class _Checkpoint:
    time: float
    offset: int
    state: BuildState


class _Tape:
    """The journal with a position: steps forwards record by record, and jumps by checkpoints."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._spacing = CHECKPOINT_RECORDS
        self._since_checkpoint = 0
        self.start: float | None = None
        """Unix time of the first record, once it was read."""
        self._checkpoints = [_Checkpoint(-math.inf, 0, BuildState())]
        self._load(self._checkpoints[0])

    def _load(self, checkpoint: _Checkpoint) -> None:
        self.state = checkpoint.state
        self._reader = JournalReader(self._path, checkpoint.offset, follow_links=True)
        self._records: Iterator[Record] = iter(self._reader)
        self._since_checkpoint = 0
        self._advance()

    def _advance(self) -> None:
        self.offset = self._reader.offset
        self.next: Record | None = next(self._records, None)
        if self.start is None and self.next is not None:
            self.start = self.next.time

    @property
    def at_end(self) -> bool:
        """Whether every record was taken."""
        return self.next is None

    def step(self) -> None:
        """Take the next record."""
        if self.next is None:
            return
        self.state = reduce(self.state, self.next)
        self._advance()
        self._since_checkpoint += 1
        if self._since_checkpoint >= self._spacing:
            self._since_checkpoint = 0
            self._remember()

    def _remember(self) -> None:
        if self.state.time <= self._checkpoints[-1].time:
            return
        # `offset` is before the record that was read ahead.
        self._checkpoints.append(_Checkpoint(self.state.time, self.offset, self.state))
        if len(self._checkpoints) > MAX_CHECKPOINTS:
            del self._checkpoints[1::2]
            self._spacing *= 2

    def rewind(self, target: float) -> None:
        """Go to the last checkpoint at or before Unix time `target`, unless the position is a better one."""
        index = bisect_right(self._checkpoints, target, key=lambda c: c.time) - 1
        best = self._checkpoints[max(0, index)]
        if self.state.time > target or best.time > self.state.time:
            self._load(best)


class ReplaySource:
    """Plays `journal` at `speed` times real time (math.inf: as fast as it can be read).

    With `hold_at_end` the last state stays and one may seek back; otherwise updates end like those of an ended build.
    """

    def __init__(
        self,
        journal: Path,
        speed: float = 1.0,
        *,
        hold_at_end: bool = False,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._tape_path = journal
        self._speed = speed
        self._hold_at_end = hold_at_end
        self._clock = clock
        self._sleep = sleep
        self._paused = False
        self._wake = asyncio.Event()
        self._tape: _Tape | None = None
        self._anchor = (0.0, 0.0)
        """A recorded time and the clock's reading at which it was, or will be, shown."""
        self._target: float | None = None
        self._log = FileLog(journal.with_name("output.log"))

    @property
    def read_only(self) -> bool:
        """There is no running build to act on."""
        return True

    @property
    def log(self) -> FileLog:
        """The build's output, if it is next to the journal."""
        return self._log

    async def updates(self) -> AsyncIterator[Update]:
        """Yield states as time passes; raises JournalError for a file that is not a journal."""
        tape = self._tape = _Tape(self._tape_path)
        self._set_position(tape.start or 0.0)
        while True:
            self._wake.clear()
            await self._seek(tape)
            await self._play_due(tape)
            if tape.at_end and not self._hold_at_end and self._target is None:
                yield self._update("ended")
                return
            yield self._update("replay")
            await self._wait(self._seconds_to_next(tape))

    async def command(self, verb: str, **arguments: object) -> None:
        """replay_pause(), replay_seek(seconds, relative=True), replay_speed(factor); else CommandRefused."""
        if verb == "replay_pause":
            self._set_position(self._position())
            self._paused = not self._paused
        elif verb == "replay_seek":
            seconds = _number(arguments.get("seconds"), "replay_seek takes seconds")
            relative = arguments.get("relative", True) is not False
            self._target = seconds + (self._position() if relative else self._start())
        elif verb == "replay_speed":
            factor = _number(arguments.get("factor"), "replay_speed takes a factor above 0")
            if factor <= 0:
                raise CommandRefused("replay_speed takes a factor above 0")
            self._set_position(self._position())
            self._speed = factor
        else:
            raise CommandRefused("this is a replay; nothing runs that could do it")
        self._wake.set()

    async def processes(self, jid: int) -> ProcessTree:  # noqa: ARG002
        """Refuse: raises CommandRefused."""
        raise CommandRefused("a replay has none: they are in no journal")

    def _start(self) -> float:
        return (self._tape.start if self._tape is not None else None) or 0.0

    def _position(self) -> float:
        """Return the recorded time that is shown now."""
        shown, at = self._anchor
        if self._tape is None or self._tape.at_end or self._target is not None:
            return self._target if self._target is not None else shown
        if self._paused:
            return shown
        if math.isinf(self._speed):
            return self._tape.state.time
        return shown + (self._clock() - at) * self._speed

    def _set_position(self, recorded: float) -> None:
        self._anchor = (recorded, self._clock())

    async def _seek(self, tape: _Tape) -> None:
        """Go to the target of the last seek, if one is waiting."""
        while self._target is not None:
            target = max(self._target, self._start())
            self._target = None
            tape.rewind(target)
            if await self._play_to(tape, target):
                self._set_position(tape.state.time if tape.at_end else target)

    async def _play_due(self, tape: _Tape) -> None:
        if self._paused:
            return
        if math.isinf(self._speed):
            for _ in range(BATCH_RECORDS):
                tape.step()
            await self._sleep(0)
        else:
            await self._play_to(tape, self._position())
        if tape.at_end:
            self._set_position(tape.state.time)

    async def _play_to(self, tape: _Tape, target: float) -> bool:
        """Take every record up to Unix time `target`; False when a new seek came in between."""
        steps = 0
        while tape.next is not None and tape.next.time <= target and self._target is None:
            tape.step()
            steps += 1
            if steps % BATCH_RECORDS == 0:
                await self._sleep(0)
        return self._target is None

    def _seconds_to_next(self, tape: _Tape) -> float | None:
        """Return how long nothing changes; None: until a command comes."""
        if self._paused or tape.next is None:
            return None
        if math.isinf(self._speed):
            return 0.0
        return max(STEP_SECONDS, (tape.next.time - self._position()) / self._speed)

    async def _wait(self, seconds: float | None) -> None:
        """Sleep, but wake up for a command."""
        if self._wake.is_set():
            return
        if seconds == 0.0:
            await self._sleep(0)
            return
        waiting: set[asyncio.Future[Any]] = {asyncio.ensure_future(self._wake.wait())}
        if seconds is not None:
            waiting.add(asyncio.ensure_future(self._sleep(seconds)))
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    def _update(self, link: Link) -> Update:
        tape = self._tape
        state = tape.state if tape is not None else BuildState()
        if self._paused:
            note = "paused"
        elif tape is not None and tape.at_end:
            note = "the end"
        else:
            note = "as fast as possible" if math.isinf(self._speed) else f"{self._speed:g}x"
        return Update(state, link, note)


def _number(value: object, usage: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        raise CommandRefused(usage)
    return float(value)
