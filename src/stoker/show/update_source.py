"""The interface between viewers and builds, as protocols.

Knows no sockets, journals or replay; those implement it elsewhere.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from typing import Protocol

from stoker.model.diagnosis import Cause
from stoker.model.events import KilledBy
from stoker.model.job_tree import ProcessTree
from stoker.model.look import Look
from stoker.model.state import Failure
from stoker.model.update import Update


class OutputLog(Protocol):
    """The build's raw output, by byte offset. It may grow while it is read."""

    def size(self) -> int:
        """Return the bytes written so far; 0 while there is no output."""
        ...

    def read(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from `offset`; fewer at the end."""
        ...


class UpdateSource(Protocol):
    """A build to show: live, ended or replayed."""

    @property
    def read_only(self) -> bool:
        """True if commands would be refused, so that no key that acts should be offered."""
        ...

    @property
    def log(self) -> OutputLog:
        """The build's output."""
        ...

    def updates(self) -> AsyncIterator[Update]:
        """Yield the state now and whenever it changes; ends after an update whose link is "ended"."""
        ...

    async def command(self, verb: str, **arguments: object) -> None:
        """Send a command; raises `stoker.model.update.CommandRefused`.

        Verbs of a live build: level(jobs: int | None, or change: int; ignore_memory: bool), pause(now: bool),
        resume(), job(jid: int, act: freeze, thaw, alone, together or kill), stop(force: bool). Verbs of a replay:
        replay_pause(), replay_seek(seconds: float, relative), replay_speed(factor: float).
        """
        ...

    async def processes(self, jid: int) -> ProcessTree:
        """Return the processes of one live job; raises `stoker.model.update.CommandRefused`.

        Only the engine knows them: they are in no journal.
        """
        ...


class LookMemory(Protocol):
    """Remembers where a build stood when the user last looked at it. Best effort: never raises."""

    def recall(self) -> Look | None:
        """Return the last look; None if there was none, or it could not be saved."""
        ...

    def remember(self, look: Look) -> None:
        """Replace the last look. May wait for a disk."""
        ...


class GoOn(Protocol):
    """Resumes a build that failed or was stopped."""

    async def __call__(self, *, remedy: bool) -> None:
        """Resume it, applying the diagnosis's remedy if `remedy`; raises `stoker.model.update.CommandRefused`."""
        ...


class FindCause(Protocol):
    """Finds why a step failed while the build still runs: the engine does so only at the end."""

    async def __call__(self, failure: Failure, killers: Collection[KilledBy], /) -> Cause | None:
        """Return the cause that the step's own output shows, with the words for who may have killed what it ran
        (model.killed.killers_of); None if no rule knows it. Raises OSError."""
        ...
