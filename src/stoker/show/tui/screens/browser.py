"""What the screens over recorded builds ask of the app that shows them, so that they need not know the app."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar, cast

from textual.app import App

from stoker.show.build_library import BuildLibrary, Far

T = TypeVar("T")


class Browser(Protocol):
    """An app over a library. One thing at a time is fetched, in a thread."""

    @property
    def far(self) -> float | None:
        """How far what is being fetched is, from 0 to 1; None while nothing is."""

    def fetch(self, work: Callable[[BuildLibrary, Far], T], done: Callable[[T], None]) -> None:
        """Have `work` done in a thread and then call `done`; a LibraryError is shown, and closes the screen on top."""

    def look(self) -> None:
        """Look at all builds anew."""

    def show_brief(self, build: str) -> None:
        """Show a build in brief."""

    def show_comparison(self, before: Sequence[str], after: Sequence[str]) -> None:
        """Show two sides beside each other."""

    def open_build(self, build: str) -> None:
        """Show a build's own screens; the list comes back when they are left."""


def browser_of(app: App[Any]) -> Browser:
    """The app as these screens know it."""
    return cast("Browser", app)
