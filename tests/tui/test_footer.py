"""The footer: one line of keys, once for each kind of screen, since every screen ends with it."""

from __future__ import annotations

import os
import re

import pytest

from stoker.show.tui.screens.dashboard_screen import TimelineScreen

from . import builds, test_verification
from .apps import settle, shown
from .builds import FakeSource
from .pictures import GOLDEN, UPDATE, text_of
from .test_golden import SIZES, source_of

FOOTERS = GOLDEN / "footers.txt"

SCREENS = {
    "dashboard": ("dashboard", ()),
    "dashboard, a job picked": ("dashboard-no-gpu", ("down",)),
    "governed": ("governed", ()),
    "governed, a job picked": ("governed", ("down",)),
    "governed, a frozen job picked": ("governed", ("down",) * 12),
    "governed, a job alone picked": ("alone", ("down", "down")),
    "governed, paused": ("governed-paused", ()),
    "output": ("output", ("o",)),
    "timeline": ("timeline", ("t",)),
    "decisions": ("decisions", ("d",)),
    "failures": ("failures", ("f",)),
    "failures with a remedy": ("failures-killed", ("f",)),
    "failures of a build that runs": ("stopped-some-list", ("f",)),
    "end": ("end-done", ()),
    "end with a remedy": ("end-killed", ()),
}


def stored() -> dict[str, list[str]]:
    """The stored footers by screen, one for each size."""
    if not FOOTERS.exists():
        return {}
    blocks = FOOTERS.read_text(encoding="utf-8").strip().split("\n\n")
    return {head: lines for head, *lines in (block.splitlines() for block in blocks)}


async def check(name: str, source: FakeSource, keys: tuple[str, ...]) -> None:
    footers = []
    async with shown(source, *keys) as (app, pilot):
        for size in SIZES:
            await pilot.resize_terminal(*size)
            await settle(pilot)
            footers.append(text_of(app).splitlines()[-1])
    if os.environ.get(UPDATE):
        blocks = {**stored(), name: footers}
        FOOTERS.write_text("\n\n".join("\n".join([head, *blocks[head]]) for head in blocks) + "\n", encoding="utf-8")
    assert footers == stored()[name], f"differs from {FOOTERS}; set {UPDATE}=1 if that is meant"


@pytest.mark.parametrize("name", SCREENS)
async def test_a_footer_names_the_keys_that_do_something(name: str) -> None:
    story, keys = SCREENS[name]
    await check(name, source_of(story, 200), keys)


async def test_the_footer_of_a_verified_build() -> None:
    await check("verification", FakeSource(test_verification.ended(test_verification.MIXED)), ("v",))


async def test_the_footer_of_a_replay() -> None:
    await check("replay", FakeSource(builds.running(3).state, "replay"), ())


async def test_help_says_whether_there_is_more() -> None:
    async with shown(FakeSource(builds.running(3).state), "question_mark") as (app, _pilot):
        assert re.search("up and down for more", text_of(app))


@pytest.mark.parametrize("keys", [(), ("down",)])
@pytest.mark.parametrize("name", ["dashboard", "governed", "governed-paused", "stopped-some"])
async def test_the_key_that_sorts_jobs_has_a_place_on_a_usual_screen(name: str, keys: tuple[str, ...]) -> None:
    async with shown(source_of(name, 200), *keys, size=(80, 24)) as (app, _pilot):
        footer = text_of(app).splitlines()[-1]
        assert "  > sort  " in footer
        assert not keys or name == "dashboard" or "  X kill  " in footer


async def test_a_narrow_footer_keeps_the_keys_of_the_pages() -> None:
    async with shown(source_of("dashboard", 200), size=(40, 12)) as (app, _pilot):
        assert text_of(app).splitlines()[-1] == "o/t/d pages  s stop  q leave  ? help"


async def test_a_click_on_joined_keys_opens_the_page_of_the_key() -> None:
    async with shown(source_of("dashboard", 200), size=(40, 12)) as (app, pilot):
        await pilot.click(offset=(2, 11))
        await settle(pilot)
        assert isinstance(app.screen, TimelineScreen)


async def test_no_key_of_the_footer_is_cut() -> None:
    async with shown(source_of("governed", 200), size=(20, 5)) as (app, _pilot):
        assert text_of(app).splitlines()[-1] == "q leave  ? help"


async def test_the_footer_is_the_last_line_at_once_when_the_filter_closes() -> None:
    async with shown(source_of("governed", 200), "slash", *"flash", "enter") as (app, _pilot):
        assert "? help" in text_of(app).splitlines()[-1]


async def test_while_words_are_typed_the_footer_names_no_letters() -> None:
    async with shown(source_of("governed", 200), "slash", *"flash") as (app, pilot):
        assert text_of(app).splitlines()[-2:] == ["/flash: 8 of 52  enter keep  esc show all", "/ flash"]
        await pilot.press("escape", "o", "slash", "x")
        await settle(pilot)
        assert text_of(app).splitlines()[-2:] == ["enter find  esc close", "/ x"]


async def test_the_footer_says_what_esc_does_first() -> None:
    async with shown(source_of("governed", 200), "t", size=(160, 40)) as (app, pilot):
        for key, esc in (("z", "whole build"), ("escape", "back"), ("o", "back"), ("E", "all lines")):
            await pilot.press(key)
            await settle(pilot)
            assert f"  esc {esc}  " in text_of(app), key
