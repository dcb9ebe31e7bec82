"""Carries out what a person asks for by a key: commands go out in order, one at a time, while keys go on being heard.

What the build does not show yet is held as pending, for screens to draw at once. Unaware of widgets and sockets.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from stoker.model.events import MAX_LEVEL
from stoker.model.state import BuildState
from stoker.model.update import CommandRefused
from stoker.show.tui.input.pending import Act, Matter, Pending
from stoker.show.update_source import UpdateSource

SETTLE_SECONDS = 3.0
"""How long a request is still shown after the engine has accepted it: what it did shows at its next tick."""


@dataclass(slots=True)
class _QueuedCommand:
    """A command that has not gone out yet."""

    matter: Matter
    verb: str
    arguments: dict[str, object]
    change: int = 0
    """For a level: by how much, so that a burst of keys goes out as one command."""


class CommandQueue:
    """Takes pending and sends them. `refused` is called with the engine's reason, `changed` whenever pending change."""

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

    # -- what a person may ask for -----------------------------------------------------------------------------

    def change_level(self, by: int, state: BuildState) -> None:
        """More or fewer jobs, counted from what was asked for last. Memory stays as guarded as it is."""
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
        """So many jobs. Memory stays as guarded as it is."""
        self.pending = replace(self.pending, level=jobs)
        self._enqueue(_QueuedCommand("level", "level", {"jobs": jobs}), guarded=state.level.guarded)
        self._changed()

    def level_automatic(self) -> None:
        """As many jobs as there are cores and memory for; memory is guarded again."""
        self.pending = replace(self.pending, level="auto")
        self._enqueue(_QueuedCommand("level", "level", {"jobs": None}))
        self._changed()

    def pause(self, state: BuildState, *, now: bool) -> None:
        """Pause softly or `now`; go on if the build is paused so, or is frozen."""
        present = self.pending.paused or state.level.paused
        if present == "hard" or (present == "soft" and not now):
            self.pending = replace(self.pending, paused="no")
            self._enqueue(_QueuedCommand("pause", "resume", {}))
        else:
            self.pending = replace(self.pending, paused="hard" if now else "soft")
            self._enqueue(_QueuedCommand("pause", "pause", {"now": now}))
        self._changed()

    def act(self, jid: int, act: Act) -> None:
        """Freeze, thaw (or start), run alone or beside others again, or kill one job."""
        self.pending = replace(self.pending, acts={**self.pending.acts, jid: act})
        self._enqueue(_QueuedCommand(jid, "job", {"jid": jid, "act": act}))
        self._changed()

    # -- what becomes of it ------------------------------------------------------------------------------------

    def settle(self, state: BuildState) -> None:
        """Forget the pending that `state` shows, and those that nothing came of."""
        for matter, until in list(self._until.items()):
            if self._waiting[matter] == 0 and (self.pending.fulfilled(matter, state) or self._clock() >= until):
                self._forget(matter)

    async def work(self) -> None:
        """Send commands for ever."""
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
            self._answered(command.matter)  # as many steps up as down: nothing is left to ask for
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
        """What was asked for later about the same matter was meant on top of it."""
        self._commands = deque(c for c in self._commands if c.matter != matter)
        self._forget(matter)

    def _forget(self, matter: Matter) -> None:
        self.pending = self.pending.without(matter)
        self._waiting.pop(matter, None)
        self._until.pop(matter, None)
