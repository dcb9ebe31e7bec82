"""Engines that have other machines compile (distcc, sccache-dist, icecream), as they stand at one instant.

Frozen values, in the units of the journal. Unaware of how an engine is asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

RemoteKind = Literal["distcc", "icecream", "sccache"]

NO_HOST = "(no host)"
"""The host of a job that has lost its own: nothing of it works here, and its launcher waits for another one, or to
compile it here after all."""


@dataclass(frozen=True, slots=True)
class RemoteHost:
    """One machine that compiles for this build.

    `slots`: jobs that it takes at once, `taken`: those of them that others than this build use, where the engine says.
    `errors` counts the times that the engine gave it up, `fallbacks` the jobs of this build that it had and that were
    compiled here in the end. `why_unused`: why the engine sends nothing there now, empty where it does. `compiled`:
    compilations that the engine itself has counted there for this build, where it does; one job may take several.
    """

    name: str
    slots: int
    taken: int = 0
    errors: int = 0
    fallbacks: int = 0
    why_unused: str = ""
    compiled: int = 0


@dataclass(frozen=True, slots=True)
class RemoteEngine:
    """An engine, and the machines that it knows. `note`: why it has none, or what a person should know of it."""

    kind: RemoteKind
    hosts: tuple[RemoteHost, ...] = ()
    note: str = ""

    @property
    def slots(self) -> int:
        """How many jobs of this build can be elsewhere at once."""
        return sum(max(0, h.slots - h.taken) for h in self.hosts if not h.why_unused)
