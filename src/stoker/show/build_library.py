"""What the screens over recorded builds ask for, as values of `report/`. Unaware of files, and of who answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from stoker.report.comparison import Comparison
from stoker.report.summary import Brief
from stoker.report.trends import TrendLine

Far = Callable[[float], None]
"""Hears how far something is, from 0 to 1."""


class LibraryError(Exception):
    """What was asked for cannot be had; the message is one line that says why."""


class HistoryList(NamedTuple):
    """Builds in the order in which they began, the folder that they are of (empty: of all), and of how many of them the
    journal is yet to be read."""

    lines: tuple[TrendLine, ...]
    folder: str
    unread: int


class BuildLibrary(Protocol):
    """All recorded builds. Its methods may take a while, and are called in a thread, one at a time."""

    def history(self, *, everywhere: bool) -> HistoryList:
        """Return the builds of this folder, or of all, as far as they have been read: within a second."""

    def brief(self, build: str, far: Far) -> Brief:
        """Return a build in brief. Raises LibraryError."""

    def comparison(self, before: Sequence[str], after: Sequence[str], far: Far) -> Comparison:
        """Hold the runs of one side against those of another. Raises LibraryError."""
