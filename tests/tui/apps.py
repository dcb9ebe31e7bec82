"""Apps over fake sources, with the shipped themes and a clock that stands still."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from textual.pilot import Pilot

from stoker.config.themes import Theme, load_themes, theme_folders
from stoker.model.update import CommandRefused
from stoker.show.tui.app import StokerApp, ThemeWatch
from stoker.show.update_source import FindCause, GoOn, LookMemory

from .builds import FakeSource

THEMES, _ = load_themes(theme_folders())


class GoingOn:
    """Notes how a build was gone on with; refuses if it has a reason."""

    def __init__(self, refusal: str = "") -> None:
        self.asked: list[bool] = []
        self.refusal = refusal

    async def __call__(self, *, remedy: bool) -> None:
        self.asked.append(remedy)
        if self.refusal:
            raise CommandRefused(self.refusal)


def make_app(
    source: FakeSource,
    *,
    theme: str = "dark",
    themes: Mapping[str, Theme] = THEMES,
    keymap: Mapping[str, str] | None = None,
    watch_themes: ThemeWatch | None = None,
    ascii_only: bool = False,
    no_colour: bool = False,
    go_on: GoOn | None = None,
    looks: LookMemory | None = None,
    closing: Callable[[], str] = str,
    find_cause: FindCause | None = None,
    unresumable: str = "",
) -> StokerApp:
    return StokerApp(
        source,
        themes=themes,
        theme_name=theme,
        keymap=keymap,
        watch_themes=watch_themes,
        ascii_only=ascii_only,
        no_colour=no_colour,
        clock=lambda: 0.0,
        closing=closing,
        looks=looks,
        find_cause=find_cause,
        unresumable=unresumable,
        go_on=GoingOn() if go_on is None and not source.read_only else go_on,
    )


@asynccontextmanager
async def shown(
    source: FakeSource, *keys: str, size: tuple[int, int] = (80, 24), **options: Any
) -> AsyncIterator[tuple[StokerApp, Pilot[int]]]:
    """A running app after some keys."""
    app = make_app(source, **options)
    async with app.run_test(size=size, notifications=True) as pilot:
        await settle(pilot)
        for key in keys:
            await pilot.press(key)
            await settle(pilot)
        yield app, pilot


async def settle(pilot: Pilot[Any]) -> None:
    """Until workers and drawing have had their turn."""
    for _ in range(2):
        await pilot.pause(0)  # what waits in the queues, without the 20 ms and more that a look for idleness takes
    await pilot.pause()
