"""Configuration files as sources of choices: read at the start, and again when one of them has changed.

Unaware of what is done with the choices.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from stoker.config.choices import Choices, ReadChoices
from stoker.config.config_error import ConfigError
from stoker.config.file_watch import Stamp, stamp_of

SETTLE_SECONDS = 0.1
"""How long a changed file must stay unchanged before it is read: some editors empty it before they write."""

SETTLE_LOOKS = 20
"""Checks of a file that keeps changing before it is read anyway; it is read again after the next change."""

UNREAD: Stamp = (0, 0, 0, 1)
"""For a file that has not been read yet."""


class Reading(NamedTuple):
    """The values of a source after a change. `changed` is the file that was edited, `owner` the user ID that it belongs
    to.

    `rest`: something else in it has changed, which no choice shows.
    """

    source: Source
    choices: Choices
    faults: list[ConfigError]
    changed: Path
    owner: int
    rest: bool


class Source:
    """One kind of file, with the paths that it was last read from and their state then."""

    def __init__(
        self, read: Callable[[Choices], ReadChoices], places: Iterable[Path], pause: Callable[[float], object]
    ) -> None:
        """`read` returns its values, merged over choices; `pause` waits for so many seconds, or less when the build is
        over."""
        self._read = read
        self._pause = pause
        self._stamps = dict.fromkeys(places, UNREAD)
        self._rest: object = None
        self._known = False

    @property
    def files(self) -> frozenset[Path]:
        """The paths of its files, existing or not."""
        return frozenset(self._stamps)

    def first(self, before: Choices) -> ReadChoices:
        """Return its values, at the start."""
        stamps = _stamps(self._stamps)
        found = self._read(before)
        self._keep(found, stamps)
        return found

    def again(self, before: Choices) -> Reading | None:
        """Return its values if one of its files has changed; None if none has."""
        if _stamps(self._stamps) == self._stamps:
            return None
        old, rest, known = self._stamps, self._rest, self._known
        stamps = self._settled()
        found = self._read(before)
        self._keep(found, stamps)
        now = self._stamps
        changed = max(now, key=lambda file: (old.get(file) != now[file], now[file]))
        other = known and not found.faults and found.rest != rest
        return Reading(self, found.choices, found.faults, changed, _owner(changed), other)

    def _keep(self, found: ReadChoices, stamps: Mapping[Path, Stamp]) -> None:
        """Remember the state of the files before they are read."""
        # If a chain of files is broken for a moment, the part below the break is still awaited.
        files = {*found.files, *stamps} if found.faults else found.files
        self._stamps = {file: stamps[file] if file in stamps else stamp_of(file) for file in files}
        if not found.faults:
            self._rest, self._known = found.rest, True

    def _settled(self) -> dict[Path, Stamp]:
        """Wait until the files stop changing, and return their state."""
        stamps = _stamps(self._stamps)
        for _ in range(SETTLE_LOOKS):
            self._pause(SETTLE_SECONDS)
            before, stamps = stamps, _stamps(self._stamps)
            if stamps == before:
                break
        return stamps


def _stamps(files: Iterable[Path]) -> dict[Path, Stamp]:
    return {file: stamp_of(file) for file in files}


def _owner(file: Path) -> int:
    """The owner of a missing file: us."""
    try:
        return os.stat(file).st_uid
    except OSError:
        return os.getuid()
