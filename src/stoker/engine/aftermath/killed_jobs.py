"""The jobs of an attempt that were killed, as far as their processes tell: by stoker, by a person, or by the kernel.

A job may be killed before anybody knows what it makes. Then its command tells it apart, until its name is learnt.
Unaware of what the build says, and of what follows from a death.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stoker.engine.aftermath.command_forms import Words, forms, said
from stoker.model.events import KilledBy
from stoker.model.killed import same_output


@dataclass(slots=True)
class Casualty:
    """One of them. `output` is empty until it is known; `rss` is the most it was seen to hold, bytes, None if nobody
    saw it."""

    jid: int | None
    output: str
    argv: Words
    by: KilledBy
    rss: int | None


class Casualties:
    """All of one attempt."""

    def __init__(self) -> None:
        self._all: list[Casualty] = []
        self._named: list[Casualty] = []

    def __iter__(self) -> Iterator[Casualty]:
        return iter(self._all)

    def add(self, casualty: Casualty) -> None:
        """One more. A job that stoker kills may have lost a process to the kernel before: that counts then."""
        self._all.append(casualty)

    def clear(self) -> None:
        """Another attempt begins."""
        self._all.clear()
        self._named.clear()

    def name(self, jid: int, output: str) -> None:
        """What that job makes has been learnt."""
        for casualty in self._all:
            if casualty.jid == jid and not casualty.output:
                casualty.output = output

    def find(self, output: str, command: str = "") -> Casualty | None:
        """The one that made this, or ran this command. A nameless one that did has got its name then."""
        for casualty in self._all:
            if same_output(casualty.output, output):
                return casualty
        printed = forms(command)
        for casualty in self._all:
            if casualty.argv and said(casualty.argv) in printed:
                if not casualty.output:
                    self._named.append(casualty)
                casualty.output = output
                return casualty
        return None

    def take_named(self) -> list[Casualty]:
        """Those that got their name from their command since the last call."""
        named, self._named = self._named, []
        return named
