"""`${name}` in a profile's texts: variables with defaults and a person's own values. No shell, and no evaluation.

Unaware of files and of what the texts are for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from stoker.config.config_error import did_you_mean

NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")
"""What a variable may be called: small letters, so that nobody takes it for one of the environment."""

MAX_VALUE = 64 * 1024
"""Characters that a text may grow to: Linux takes 128 KiB as one word of a command (execve(2))."""

MAX_DEPTH = 100
"""Variables through which a text may refer to a value; ours do through two."""

_REFERENCE = re.compile(r"\$\$|\$\{([^{}]*)\}")


class Variables:
    """Values by name. `lists` are names that stand for any number of words where they are a word of their own.

    Values may refer to one another, but not to themselves.
    """

    def __init__(self, values: Mapping[str, str], lists: Mapping[str, Sequence[str]]) -> None:
        self._values = values
        self._lists = lists
        self._known: dict[str, str | ValueError] = {}

    def text(self, text: str) -> str:
        """Return the text with every reference replaced; `$$` is a dollar. Raises ValueError with the remedy."""
        return self._replaced(text, ())

    def words(self, word: str) -> Sequence[str]:
        """Return the words that a word of a command stands for: one, unless it is nothing but a reference to a list."""
        match = _REFERENCE.fullmatch(word)
        if match is not None and match[1] in self._lists:
            return self._lists[match[1]]
        return (self.text(word),)

    def used(self, text: str) -> frozenset[str]:
        """Return the names that a text depends on, also through other variables. Raises ValueError."""
        self.text(text)
        names: set[str] = set()
        texts = [text]
        while texts:
            new = {m[1] for m in _REFERENCE.finditer(texts.pop()) if m[1]} - names
            texts += [self._values[name] for name in new if name in self._values]
            names |= new
        return frozenset(names)

    def _replaced(self, text: str, within: tuple[str, ...]) -> str:
        parts, end, length = [], 0, 0
        for match in _REFERENCE.finditer(text):
            parts += [text[end : match.start()], self._value(match, within)]
            end = match.end()
            length += len(parts[-2]) + len(parts[-1])
            if length > MAX_VALUE:
                raise ValueError(f"grows beyond {MAX_VALUE // 1024} KiB when ${{...}} are replaced")
        return "".join([*parts, text[end:]])

    def _value(self, match: re.Match[str], within: tuple[str, ...]) -> str:
        name = match[1]
        if name is None:
            return "$"
        if name in within:
            raise ValueError(f"variable {name!r} refers to itself: {' -> '.join((*within, name))}")
        if name in self._values:
            return self._settled(name, within)
        if name in self._lists:
            return ";".join(self._lists[name])  # as CMake separates the elements of a list
        raise ValueError(f"unknown variable {name!r}{did_you_mean(name, [*self._values, *self._lists])}")

    def _settled(self, name: str, within: tuple[str, ...]) -> str:
        """Return a variable's value, computed once: a few that refer to one another twice each would take forever."""
        if len(within) >= MAX_DEPTH:
            raise ValueError(f"refers through more than {MAX_DEPTH} variables")
        if name not in self._known:
            try:
                self._known[name] = self._replaced(self._values[name], (*within, name))
            except ValueError as err:
                self._known[name] = err
        known = self._known[name]
        if isinstance(known, ValueError):
            raise known
        return known
