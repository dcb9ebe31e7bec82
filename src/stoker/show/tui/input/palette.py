"""The command palette: finds commands by any name that a person may know. Does not know what they do.

A name is the footer's, the command line's, or the action's own; matches in the description rank after those.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, cast

from textual.app import App
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.screen import Screen

_NAMED, _BEGUN, _DESCRIBED = 3000.0, 2000.0, 1000.0
"""Scores of a name, a prefix of one, and words of the description; all above scattered letters (0-999)."""


@dataclass(frozen=True, slots=True)
class PaletteCommand:
    """One line of the palette: `names` and `title` are searched, `title` is shown, with `hint` below it."""

    names: tuple[str, ...]
    title: str
    hint: str
    run: Callable[[], Any]


class HasCommands(Protocol):
    """An app with commands to search."""

    def commands(self, screen: Screen[Any]) -> Iterator[PaletteCommand]:
        """Return the commands available on a screen, in the order of the help."""
        ...


class Commands(Provider):
    """Searches commands for the palette."""

    @property
    def _commands(self) -> list[PaletteCommand]:
        return list(cast("HasCommands", cast("App[Any]", self.app)).commands(self.screen))

    async def discover(self) -> Hits:
        """Yield all commands, while nothing is typed."""
        for command in self._commands:
            yield DiscoveryHit(command.title, command.run, help=command.hint)

    async def search(self, query: str) -> Hits:
        """Yield the commands that match a query: by name, then by description; by letters if there are no others."""
        matcher = self.matcher(query)
        weighed = [(weight_of(query, command, matcher.match(command.title)), command) for command in self._commands]
        least = _DESCRIBED if any(weight >= _DESCRIBED for weight, _ in weighed) else 0
        for number, (weight, command) in enumerate(weighed):
            if weight > 0 and weight >= least:
                # The palette orders equal scores arbitrarily; rank them in the order of the help.
                yield Hit(weight - number / 1000, matcher.highlight(command.title), command.run, help=command.hint)


def weight_of(query: str, command: PaletteCommand, letters: float) -> float:
    """Return the score of a query for a command; `letters` is the fuzzy score of its title, 0 if it does not match."""
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
