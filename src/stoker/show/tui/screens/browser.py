"""The interface that the screens over recorded builds use to call their app, so that they do not depend on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar, cast

from textual.app import App

from stoker.show.build_library import BuildLibrary, Far

T = TypeVar("T")


class Browser(Protocol):
    """An app over a library. It fetches one item at a time, in a thread."""

    @property
    def far(self) -> float | None:
        """The progress of the current fetch, from 0 to 1; None while nothing is fetched."""

    def fetch(self, work: Callable[[BuildLibrary, Far], T], done: Callable[[T], None]) -> None:
        """Run `work` in a thread and then call `done`; a LibraryError is shown, and closes the screen on top."""

    def look(self) -> None:
        """Read the list of builds again."""

    def show_brief(self, build: str) -> None:
        """Show the summary of a build."""

    def show_comparison(self, before: Sequence[str], after: Sequence[str]) -> None:
        """Show the comparison of two sides."""

    def open_build(self, build: str) -> None:
        """Show a build's own screens; leaving them returns to the list."""


def browser_of(app: App[Any]) -> Browser:
    """Return the app as these screens see it."""
    return cast("Browser", app)
