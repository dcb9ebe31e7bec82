"""The seam between screens and builds: what a screen is given, as protocols.

Unaware of sockets, journals and replay, which implement these elsewhere.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from stoker.model.job_tree import ProcessTree
from stoker.model.look import Look
from stoker.model.update import Update


class OutputLog(Protocol):
    """The build's raw output, by byte offset. It may grow while it is read."""

    def size(self) -> int:
        """Bytes written so far; 0 while there is no output."""
        ...

    def read(self, offset: int, length: int) -> bytes:
        """Up to `length` bytes from `offset`; fewer at the end."""
        ...


class UpdateSource(Protocol):
    """A build to look at: live, ended or replayed."""

    @property
    def read_only(self) -> bool:
        """True when commands would be refused: no key that acts should be offered."""
        ...

    @property
    def log(self) -> OutputLog:
        """The build's output."""
        ...

    def updates(self) -> AsyncIterator[Update]:
        """The state now, then again whenever it changes; ends after an update whose link is "ended"."""
        ...

    async def command(self, verb: str, **arguments: object) -> None:
        """Ask for something; raises `stoker.model.update.CommandRefused`.

        Verbs of a live build: level(jobs: int | None, or change: int; ignore_memory: bool), pause(now: bool),
        resume(), job(jid: int, act: freeze, thaw, alone, together or kill), stop(force: bool). Verbs of a replay:
        replay_pause(), replay_seek(seconds: float, relative), replay_speed(factor: float).
        """
        ...

    async def processes(self, jid: int) -> ProcessTree:
        """The processes of one job that lives; raises `stoker.model.update.CommandRefused`.

        Only the engine can say: they are in no journal.
        """
        ...


class LookMemory(Protocol):
    """Remembers where a build stood when its person last looked at it, as well as it can: nothing is raised."""

    def recall(self) -> Look | None:
        """The last look; None on the first one, or where nothing can be remembered."""
        ...

    def remember(self, look: Look) -> None:
        """Replace the last look. It may wait for a disk."""
        ...


class GoOn(Protocol):
    """Starts the build that goes on with one that failed or was stopped."""

    async def __call__(self, *, remedy: bool) -> None:
        """Start it, with what the diagnosis offers if `remedy`; raises `stoker.model.update.CommandRefused`."""
        ...
