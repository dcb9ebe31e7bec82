"""Systems that compile on other machines (distcc, sccache-dist, icecream), at one instant.

Frozen values, in the units of the journal. Unaware of how a system is queried.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

RemoteKind = Literal["distcc", "icecream", "sccache"]

NO_HOST = "(no host)"
"""The host of a job that has lost its host: nothing of it works here, and its launcher waits for another one, or to
compile it here after all."""

NO_HOST_YET = "(no host yet)"
"""The host of a job that waits for its first one: it has yet to preprocess, and takes no core."""

HOSTLESS = ("", NO_HOST, NO_HOST_YET)
"""What `host` is for jobs that no other machine compiles."""

UNNAMED = "sccache-dist"
"""A job's host while it is unknown which of several servers has it."""


@dataclass(frozen=True, slots=True)
class RemoteHost:
    """One machine that compiles for this build.

    `slots`: jobs that it takes at once, `taken`: those of them that others than this build use, if the system reports
    it. `errors` counts how often the system gave up on it, `fallbacks` the jobs of this build that it had and that
    compiled here in the end. `why_unused`: why the system sends nothing there now, empty if it does. `compiled`:
    compilations that the system itself has counted there for this build, if it does; one job may take several. `lost`:
    it has failed or is gone, for everybody. `total` and `total_errors` are what the system counts there for all builds,
    from which a later engine continues.
    """

    name: str
    slots: int
    taken: int = 0
    errors: int = 0
    fallbacks: int = 0
    why_unused: str = ""
    compiled: int = 0
    lost: bool = False
    total: int = 0
    total_errors: int = 0


@dataclass(frozen=True, slots=True)
class RemoteEngine:
    """A system, and the machines that it knows. `note`: why it has none, or something that the user should know about
    it."""

    kind: RemoteKind
    hosts: tuple[RemoteHost, ...] = ()
    note: str = ""

    @property
    def slots(self) -> int:
        """How many jobs of this build can be elsewhere at once."""
        return sum(max(0, h.slots - h.taken) for h in self.hosts if not h.why_unused)


def got_its_name(before: Iterable[RemoteEngine], now: Iterable[RemoteEngine]) -> str:
    """Return the name of the only server of sccache-dist, if it was not known before; otherwise empty.

    What was counted at UNNAMED belongs to it.
    """
    were = {h.name for e in before for h in e.hosts}
    servers = [h.name for e in now if e.kind == "sccache" for h in e.hosts]
    return servers[0] if UNNAMED in were and len(servers) == 1 and servers[0] not in were else ""
