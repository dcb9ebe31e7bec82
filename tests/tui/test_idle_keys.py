"""Screens that have nothing to show, and keys that can do nothing there: each says so in words."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stoker.model import events as ev
from stoker.model.diagnosis import Cause
from stoker.model.state import BuildState

from . import builds
from .apps import settle, shown
from .builds import FakeSource
from .pictures import text_of

STATES: dict[str, Callable[[], BuildState]] = {
    "nothing known": BuildState,
    "just started": lambda: builds.started().state,
    "runs": lambda: builds.running(3).state,
    "done": lambda: builds.started().add(9, ev.BuildEnded("done", 0, "")).state,
    "failed": lambda: builds.started().add(9, ev.BuildEnded("failed", 3, "exit status 3")).state,
    "stopped": lambda: builds.started().add(9, ev.BuildEnded("stopped", 143, "SIGTERM")).state,
}

LIVE = ("nothing known", "just started", "runs")


@pytest.mark.parametrize("name", STATES)
async def test_no_page_is_blank_and_no_footer_names_a_key_for_nothing(name: str) -> None:
    state = STATES[name]()
    async with shown(FakeSource(state, "live" if name in LIVE else "ended")) as (_app, pilot):
        for key in "otfdvm":
            await pilot.press(key)
            await settle(pilot)
            *body, footer = text_of(_app).splitlines()
            body = body if key == "o" else body[1:]  # which has no title
            assert any(any(c.isalpha() for c in line) for line in body if "──" not in line), key
            nothing = key in "fdvm" and not (key == "d" and (state.decisions or state.notices))
            assert not (nothing and "filter" in footer), key
            assert "next error" not in footer
            assert "esc back" in footer
            assert key != "t" or len(state.timeline.points) > 1 or "moment" not in footer


@pytest.mark.parametrize(
    ("state", "keys", "said"),
    [
        ("runs", ("m", "slash"), "/ (filter): there is nothing to filter here"),
        ("just started", ("slash",), "/ (filter): there is nothing to filter here"),
        ("just started", ("greater_than_sign",), "> (sort): there are no jobs to sort"),
        ("runs", ("o", "n"), "n (next match): search for something first, with /"),
        ("runs", ("o", "slash"), "/ (search): nothing is written yet"),
        ("runs", ("f", "enter"), "enter (in the output): nothing has failed"),
        ("done", ("o", "X"), "X (kill): the build has ended"),
        ("stopped", ("f",), "No failure is known: the build was stopped."),
        ("just started", ("t", "n"), "n (decision): too little was measured to draw"),
    ],
)
async def test_a_key_that_can_do_nothing_says_why(state: str, keys: tuple[str, ...], said: str) -> None:
    async with shown(FakeSource(STATES[state](), "live" if state in LIVE else "ended"), *keys) as (app, _pilot):
        assert said in text_of(app)


async def test_details_that_are_seen_whole_cannot_be_scrolled() -> None:
    async with shown(FakeSource(builds.failed().state, "ended"), "f", "pagedown", size=(120, 40)) as (app, _pilot):
        assert "pgdn (more): all that is known of this is shown" in text_of(app)


async def test_the_page_of_errors_without_any_says_so() -> None:
    async with shown(FakeSource(builds.running(3).state, log=b"all is well\n"), "o", "E") as (app, pilot):
        assert "No line looks like an error so far; E shows all lines again." in text_of(app)
        assert "E all  s stop" in text_of(app)
        await pilot.press("E")
        await settle(pilot)
        assert "all is well" in text_of(app)


async def test_help_says_which_keys_can_do_nothing_now_and_why() -> None:
    async with shown(FakeSource(builds.governed().state), "question_mark", size=(90, 90)) as (app, _pilot):
        lines = text_of(app).splitlines()
        at = [n for n, line in enumerate(lines) if "not now: the build has not ended" in line]
        assert len(at) == 1
        assert "Apply the safe remedy" in lines[at[0] + 1]
        assert "Resume the build" in lines[at[0] + 2]


@pytest.mark.parametrize(
    ("source", "keys", "heading"),
    [
        (lambda: builds.governed(5, 30).state, (), "0 of 35 match 'xyz'"),
        (lambda: builds.remote().state, ("m",), "0 of 3 match 'xyz'"),
        (lambda: builds.failed().state, ("f",), "0 of 2 match 'xyz'"),
        (lambda: builds.governed().state, ("d",), "match 'xyz'"),
    ],
    ids=["jobs", "hosts", "failures", "decisions"],
)
async def test_the_heading_of_a_filtered_list_says_how_many_are_left(
    source: Callable[[], BuildState], keys: tuple[str, ...], heading: str
) -> None:
    async with shown(FakeSource(source()), *keys, "slash", "x", "y", "z", "enter") as (app, _pilot):
        assert heading in text_of(app)
        assert "running 0" not in text_of(app)


@pytest.mark.parametrize("causes", [(), (Cause("r", "A source does not compile", "why", "Read the line.", 1, 0, "x"),)])
async def test_where_nothing_can_be_repaired_from_here_the_person_is_asked_to(causes: tuple[Cause, ...]) -> None:
    state = builds.diagnosed(*causes).state
    async with shown(FakeSource(state, "ended"), "f") as (app, _pilot):
        text = " ".join(text_of(app).split())
        assert "fix the cause, then press c to resume: the same command, from the step where it ended" in text
