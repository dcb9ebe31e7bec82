"""The input and output of an engine's reader. Knows no particular engine, no decision and no screen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from stoker.contract.process import Key
from stoker.model.remote import RemoteEngine, RemoteKind
from stoker.sense.proc.jobs import JobUse


@dataclass(frozen=True, slots=True)
class RemoteLook:
    """The result of one look. `engine`: None while nothing is known of it. `waits`: which launcher processes wait for a
    host, and its name; the name is empty if the engine does not say which. `here`: which of them compile on this
    machine because the engine decided so."""

    engine: RemoteEngine | None = None
    waits: Mapping[Key, str] = field(default_factory=dict)
    here: frozenset[Key] = frozenset()


class RemoteReader(Protocol):
    """Reads one engine: returns a pure value for each look, at the cost of small reads.

    Whatever may take longer than a millisecond (asking a program, a server) happens in the background from time to
    time; a look returns the last answer. What it reads was written by other programs: it is bounded, checked, and never
    applied to a process that is not among the given ones.
    """

    kind: RemoteKind

    def adopt(self, known: RemoteEngine, at: float, /) -> None:
        """Continue from what another reader of this build had found by Unix time `at`: hosts and counts add to it."""

    def look(self, jobs: Sequence[JobUse], now: float) -> RemoteLook:
        """Read at Unix time `now`. `jobs` are the jobs of this build, including those on deck, whose command or
        processes show this engine's launcher; `JobUse.launchers` are the launcher processes."""

    def glance(self, launchers: Sequence[Key], now: float) -> Mapping[Key, str]:
        """Read, between two looks, only which of these launcher processes wait for a host."""

    def compiled_by(self, argv: Sequence[str], folder: str, /) -> str:
        """Return the host that had this command's compilation, by answers since the last call for it; empty if none is
        known. `argv` is of a job that has ended and that no look or glance has found there."""

    async def finish(self) -> RemoteEngine | None:
        """Read a last time after the build has ended; None if nothing is new since the last look."""

    def close(self) -> None:
        """Close everything, and end what was started."""
