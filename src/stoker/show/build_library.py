"""The interface through which screens read recorded builds, as values of `report/`. Knows no files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from stoker.report.comparison import Comparison
from stoker.report.summary import Brief
from stoker.report.trends import TrendLine

Far = Callable[[float], None]
"""Called with the progress of an operation, from 0 to 1."""


class LibraryError(Exception):
    """The requested data is not available; the message says why, in one line."""


class HistoryList(NamedTuple):
    """Builds in the order in which they began, their folder (empty: all folders), and the number of journals that are
    still to be read."""

    lines: tuple[TrendLine, ...]
    folder: str
    unread: int


class BuildLibrary(Protocol):
    """All recorded builds. Its methods may take a while; they are called in a thread, one at a time."""

    def history(self, *, everywhere: bool) -> HistoryList:
        """Return the builds of this folder, or of all folders, with what could be read within a second."""

    def brief(self, build: str, far: Far) -> Brief:
        """Return the summary of a build. Raises LibraryError."""

    def comparison(self, before: Sequence[str], after: Sequence[str], far: Far) -> Comparison:
        """Compare the runs of one side with those of the other. Raises LibraryError."""
