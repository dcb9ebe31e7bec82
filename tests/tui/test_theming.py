from __future__ import annotations

import re

import pytest
from textual.color import Color

from stoker.config.contrast import contrast
from stoker.model.text import Ink
from stoker.show.tui.terminal.theming import Palette, textual_theme

from . import builds
from .apps import THEMES, shown
from .builds import FakeSource


@pytest.mark.parametrize("name", THEMES)
async def test_every_theme_draws_every_screen(name: str) -> None:
    source = FakeSource(builds.running(12).state, log=builds.output_log(50))
    async with shown(source, "o", "t", "f", "d", "s", theme=name) as (app, _pilot):
        assert app.is_running


@pytest.mark.parametrize("name", THEMES)
def test_every_token_is_a_colour_to_rich_and_to_textual(name: str) -> None:
    palette = Palette(THEMES[name])
    for token in THEMES[name].colors:
        assert palette.style(token).color is not None
    colors = textual_theme(THEMES[name], "x").to_color_system().generate()
    assert Color.parse(colors["accent"])


@pytest.mark.parametrize(
    "keys", [(), ("down",), ("colon",), ("colon", *"pau"), ("slash",), ("question_mark",), ("z",), ("t",)]
)
@pytest.mark.parametrize("name", [name for name, theme in THEMES.items() if not theme.ansi])
async def test_every_word_on_a_screen_is_readable(name: str, keys: tuple[str, ...]) -> None:
    async with shown(FakeSource(builds.governed().state), *keys, theme=name) as (app, pilot):
        await pilot.pause(0.2 if "colon" in keys else 0)  # the palette searches in a worker
        for strip in app.screen._compositor.render_strips():
            for text, style, _ in strip:
                if re.search(r"\w\w", text) and style is not None:
                    assert style.color is not None
                    assert style.bgcolor is not None
                    colours = (color.get_truecolor().hex for color in (style.color, style.bgcolor))
                    assert contrast(*colours) >= 4.5, text


@pytest.mark.parametrize("name", [name for name, theme in THEMES.items() if not theme.ansi])
def test_the_terminals_colours_in_output_are_readable_and_distinct(name: str) -> None:
    palette, background = Palette(THEMES[name]), THEMES[name].colors["background"]
    drawn = {}
    for colour in ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"):
        for ink in (Ink(fg=colour), Ink(fg=f"bright_{colour}")):
            style = palette.style(ink)
            assert style.color is not None
            drawn[colour] = style.color.get_truecolor().hex
            assert contrast(drawn[colour], background) >= 4.5, colour
    assert len(set(drawn.values())) == len(drawn), "gcc's errors are red and its warnings magenta"


def test_output_on_a_background_of_its_own_keeps_its_colours() -> None:
    style = Palette(THEMES["dark"]).style(Ink(fg="black", bg="yellow"))
    assert style.color is not None
    assert style.bgcolor is not None
    assert (style.color.name, style.bgcolor.name) == ("black", "yellow")


def test_without_colour_meaning_stays_as_attributes() -> None:
    palette = Palette(THEMES["dark"], no_colour=True)
    inks: list[str | Ink] = [*THEMES["dark"].colors, "cursor_text on cursor", Ink(fg="red", bg="#123456", bold=True)]
    for ink in inks:
        style = palette.style(ink)
        assert style.color is None
        assert style.bgcolor is None
    assert palette.style("cursor_text on cursor").reverse
    assert palette.style("error bold").bold
    assert palette.style(Ink(fg="red", bold=True)).bold


async def test_no_colour_reaches_the_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    source = FakeSource(builds.running(12).state, log=builds.output_log(50))
    async with shown(source, "s", no_colour=True) as (app, _pilot):
        for strip in app.screen._compositor.render_strips():
            for segment in strip:
                style = segment.style
                assert style is None or style.color is None or style.color.is_default
                assert style is None or style.bgcolor is None or style.bgcolor.is_default
