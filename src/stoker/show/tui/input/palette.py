"""The command palette: finds commands by any name a person may know them by. Unaware of what they do.

A name is what the footer calls it, what the command line does, or the action's own; the description counts after those.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, cast

from textual.app import App
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.screen import Screen

_NAMED, _BEGUN, _DESCRIBED = 3000.0, 2000.0, 1000.0
"""What a name, the beginning of one, and words of the description weigh: all more than letters strewn about (0-999)."""


@dataclass(frozen=True, slots=True)
class PaletteCommand:
    """One line of the palette: `names` find it, `title` is shown and finds it, `hint` stands below."""

    names: tuple[str, ...]
    title: str
    hint: str
    run: Callable[[], Any]


class HasCommands(Protocol):
    """An app whose commands are found."""

    def commands(self, screen: Screen[Any]) -> Iterator[PaletteCommand]:
        """What can be done from a screen, in the order of the help."""
        ...


class Commands(Provider):
    """Looks commands up for the palette."""

    @property
    def _commands(self) -> list[PaletteCommand]:
        return list(cast("HasCommands", cast("App[Any]", self.app)).commands(self.screen))

    async def discover(self) -> Hits:
        """All of them, while nothing is typed."""
        for command in self._commands:
            yield DiscoveryHit(command.title, command.run, help=command.hint)

    async def search(self, query: str) -> Hits:
        """Those that a query means, by name before by description before by letters."""
        matcher = self.matcher(query)
        for number, command in enumerate(self._commands):
            weight = weight_of(query, command, matcher.match(command.title))
            if weight > 0:
                # Of equals the palette shows any first; the one that stands first in the help is meant.
                yield Hit(weight - number / 1000, matcher.highlight(command.title), command.run, help=command.hint)


def weight_of(query: str, command: PaletteCommand, letters: float) -> float:
    """How well a query finds a command; `letters` is how well its letters stand in the title, 0 if they do not."""
    words, title = query.strip().lower(), command.title.lower()
    if not words:
        return 0
    if words in command.names:
        return _NAMED
    if any(name.startswith(words) for name in command.names):
        return _BEGUN
    if words in title:
        return _DESCRIBED
    return min(letters, _DESCRIBED - 1)
