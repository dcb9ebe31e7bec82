"""What a reader of one engine is given, and what it answers. Unaware of any engine, of decisions and of screens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from stoker.contract.process import Key
from stoker.model.remote import RemoteEngine, RemoteKind
from stoker.sense.proc.jobs import JobUse


@dataclass(frozen=True, slots=True)
class RemoteLook:
    """What one look has found. `engine`: None while nothing is known of it. `waits`: which launchers' processes wait
    for a host, and its name; the name is empty where the engine does not say which. `here`: which of them have their
    compilation done on this machine, since the engine wants it so."""

    engine: RemoteEngine | None = None
    waits: Mapping[Key, str] = field(default_factory=dict)
    here: frozenset[Key] = frozenset()


class RemoteReader(Protocol):
    """Reads one engine: a pure value for each look, at the price of small reads.

    Whatever may take longer than a millisecond (asking a program, a server) goes on in the background, now and then;
    a look gives the last answer. What it reads was written by others: bounded, checked, and never believed to be about
    a process that is not among those it is given.
    """

    kind: RemoteKind

    def adopt(self, known: RemoteEngine, at: float, /) -> None:
        """Go on from what another reader of this build had found by Unix time `at`: hosts and counts add to it."""

    def look(self, jobs: Sequence[JobUse], now: float) -> RemoteLook:
        """Read at Unix time `now`. `jobs` are those of this build whose command or whose processes show this engine's
        launcher, those on deck among them; `JobUse.launchers` are the launchers' processes."""

    def glance(self, launchers: Sequence[Key], now: float) -> Mapping[Key, str]:
        """Read between two looks which of these launchers' processes wait for a host: nothing else."""

    async def finish(self) -> RemoteEngine | None:
        """Read a last time, when the build has ended; None if nothing more is known than at the last look."""

    def close(self) -> None:
        """Let go of everything; ends what was started."""
