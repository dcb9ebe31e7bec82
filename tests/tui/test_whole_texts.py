"""Nothing that a person needs is cut for good: texts wrap, scroll and filter at 80 columns."""

from __future__ import annotations

from dataclasses import replace

from stoker.model import events as ev
from stoker.model.diagnosis import Cause
from stoker.show.tui.screens.dashboard_screen import TimelineScreen

from . import builds
from .apps import settle, shown
from .builds import FakeSource
from .pictures import text_of


async def test_what_to_do_next_is_whole_at_the_end() -> None:
    async with shown(FakeSource(builds.failed().state, "ended")) as (app, _pilot):
        text = text_of(app)
        assert "f what failed, o its output, t how it went, d why\n" in text
        assert "from a shell: stoker run --resume b1\n" in text


async def test_all_that_is_said_of_a_cause_can_be_scrolled_to() -> None:
    long = " ".join(f"word{n}" for n in range(200))
    cause = Cause("x", "A cause", long, f"{long} the last of it", line=3, text="error: x")
    state = builds.diagnosed(cause).state
    async with shown(FakeSource(state, "ended"), "f") as (app, pilot):
        assert "the last of it" not in text_of(app)
        for _ in range(12):
            await pilot.press("pagedown")
        await settle(pilot)
        assert "the last of it" in " ".join(text_of(app).split())
        await pilot.press("down")
        await settle(pilot)
        assert "FAILED" not in text_of(app)
        assert "its output" in text_of(app)


async def test_around_a_cause_stand_the_lines_of_its_own_job() -> None:
    context = (
        "FAILED: [code=137] earlier.o",
        "[3/9] CXX bad.o",
        "FAILED: [code=1] bad.o",
        "bad.cpp:1:1: error: no",
        "    1 | no",
        "[4/9] CXX other.o",
        "FAILED: [code=1] other.o",
    )
    cause = Cause("x", "A cause", "why", "remedy", line=13, text=context[3], context=context, context_line=10)
    async with shown(FakeSource(builds.diagnosed(cause).state, "ended"), "f") as (app, _pilot):
        below = text_of(app).partition("in the output")[2]
        assert "bad.o" in below
        assert "1 | no" in below
        assert "other.o" not in below
        assert "earlier.o" not in below
        bare = replace(cause, context=("CMake Error", "  at here", "  more"), line=11)
    async with shown(FakeSource(builds.diagnosed(bare).state, "ended"), "f") as (app, _pilot):
        assert all(line in text_of(app) for line in bare.context)


async def test_the_timeline_goes_from_decision_to_decision_with_some_words() -> None:
    async with shown(FakeSource(builds.governed().state), "t", "n") as (app, pilot):
        assert isinstance(app.screen, TimelineScreen)
        assert "freeze" in text_of(app)
        await pilot.press("N")
        await settle(pilot)
        assert "hold" in text_of(app)
        await pilot.press("slash", *"level", "enter")
        await settle(pilot)
        assert "/level: 1 of 3" in text_of(app)
        await pilot.press("N")
        await settle(pilot)
        assert "level 24" in text_of(app)
        await pilot.press("N")
        await settle(pilot)
        assert "other way" in text_of(app)


async def test_help_begins_with_the_keys_of_the_screen_it_was_asked_on() -> None:
    async with shown(FakeSource(builds.governed().state), "t", "question_mark") as (app, _pilot):
        lines = [line for line in text_of(app).splitlines() if "│" in line]
        assert "timeline" in lines[0]
        assert text_of(app).count("What was a moment before") == 1


async def test_what_a_deck_job_has_not_used_is_not_listed() -> None:
    story = builds.governed(3, 30)
    story.add(3724, ev.JobsWaiting((9,), "memory", "needs ~9.1 GiB"))
    async with shown(FakeSource(story.state), "end", "enter") as (app, _pilot):
        text = text_of(app)
        assert "held before it does anything" in text
        assert "at most 0 B so far" not in text
