"""Sends the commands that a person gives by key: in order, one at a time, without blocking further keys.

Requests that the build does not show yet are kept as pending, so that screens can draw them at once. Knows no widgets
and no sockets.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from stoker.model.bounds import MAX_LEVEL
from stoker.model.state import BuildState
from stoker.model.update import CommandRefused
from stoker.show.tui.input.pending import Act, Matter, Pending
from stoker.show.update_source import UpdateSource

SETTLE_SECONDS = 3.0
"""How long a request is still shown after the engine has accepted it: its effect shows at the next tick."""


@dataclass(slots=True)
class _QueuedCommand:
    """A command that has not been sent yet."""

    matter: Matter
    verb: str
    arguments: dict[str, object]
    change: int = 0
    """For a level: the difference, so that a burst of keys is sent as one command."""


class CommandQueue:
    """Queues requests and sends them. Calls `refused` with the engine's reason, `changed` when `pending` changes."""

    def __init__(
        self,
        source: UpdateSource,
        refused: Callable[[str], None],
        changed: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.pending = Pending()
        self._source = source
        self._refused = refused
        self._changed = changed
        self._clock = clock
        self._waiting: Counter[Matter] = Counter()
        self._until: dict[Matter, float] = {}
        self._commands: deque[_QueuedCommand] = deque()
        self._arrived = asyncio.Event()

    # -- requests ----------------------------------------------------------------------------------------------

    def change_level(self, by: int, state: BuildState) -> None:
        """Change the level, counting from the last request. Whether memory is guarded does not change."""
        now = self.pending.level if isinstance(self.pending.level, int) else state.level.target
        if now is None:
            self._refused("this build has no level: stoker does not govern it")
            return
        target = max(1, min(MAX_LEVEL, now + by))
        if target == now:
            self._refused("one job runs at least; to run nothing, pause" if by < 0 else f"{now} is the highest level")
            return
        self.pending = replace(self.pending, level=target)
        last = self._commands[-1] if self._commands else None
        if last is not None and last.change:
            last.change += target - now
        else:
            self._enqueue(_QueuedCommand("level", "level", {}, target - now), guarded=state.level.guarded)
        self._changed()

    def set_level(self, jobs: int, state: BuildState) -> None:
        """Set the level to `jobs`. Whether memory is guarded does not change."""
        self.pending = replace(self.pending, level=jobs)
        self._enqueue(_QueuedCommand("level", "level", {"jobs": jobs}), guarded=state.level.guarded)
        self._changed()

    def level_automatic(self) -> None:
        """Make the level automatic: as many jobs as cores and memory allow; memory is guarded again."""
        self.pending = replace(self.pending, level="auto")
        self._enqueue(_QueuedCommand("level", "level", {"jobs": None}))
        self._changed()

    def pause(self, state: BuildState, *, now: bool) -> None:
        """Pause softly, or freeze if `now`; unpause if the build is already in that state, or frozen."""
        present = self.pending.paused or state.level.paused
        if present == "hard" or (present == "soft" and not now):
            self.pending = replace(self.pending, paused="no")
            self._enqueue(_QueuedCommand("pause", "resume", {}))
        else:
            self.pending = replace(self.pending, paused="hard" if now else "soft")
            self._enqueue(_QueuedCommand("pause", "pause", {"now": now}))
        self._changed()

    def act(self, jid: int, act: Act) -> None:
        """Freeze, thaw (or start), or kill one job, run it alone, or let others run again."""
        self.pending = replace(self.pending, acts={**self.pending.acts, jid: act})
        self._enqueue(_QueuedCommand(jid, "job", {"jid": jid, "act": act}))
        self._changed()

    # -- sending -----------------------------------------------------------------------------------------------

    def settle(self, state: BuildState) -> None:
        """Forget the requests that `state` shows, and those that had no effect in time."""
        for matter, until in list(self._until.items()):
            if self._waiting[matter] == 0 and (self.pending.fulfilled(matter, state) or self._clock() >= until):
                self._forget(matter)

    async def work(self) -> None:
        """Send commands forever."""
        while True:
            await self._arrived.wait()
            while self._commands:
                await self._send(self._commands.popleft())
            self._arrived.clear()

    def _enqueue(self, command: _QueuedCommand, *, guarded: bool = True) -> None:
        if not guarded:
            command.arguments["ignore_memory"] = True
        self._waiting[command.matter] += 1
        self._commands.append(command)
        self._arrived.set()

    async def _send(self, command: _QueuedCommand) -> None:
        if command.change:
            command.arguments["change"] = command.change
        elif command.verb == "level" and "jobs" not in command.arguments:
            self._answered(command.matter)  # as many steps up as down: nothing to send
            return
        try:
            await self._source.command(command.verb, **command.arguments)
        except CommandRefused as refusal:
            self._drop(command.matter)
            self._refused(str(refusal))
            self._changed()
        else:
            self._answered(command.matter)

    def _answered(self, matter: Matter) -> None:
        self._waiting[matter] -= 1
        self._until[matter] = self._clock() + SETTLE_SECONDS

    def _drop(self, matter: Matter) -> None:
        """Drop all requests about a matter: later ones assumed that this one would succeed."""
        self._commands = deque(c for c in self._commands if c.matter != matter)
        self._forget(matter)

    def _forget(self, matter: Matter) -> None:
        self.pending = self.pending.without(matter)
        self._waiting.pop(matter, None)
        self._until.pop(matter, None)
