"""The jobs of an attempt that were killed, as far as their processes show: by stoker, by a person, or by the kernel.

A job may be killed before anybody knows what it makes. Then its command identifies it, until its name is learnt.
Unaware of what the build says, and of what follows from a death.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stoker.engine.aftermath.command_forms import Words, forms, said
from stoker.model.events import KilledBy
from stoker.model.killed import same_output


@dataclass(slots=True)
class KnownKill:
    """One of them. `output` is empty until it is known; `rss` is the most it was seen to hold, bytes, None if nobody
    saw it."""

    jid: int | None
    output: str
    argv: Words
    by: KilledBy
    rss: int | None


class KilledJobs:
    """All of one attempt."""

    def __init__(self) -> None:
        self._all: list[KnownKill] = []
        self._named: list[KnownKill] = []

    def __iter__(self) -> Iterator[KnownKill]:
        return iter(self._all)

    def add(self, killed: KnownKill) -> None:
        """One more. A job that stoker kills may have lost a process to the kernel before: that counts then."""
        self._all.append(killed)

    def clear(self) -> None:
        """Another attempt begins."""
        self._all.clear()
        self._named.clear()

    def name(self, jid: int, output: str) -> None:
        """What that job makes has been learnt."""
        for killed in self._all:
            if killed.jid == jid and not killed.output:
                killed.output = output

    def find(self, output: str, command: str = "") -> KnownKill | None:
        """The one that made this, or ran this command. A nameless one that did has got its name then."""
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
        """Those that got their name from their command since the last call."""
        named, self._named = self._named, []
        return named
