"""The keys that govern a build: what they ask for, what is shown at once, and where they are not offered."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from stoker.model import events as ev
from stoker.model.units import format_bytes
from stoker.model.update import Link
from stoker.show.tui.input import command_queue
from stoker.show.tui.pages.job_list import ordered
from stoker.show.tui.pages.lines import text_of as plain
from stoker.show.tui.screens.dashboard_screen import DashboardScreen
from stoker.show.tui.screens.questions import KillBox, LevelBox, Question, kill_question

from . import builds
from .apps import settle, shown
from .builds import FakeSource
from .pictures import text_of


def governed(**level: object) -> FakeSource:
    told = ev.LevelSet(**{"mode": "manual", "target": 16, **level}) if level else None  # type: ignore[arg-type]
    return FakeSource(builds.governed(level=told).state, log=builds.output_log())


def meter(text: str, label: str) -> str:
    return next(line for line in text.splitlines() if line.startswith(label))


async def test_a_burst_of_keys_counts_in_full_and_is_shown_before_any_answer() -> None:
    source = governed()
    source.answering.clear()
    async with shown(source, "plus", "plus", "plus") as (app, pilot):
        assert "running of 16→19" in meter(text_of(app), "jobs")
        assert source.commands == [("level", {"change": 1})]
        source.answering.set()
        await settle(pilot)
        assert source.commands == [("level", {"change": 1}), ("level", {"change": 2})]


async def test_steps_up_and_down_while_no_answer_comes_cancel_each_other() -> None:
    source = governed()
    source.answering.clear()
    async with shown(source, "plus", "plus", "minus", "plus", "minus") as (app, pilot):
        source.answering.set()
        await settle(pilot)
        assert source.commands == [("level", {"change": 1})]
        assert "of 16→17" in meter(text_of(app), "jobs")


async def test_a_wish_goes_when_the_build_shows_it() -> None:
    story, source = builds.governed(), governed()
    async with shown(source, "minus", "minus") as (app, pilot):
        assert "of 16→14" in meter(text_of(app), "jobs")
        source.put(story.add(3724, ev.LevelSet("manual", 14)).state)
        await settle(pilot)
        line = meter(text_of(app), "jobs")
        assert "of 14  by hand" in line
        assert "→" not in line


async def test_a_wish_that_nothing_came_of_is_not_shown_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_queue, "SETTLE_SECONDS", 0.0)
    async with shown(governed(), "plus") as (app, pilot):
        app.tick()
        await settle(pilot)
        assert "→" not in meter(text_of(app), "jobs")


async def test_no_level_below_one_is_asked_for() -> None:
    source = governed(target=2)
    async with shown(source, "minus", "minus", "minus") as (app, pilot):
        await settle(pilot)
        assert sum(arguments["change"] for _, arguments in source.commands) == -1  # type: ignore[misc]
        assert "one job runs at least; to run nothing, pause" in [n.message for n in app._notifications]


async def test_a_refusal_is_one_line_and_takes_back_all_that_was_meant_on_top_of_it() -> None:
    source = governed()
    source.refusal = "no: [bold]not[/] now\x1b[2J"
    source.answering.clear()
    async with shown(source, "plus", "plus", "plus", "p") as (app, pilot):
        source.answering.set()
        await settle(pilot)
        assert [verb for verb, _ in source.commands] == ["level", "pause"]
        assert [n.message for n in app._notifications] == ["no: [bold]not[/] now"], "twice, and shown once"
        text = text_of(app)
        assert "→" not in meter(text, "jobs")
        assert "pausing" not in text


async def test_memory_that_is_not_guarded_stays_so_until_the_level_is_automatic() -> None:
    source = governed(guarded=False)
    async with shown(source, "plus", "8", "enter", "a") as (_app, pilot):
        await settle(pilot)
    assert source.commands == [
        ("level", {"change": 1, "ignore_memory": True}),
        ("level", {"jobs": 8, "ignore_memory": True}),
        ("level", {"jobs": None}),
    ]


async def test_an_automatic_level_is_asked_for_and_shown_at_once() -> None:
    source = governed(target=12)
    async with shown(source, "a") as (app, _pilot):
        assert source.commands == [("level", {"jobs": None})]
        assert "→auto" in meter(text_of(app), "jobs")


async def test_a_typed_number_is_the_level_after_enter_and_not_before() -> None:
    source = governed()
    async with shown(source, "2", "4", "backspace", "8") as (app, pilot):
        assert isinstance(app.screen, LevelBox)
        assert "run at most 28" in text_of(app)
        assert source.commands == []
        await pilot.press("enter")
        await settle(pilot)
        assert source.commands == [("level", {"jobs": 28})]
        assert "of 16→28" in meter(text_of(app), "jobs")


async def test_a_number_in_one_burst_is_a_number() -> None:
    source = governed()
    async with shown(source) as (app, pilot):
        await pilot.press("1", "2", "enter")
        await settle(pilot)
        assert source.commands == [("level", {"jobs": 12})]
        assert isinstance(app.screen, DashboardScreen)


@pytest.mark.parametrize("keys", [("1", "2", "escape"), ("equals_sign", "enter"), ("equals_sign", "0", "enter")])
async def test_a_number_that_was_not_given_changes_nothing(keys: tuple[str, ...]) -> None:
    source = governed()
    async with shown(source, *keys) as (app, _pilot):
        assert isinstance(app.screen, DashboardScreen)
    assert source.commands == []


@pytest.mark.parametrize(
    ("paused", "keys", "commands"),
    [
        ("no", ["p"], [("pause", {"now": False})]),
        ("no", ["P"], [("pause", {"now": True})]),
        ("soft", ["p"], [("resume", {})]),
        ("soft", ["P"], [("pause", {"now": True})]),
        ("hard", ["P"], [("resume", {})]),
        ("hard", ["p"], [("resume", {})]),
        ("no", ["p", "p"], [("pause", {"now": False}), ("resume", {})]),
    ],
)
async def test_pausing_and_going_on(paused: str, keys: list[str], commands: list[tuple[str, object]]) -> None:
    source = governed(paused=paused)
    async with shown(source, *keys):
        pass
    assert source.commands == commands


async def test_the_footer_offers_to_go_on_while_paused() -> None:
    async with shown(governed(paused="soft")) as (app, _pilot):
        assert "p unpause" in text_of(app).splitlines()[-1]


async def test_the_picked_job_is_frozen_thawed_and_run_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_queue, "SETTLE_SECONDS", 3600.0)  # a busy machine takes long for so many keys
    source = governed()
    state = builds.governed().state
    frozen = [job.jid for job in ordered(state, state.time)].index(builds.FROZEN_JID)
    async with shown(source, "down", "F", "F", "O", *["down"] * frozen, "F") as (app, pilot):
        await settle(pilot)
        assert "O let others run" in text_of(app)
    assert source.commands == [
        ("job", {"jid": 1, "act": "freeze"}),
        ("job", {"jid": 1, "act": "thaw"}),
        ("job", {"jid": 1, "act": "alone"}),
        ("job", {"jid": builds.FROZEN_JID, "act": "thaw"}),
    ]


async def test_a_job_on_deck_can_be_started() -> None:
    source = FakeSource(builds.governed(4, 3).state)
    async with shown(source, *["down"] * 5) as (app, pilot):
        assert "F start" in text_of(app).splitlines()[-1]
        await pilot.press("F")
        await settle(pilot)
        assert "starting" in text_of(app)
    assert source.commands == [("job", {"jid": 5, "act": "thaw"})]


async def test_killing_a_job_asks_first_and_names_it() -> None:
    source = governed()
    async with shown(source, "down", "X") as (app, pilot):
        assert isinstance(app.screen, KillBox)
        text = text_of(app)
        assert "torch_cuda.dir" in text
        assert "pid 4000" in text
        assert "runs the step again" in text
        assert source.commands == []
        await pilot.press("y")
        await settle(pilot)
        assert source.commands == [("job", {"jid": 1, "act": "kill"})]
        assert "killing" in text_of(app)


@pytest.mark.parametrize(
    ("failures", "said"),
    [
        (1, "starts nothing more; first the 51 others that it has begun, 40 of them on deck, run to their end."),
        (2, "The build system sees a failed job"),
        (None, "The build system sees a failed job"),
    ],
)
def test_the_question_before_a_kill_says_what_it_costs(failures: int | None, said: str) -> None:
    state = builds.governed().state
    state = replace(state, schedulers={1: replace(state.schedulers[1], failures=failures)})
    text = " ".join(plain(line) for line in kill_question(state.jobs[1], state, 60))
    assert said in " ".join(text.split())
    assert "stoker then runs the step again, with this job first; no key runs it sooner." in " ".join(text.split())
    assert "dropped" not in text, "only a real failure drops what is on deck"


@pytest.mark.parametrize(
    ("state", "words"), [("running", "let it run"), ("frozen", "leave it frozen"), ("on_deck", "leave it on deck")]
)
def test_the_question_before_a_kill_says_what_becomes_of_a_job_that_is_not_killed(
    state: ev.JobState, words: str
) -> None:
    build = builds.governed().state
    text = "\n".join(plain(line) for line in kill_question(replace(build.jobs[1], state=state), build, 60))
    assert re.search(rf"esc +{words}$", text, re.MULTILINE)


@pytest.mark.parametrize("key", ["escape", "enter", "q", "k", "X"])
async def test_any_other_answer_kills_nothing(key: str) -> None:
    source = governed()
    async with shown(source, "down", "X", key):
        pass
    assert source.commands == []


async def test_a_burst_of_letters_kills_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Question, "deaf_seconds", 60.0)
    source = governed()
    async with shown(source, "down", "X", "y") as (app, _pilot):
        assert isinstance(app.screen, KillBox)
    assert source.commands == []


async def test_a_job_that_ended_while_the_question_stood_is_not_killed() -> None:
    story, source = builds.governed(), governed()
    async with shown(source, "down", "X") as (app, pilot):
        source.put(story.add(3725, ev.JobFinished(1, 1, builds.OUTPUTS[0][0], "nvcc", 9, "ok")).state)
        await settle(pilot)
        app.tick()
        text = text_of(app)
        assert "has ended by itself: there is nothing to kill" in text
        assert "kill it" not in text
        await pilot.press("y")
        await settle(pilot)
        assert source.commands == []
        assert [n.message for n in app._notifications] == ["that job has ended by itself"]


async def test_the_question_shows_what_the_job_holds_now() -> None:
    story, source = builds.governed(), governed()
    async with shown(source, "down", "X") as (app, pilot):
        last = next(r.event for r in reversed(story.records) if isinstance(r.event, ev.Sampled))
        grown = tuple(replace(job, rss=7 * builds.GIB, phase_pid=4711) if job.jid == 1 else job for job in last.jobs)
        source.put(story.add(3725, replace(last, jobs=grown)).state)
        await settle(pilot)
        app.tick()
        assert isinstance(app.screen, KillBox)
        assert f"pid 4711, {format_bytes(7 * builds.GIB)}" in text_of(app), "the compiler, as in the table"


@pytest.mark.parametrize("key", ["F", "O", "X"])
async def test_without_a_picked_job_nothing_is_done_and_it_is_said_how_to_pick_one(key: str) -> None:
    source = governed()
    async with shown(source, key) as (app, _pilot):
        assert [n.message for n in app._notifications] == ["pick a job first, with the key down"]
        assert "F freeze" not in text_of(app)
    assert source.commands == []


ALL_KEYS = (
    "plus",
    "minus",
    "a",
    "p",
    "P",
    "1",
    "enter",
    "escape",
    "equals_sign",
    "5",
    "enter",
    "down",
    "F",
    "O",
    "X",
    "y",
)


@pytest.mark.parametrize(("link", "read_only"), [("live", True), ("replay", False), ("ended", False)])
async def test_where_nothing_can_be_governed_no_key_asks_for_it(link: Link, read_only: bool) -> None:
    story = builds.done() if link == "ended" else builds.governed()
    source = FakeSource(story.state, link, read_only=read_only)
    async with shown(source, *ALL_KEYS) as (app, pilot):
        await pilot.press("escape")
        await settle(pilot)
        footer = text_of(app).splitlines()[-1]
        assert not [keys for keys in ("+/- level", "p pause", "F freeze", "O alone", "X kill") if keys in footer]
        titles = {command.title for command in app.get_system_commands(app.screen)}
        assert "Freeze everything; again: unpause" not in titles
    assert {verb for verb, _ in source.commands} <= {"replay_speed"}


async def test_a_build_that_is_only_watched_says_so_when_its_level_is_changed() -> None:
    source = FakeSource(builds.running(3).state)
    async with shown(source, "plus") as (app, _pilot):
        assert [n.message for n in app._notifications] == ["this build has no level: stoker does not govern it"]
        assert "+/- level" not in text_of(app)
    assert source.commands == []


async def test_keys_go_on_being_heard_while_the_engine_does_not_answer() -> None:
    source = governed()
    source.answering.clear()
    async with shown(source, "p", "t") as (app, pilot):
        assert "pausing…" in text_of(app).splitlines()[0]
        assert "running jobs" in text_of(app)
        await pilot.press("escape", "q")
        await settle(pilot)
        assert not app.is_running
    assert source.commands == [("pause", {"now": False})]


async def test_the_answer_to_a_key_is_drawn_without_waiting_for_the_next_tick() -> None:
    story, source = builds.governed(), governed()
    async with shown(source) as (app, pilot):
        source.put(story.add(3724, ev.LevelSet("auto", 16, "hard")).state)
        await settle(pilot)
        assert "‖ FROZEN" in text_of(app).splitlines()[0]


async def test_a_person_may_give_the_keys_to_other_actions() -> None:
    source = governed()
    async with shown(source, "x", "down", "z", keymap={"level-up": "x", "job.freeze": "z"}) as (app, _pilot):
        assert "z freeze" in text_of(app).splitlines()[-1] or "z thaw" in text_of(app).splitlines()[-1]
    assert source.commands == [("level", {"change": 1}), ("job", {"jid": 1, "act": "freeze"})]
