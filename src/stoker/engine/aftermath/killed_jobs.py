"""The jobs of an attempt that were killed, as far as their processes show it: by stoker, by a person, or by the kernel.

A job may be killed before its output is known. Until then its command identifies it. Unaware of the build's output, and
of the consequences of a death.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stoker.engine.aftermath.command_forms import Words, forms, said
from stoker.model.events import KilledBy
from stoker.model.killed import same_output


@dataclass(slots=True)
class KnownKill:
    """A killed job. `output` is empty until it is known; `rss` is the most it was seen to hold, in bytes (None if
    nobody saw it)."""

    jid: int | None
    output: str
    argv: Words
    by: KilledBy
    rss: int | None


class KilledJobs:
    """The killed jobs of one attempt."""

    def __init__(self) -> None:
        self._all: list[KnownKill] = []
        self._named: list[KnownKill] = []

    def __iter__(self) -> Iterator[KnownKill]:
        return iter(self._all)

    def add(self, killed: KnownKill) -> None:
        """Add a job. If the kernel had killed one of its processes before stoker killed the job, the kernel's kill
        counts."""
        self._all.append(killed)

    def clear(self) -> None:
        """Start another attempt."""
        self._all.clear()
        self._named.clear()

    def name(self, jid: int, output: str) -> None:
        """Note that the output of a job has become known."""
        for killed in self._all:
            if killed.jid == jid and not killed.output:
                killed.output = output

    def find(self, output: str, command: str = "") -> KnownKill | None:
        """Return the killed job with this output or this command, and give it this name if it has none."""
        for killed in self._all:
            if same_output(killed.output, output):
                return killed
        printed = forms(command)
        for killed in self._all:
            if killed.argv and said(killed.argv) in printed:
                if not killed.output:
                    self._named.append(killed)
                killed.output = output
                return killed
        return None

    def take_named(self) -> list[KnownKill]:
        """Return the jobs that were named by their command since the last call."""
        named, self._named = self._named, []
        return named
