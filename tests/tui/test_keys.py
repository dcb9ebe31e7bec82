from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace

import pytest
from textual.command import CommandPalette
from textual.screen import Screen

from stoker.config.themes import Theme
from stoker.model import events as ev
from stoker.model.state import BuildState
from stoker.model.update import Link
from stoker.show.tui.app import StokerApp
from stoker.show.tui.input import actions
from stoker.show.tui.input.palette import Commands
from stoker.show.tui.pages.job_list import JobView
from stoker.show.tui.pages.job_table import table
from stoker.show.tui.pages.lines import text_of as line_of
from stoker.show.tui.screens.boxes import HelpBox
from stoker.show.tui.screens.dashboard_screen import DashboardScreen, EndScreen, TimelineScreen
from stoker.show.tui.screens.failures_screen import FailuresScreen
from stoker.show.tui.screens.output_screen import OutputScreen
from stoker.show.tui.screens.questions import Question, ResumeBox, StopBox
from stoker.show.tui.terminal.glyphs import UNICODE

from . import builds
from .apps import THEMES, GoingOn, settle, shown
from .builds import FakeSource
from .pictures import text_of
from .test_views import at


def live(**options: object) -> FakeSource:
    return FakeSource(builds.running(12).state, log=builds.output_log(), **options)  # type: ignore[arg-type]


def screen_of(app: StokerApp) -> type[Screen[object]]:
    return type(app.screen)


async def test_leaving_a_running_build_gives_nothing_and_stops_nothing() -> None:
    source = live()
    async with shown(source, "q") as (app, _pilot):
        assert not app.is_running
    assert app.return_value is None
    assert app.return_code == 0
    assert source.commands == []


@pytest.mark.parametrize(("story", "status"), [(builds.failed, 1), (builds.done, 0)])
async def test_leaving_an_ended_build_gives_its_status(story: object, status: int) -> None:
    source = FakeSource(story().state, "ended")  # type: ignore[operator]
    async with shown(source, "q") as (app, _pilot):
        pass
    assert app.return_value == status


@pytest.mark.parametrize("size", [(60, 15), (40, 15)])
@pytest.mark.parametrize(
    ("keys", "last"), [(("s",), "keep building"), (("question_mark", *["space"] * 40), "in the settings")]
)
async def test_a_box_fits_a_narrow_terminal(keys: tuple[str, ...], last: str, size: tuple[int, int]) -> None:
    async with shown(live(), *keys, size=size) as (app, _pilot):
        lines = text_of(app).splitlines()
        begin = next(i for i, line in enumerate(lines) if "╭" in line)
        end = next(i for i, line in enumerate(lines) if "╰" in line)
        left, right = lines[begin].index("╭"), lines[begin].index("╮")
        assert lines[end][right] == "╯"
        assert all(line[left] == line[right] == "│" for line in lines[begin + 1 : end]), lines
        words = " ".join(word for line in lines[begin + 1 : end] for word in line[left + 1 : right].split())
        assert last in words
        if keys == ("s",):
            assert "SIGTERM to every process, SIGKILL to those that remain" in words


@pytest.mark.parametrize(("key", "force"), [("y", False), ("k", True)])
@pytest.mark.parametrize("asks", ["s", "ctrl+c"])
async def test_stopping_asks_first(asks: str, key: str, force: bool) -> None:
    source = live()
    async with shown(source, asks) as (app, pilot):
        assert isinstance(app.screen, StopBox)
        assert source.commands == []
        await pilot.press(key)
        await settle(pilot)
        assert source.commands == [("stop", {"force": force})]
        assert isinstance(app.screen, DashboardScreen)


@pytest.mark.parametrize("key", ["escape", "q"])
async def test_any_other_answer_goes_on_building(key: str) -> None:
    source = live()
    async with shown(source, "s", key) as (app, _pilot):
        assert isinstance(app.screen, DashboardScreen)
        assert app.is_running
    assert source.commands == []


async def test_enter_answers_no_question_and_names_the_keys_that_do() -> None:
    source = live()
    async with shown(source, "s", "enter") as (app, _pilot):
        assert isinstance(app.screen, StopBox)
        assert "enter is no answer here: press y, k or esc" in text_of(app)
    assert source.commands == []


async def test_a_burst_of_letters_answers_no_question(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StopBox, "deaf_seconds", 60.0)
    monkeypatch.setattr(StopBox, "least_gap", 60.0)
    source = live()
    async with shown(source, "s", "k", "y") as (app, _pilot):
        assert isinstance(app.screen, StopBox)
        assert "too quick after the last key: press it once more" in text_of(app)
    assert source.commands == []


async def test_an_answer_soon_after_its_question_counts_when_no_key_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StopBox, "deaf_seconds", 0.3)
    monkeypatch.setattr(StopBox, "least_gap", 0.0)
    source = live()
    async with shown(source, "s", "y") as (app, pilot):
        async with asyncio.timeout(20):
            while isinstance(app.screen, StopBox):
                await pilot.pause(0.05)
        await settle(pilot)
    assert source.commands == [("stop", {"force": False})]


async def test_an_answer_soon_after_its_question_does_not_count_when_a_key_follows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(StopBox, "deaf_seconds", 60.0)
    monkeypatch.setattr(StopBox, "least_gap", 0.0)
    source = live()
    async with shown(source, "s", "y") as (app, pilot):
        assert isinstance(app.screen, StopBox)
        assert "counts in a moment if no key follows" in text_of(app)
        monkeypatch.setattr(StopBox, "deaf_seconds", 0.0)
        await pilot.press("x")
        assert app.screen._held is None
    assert source.commands == []


async def test_esc_on_the_end_says_how_to_leave_and_keeps_it() -> None:
    async with shown(FakeSource(builds.done().state, "ended"), "escape") as (app, _pilot):
        assert screen_of(app) is EndScreen
        assert "the build has ended; q leaves" in text_of(app)


async def test_a_message_takes_the_last_line_and_hides_no_row() -> None:
    async with shown(live()) as (app, pilot):
        before = text_of(app).splitlines()
        for key in ("r", "c", "r"):
            await pilot.press(key)
            await settle(pilot)
        after = text_of(app).splitlines()
        assert after[:-1] == before[:-1]
        assert "r (remedy): the build has not ended" in after[-1]


async def test_before_anything_is_known_a_build_has_no_name() -> None:
    async with shown(FakeSource(BuildState())) as (app, _pilot):
        assert "build" not in text_of(app).splitlines()[0]


async def test_a_tick_before_a_box_has_its_page_does_no_harm() -> None:
    async with shown(live(), "s") as (app, pilot):
        await app.screen.query("#box").remove()
        app.redraw()
        await pilot.pause()
        assert app.is_running


async def test_ctrl_c_twice_asks_once() -> None:
    async with shown(live(), "ctrl+c", "ctrl+c") as (app, _pilot):
        assert [type(s) for s in app.screen_stack] == [DashboardScreen, StopBox]


async def test_a_refused_stop_says_why() -> None:
    source = live()
    source.refusal = "the build of [bold]bob[/] is not yours\x1b[2J"
    async with shown(source, "s", "y") as (app, pilot):
        await settle(pilot)
        assert [n.message for n in app._notifications] == ["the build of [bold]bob[/] is not yours"]
        assert app.is_running


async def test_a_read_only_viewer_is_offered_no_stop() -> None:
    source = live(read_only=True)
    async with shown(source, "s") as (app, pilot):
        assert isinstance(app.screen, DashboardScreen)
        assert " s stop" not in text_of(app)
        assert "read-only" in text_of(app)
        await pilot.press("ctrl+c")
    assert app.return_value is None
    assert source.commands == []


@pytest.mark.parametrize(
    ("key", "screen"), [("o", OutputScreen), ("t", TimelineScreen), ("f", FailuresScreen), ("question_mark", HelpBox)]
)
async def test_every_screen_opens_and_closes_by_its_key(key: str, screen: type[Screen[object]]) -> None:
    async with shown(live(), key) as (app, pilot):
        assert isinstance(app.screen, screen)
        await pilot.press(key)
        await settle(pilot)
        assert isinstance(app.screen, DashboardScreen)


async def test_screens_replace_each_other() -> None:
    async with shown(live(), "o", "t", "f", "d", "t") as (app, pilot):
        assert len(app.screen_stack) == 2
        await pilot.press("escape")
        await settle(pilot)
        assert isinstance(app.screen, DashboardScreen)


def picked(app: StokerApp) -> int | None:
    """The number of the job that is picked on the dashboard."""
    assert isinstance(app.screen, DashboardScreen)
    return app.screen.cursor


async def test_the_cursor_stays_on_its_job() -> None:
    story = builds.running(5)
    source = FakeSource(story.state)
    async with shown(source, "down", "down", "down") as (app, pilot):
        assert picked(app) == 3
        story.add(3724, ev.JobFinished(1, 1, builds.OUTPUTS[0][0], "nvcc", 100, "ok"))
        source.put(story.state)
        await settle(pilot)
        app.tick()
        assert picked(app) == 3
        story.add(3725, ev.JobFinished(3, 1, builds.OUTPUTS[2][0], "cxx", 100, "ok"))
        source.put(story.state)
        await settle(pilot)
        app.tick()
        assert "descriptor.cc.o has ended; nothing is picked: down picks a job" in text_of(app)
        assert picked(app) is None
        await pilot.press("down")
        assert picked(app) == 4
        await pilot.press("escape")
        assert picked(app) is None


@pytest.mark.parametrize("by", ["time", "a key"])
async def test_that_the_picked_job_has_ended_is_not_said_for_ever(by: str) -> None:
    """The line takes a row from the table."""
    story = builds.running(5)
    source = FakeSource(story.state)
    async with shown(source, "down") as (app, pilot):
        story.add(3724, ev.JobFinished(1, 1, builds.OUTPUTS[0][0], "nvcc", 100, "ok"))
        source.put(story.state)
        await settle(pilot)
        app.tick()
        assert "has ended; nothing is picked" in text_of(app)
        if by == "a key":
            await pilot.press("greater_than_sign")
        else:
            source.put(story.add(3800, builds.sampled(4)).state)
            await settle(pilot)
            app.tick()
        assert "nothing is picked" not in text_of(app)
        await pilot.press("X")
        await settle(pilot)
        assert source.commands == []
        assert "has ended; pick another job" in " ".join(text_of(app).split())


@pytest.mark.parametrize(
    ("width", "words"),
    [
        (120, "was killed by a person and will run again; nothing is picked: down picks a job"),
        (80, "was killed by a person and will run again; nothing is picked"),
        (60, "was killed by a person and will run again"),
    ],
)
def test_how_the_picked_job_ended_is_said_in_whole_clauses(width: int, words: str) -> None:
    view = JobView(ended="obj/k12.o", end="was killed by a person and will run again")
    lines = [line_of(line).rstrip() for line in table(at(builds.running(5).state), width, 12, view, UNICODE)]
    assert any(line.strip() == f"obj/k12.o {words}" for line in lines)


@pytest.mark.parametrize("key", ["F", "O", "X", "enter"])
@pytest.mark.parametrize("drawn", [True, False], ids=["after a tick", "before it"])
async def test_a_key_acts_on_no_job_in_the_place_of_the_picked_one_that_has_ended(key: str, drawn: bool) -> None:
    story = builds.governed()
    source = FakeSource(story.state)
    async with shown(source, "down", "down") as (app, pilot):
        story.add(3724, ev.JobFinished(2, 1, builds.OUTPUTS[1][0], "nvcc", 100, "ok"))
        source.put(story.state)
        await settle(pilot)
        if drawn:
            app.tick()
            assert "has ended; nothing is picked" in text_of(app)
        await pilot.press(key)
        await settle(pilot)
        assert source.commands == []
        assert isinstance(app.screen, DashboardScreen)
        assert "has ended; pick another job with the key down" in text_of(app)
        await pilot.press("down", "F")
        await settle(pilot)
        assert source.commands == [("job", {"jid": 4, "act": "freeze"})]


async def test_a_picked_job_that_was_killed_is_said_to_run_again_and_another_is_to_be_picked() -> None:
    story, output = builds.governed(), builds.OUTPUTS[1][0]
    source = FakeSource(story.state)
    async with shown(source, "down", "down", size=(120, 32)) as (app, pilot):
        assert picked(app) == 2
        killed = ev.JobKilled(output, "person", 1 << 30, 2, "ann")
        for events, words in (
            ((killed, ev.JobFinished(2, 1, output, "nvcc", 100, "failed")), "was killed by ann and will run again"),
            ((ev.JobStarted(99, 1, 5099, output, "nvcc", 3725),), "was killed by ann and runs again"),
        ):
            story.add(3724, *events)
            source.put(story.state)
            await settle(pilot)
            app.tick()
            assert f" {words}; nothing is picked: down picks a job" in text_of(app)
        await pilot.press("X")
        await settle(pilot)
        assert source.commands == []
        assert isinstance(app.screen, DashboardScreen)
        assert " was killed by ann and runs again; pick another job with the key down" in " ".join(text_of(app).split())


async def test_who_runs_alone_is_undone_whatever_is_picked() -> None:
    source = FakeSource(builds.alone().state)
    async with shown(source) as (app, pilot):
        assert "O undoes it" in text_of(app)
        assert "O let others run" in text_of(app)
        await pilot.press("O", "O")
        await settle(pilot)
        assert source.commands == [("job", {"jid": 2, "act": "together"})]
    source = FakeSource(builds.alone().state)
    async with shown(source, "down", size=(120, 40)) as (app, pilot):
        assert "; O undoes it" in text_of(app)
        assert "O let others run" in text_of(app)
        await pilot.press("O")
        await settle(pilot)
        assert source.commands == [("job", {"jid": 2, "act": "together"})]
        assert "no longer alone; O again runs the picked job alone" in text_of(app)
        await pilot.press("O")
        await settle(pilot)
        assert source.commands[1:] == [("job", {"jid": 1, "act": "alone"})]


async def test_esc_and_q_that_a_terminal_sends_as_one_key_leave() -> None:
    async with shown(FakeSource(builds.running().state), "alt+q") as (app, pilot):
        await settle(pilot)
        assert not app.is_running


async def test_a_job_shows_its_whole_output_path_and_pid() -> None:
    async with shown(live(), "down", "down", "enter") as (app, pilot):
        text = text_of(app)
        assert "4001" in text
        assert "running for" in text
        await pilot.press("escape")
        await settle(pilot)
        assert isinstance(app.screen, DashboardScreen)


@pytest.mark.parametrize("size", [(80, 24), (60, 8), (60, 5)])
async def test_a_lost_engine_is_said_once_and_a_found_one_forgotten(size: tuple[int, int]) -> None:
    source = live()
    async with shown(source, size=size) as (app, pilot):
        source.put(source.last.state, "lost", "no answer for 5 s")
        await settle(pilot)
        text = text_of(app)
        assert text.count("engine lost") == 1
        assert "The build continues without it (no answer for 5 s)" in text or size < (80, 24)
        source.put(source.last.state, "live")
        await settle(pilot)
        assert "engine lost" not in text_of(app)


async def test_the_end_comes_up_by_itself_and_stays() -> None:
    source = live()
    async with shown(source) as (app, pilot):
        source.put(builds.failed().state, "ended")
        await settle(pilot)
        assert isinstance(app.screen, EndScreen)
        assert "exit code 1" in text_of(app)
        app.tick()
        await pilot.press("o")
        await settle(pilot)
        await pilot.press("escape")
        await settle(pilot)
        assert isinstance(app.screen, EndScreen)
        assert app.is_running


async def test_the_end_does_not_take_a_reader_away_from_the_output(monkeypatch: pytest.MonkeyPatch) -> None:
    source = live()
    async with shown(source, "o") as (app, pilot):
        messages: list[str] = []  # not those on the screen: on a busy machine they have gone again
        monkeypatch.setattr(app, "inform", lambda text, *_: messages.append(text))
        source.put(builds.failed().state, "ended")
        while not messages:
            await settle(pilot)
        assert isinstance(app.screen, OutputScreen)
        assert "has ended" in messages[0]


@pytest.mark.parametrize("keys", [("escape",), ("o",)])
async def test_who_comes_back_from_a_page_finds_the_end(keys: tuple[str, ...]) -> None:
    source = live()
    async with shown(source, "o") as (app, pilot):
        source.put(builds.failed().state, "ended")
        await settle(pilot)
        await pilot.press(*keys)
        await settle(pilot)
        assert screen_of(app) is EndScreen


async def test_keys_that_come_before_the_build_is_known_ask_for_nothing() -> None:
    source = FakeSource(BuildState())
    async with shown(source, "P", "plus", "a") as (app, pilot):
        source.put(builds.done().state, "ended")
        await settle(pilot)
        assert screen_of(app) is EndScreen
    assert source.commands == []


@pytest.mark.parametrize("keys", [("s",), ("1",), ("down", "X")])
async def test_a_question_about_a_build_that_has_ended_goes(keys: tuple[str, ...]) -> None:
    source = FakeSource(builds.governed().state)
    async with shown(source, *keys) as (app, pilot):
        source.put(builds.failed().state, "ended")
        await settle(pilot)
        assert screen_of(app) is EndScreen
    assert source.commands == []


async def test_help_says_what_the_signs_of_figures_mean() -> None:
    async with shown(live(), "question_mark", *["space"] * 40) as (app, _pilot):
        words = " ".join(text_of(app).split())
        assert "5.1/5.2+ It has exceeded that" in words
        assert "3.1/4.8? That is a guess" in words
        assert "one per core, and extra places" in words


async def test_the_end_waits_for_whoever_reads_a_box() -> None:
    source = live()
    async with shown(source, "question_mark") as (app, pilot):
        source.put(builds.failed().state, "ended")
        await settle(pilot)
        assert screen_of(app) is HelpBox
        await pilot.press("escape")
        await settle(pilot)
        app.tick()
        await settle(pilot)
        assert screen_of(app) is EndScreen


async def test_a_replay_is_steered_and_never_stopped() -> None:
    source = live(link="replay")
    async with shown(source, "space", "left", "right", "plus", "minus", "s") as (app, _pilot):
        assert isinstance(app.screen, DashboardScreen)
        assert " s stop" not in text_of(app)
    assert source.commands == [
        ("replay_pause", {}),
        ("replay_seek", {"seconds": -10.0, "relative": True}),
        ("replay_seek", {"seconds": 10.0, "relative": True}),
        ("replay_speed", {"factor": 2.0}),
        ("replay_speed", {"factor": 0.5}),
    ]


async def test_the_help_of_a_replay_gives_each_key_one_meaning() -> None:
    for link in ("replay", "live"):
        async with shown(live(link=link), "question_mark", size=(80, 70)) as (app, _pilot):
            page = text_of(app)
            assert ("Replay at half the speed" in page) == (link == "replay")
            assert ("Lower the level by one job" in page) == (link == "live")


async def test_a_live_build_has_no_replay_keys() -> None:
    source = live()
    async with shown(source, "space", "left"):
        pass
    assert source.commands == []


async def test_a_replay_that_goes_back_leaves_the_end_screen() -> None:
    replay: Link = "replay"
    source = FakeSource(builds.failed().state, replay)
    async with shown(source) as (app, pilot):
        assert screen_of(app) is EndScreen
        source.put(builds.running(3).state, replay)
        await settle(pilot)
        app.tick()
        await settle(pilot)
        assert screen_of(app) is DashboardScreen


async def test_keys_can_be_changed() -> None:
    async with shown(live(), "x", keymap={"output": "x"}) as (app, pilot):
        assert screen_of(app) is OutputScreen
        await pilot.press("escape", "o")
        await settle(pilot)
        assert screen_of(app) is DashboardScreen
        assert "x output" in text_of(app).splitlines()[-1]


async def test_wrong_keys_are_told_with_the_nearest_name() -> None:
    async with shown(live(), keymap={"outputt": "x"}) as (app, _pilot):
        assert any("'output'" in n.message for n in app._notifications)


def test_a_key_given_twice_is_told() -> None:
    assert actions.keymap_errors({"output": "t"}) == ["keys: 't' is given to both 'output' and 'timeline'"]
    assert actions.keymap_errors({"output": "x", "timeline": "o"}) == []
    assert actions.keymap_errors({}) == []
    assert actions.keymap_errors({"faster": "plus"}) == [], "a replay is never governed"


async def test_every_action_has_a_method() -> None:
    places = {"app": StokerApp, "dashboard": DashboardScreen, "output": OutputScreen, "failures": FailuresScreen}
    for action in actions.TABLE:
        assert not action.beside or action.beside in actions.BY_ID
        if action.scope in places:
            assert hasattr(places[action.scope], f"action_{action.method}"), action.id


async def test_the_palette_holds_the_actions_and_themes() -> None:
    async with shown(live()) as (app, _pilot):
        titles = {command.title for command in app.commands(app.screen)}
        assert "Stop the build (asks first)" in titles
        assert "Theme: light" in titles
        assert "Pause the replay; again: unpause" not in titles
        hints = [command.hint for command in app.commands(app.screen)]
        assert "level up  key +" in hints
        assert "level down  key -" in hints


@pytest.mark.parametrize(
    ("typed", "title"),
    [
        ("pause", "Start nothing new; again: unpause"),
        ("unpause", "Start nothing new; again: unpause"),
        ("freeze", "Freeze everything; again: unpause"),
        ("jobs", "Raise the level: how many jobs may run at once"),
        ("auto", "Automatic level: as many jobs as cores and memory allow"),
        ("detach", "Leave; a build that runs continues"),
        ("leave", "Leave; a build that runs continues"),
        ("quit", "Leave; a build that runs continues"),
        ("failures", "What failed, and why"),
        ("verif", "Which GPUs the binaries run on"),
        ("Help", "All keys"),
        ("stop", "Stop the build (asks first)"),
        ("log", "The build's output"),
        ("binaries", "Which GPUs the binaries run on"),
        ("wht fld", "What failed, and why"),
    ],
)
async def test_the_palette_finds_commands_by_their_names(typed: str, title: str) -> None:
    async with shown(live()) as (app, _pilot):
        hits = [hit async for hit in Commands(app.screen).search(typed)]
        assert str(max(hits, key=lambda hit: hit.score).text) == title


async def test_scattered_letters_find_nothing_beside_a_name() -> None:
    async with shown(live()) as (app, _pilot):
        found = [str(hit.text) async for hit in Commands(app.screen).search("pau")]
        assert found == ["Start nothing new; again: unpause", "Freeze everything; again: unpause"]


async def test_a_command_that_is_found_by_its_name_is_done() -> None:
    source = live()
    async with shown(source, "colon", *"pause") as (app, pilot):
        for _ in range(100):
            await pilot.pause(0.05)
            if not isinstance(app.screen, CommandPalette):
                break
            await pilot.press("enter")
        await settle(pilot)
        assert source.commands == [("pause", {"now": False})]


async def test_the_palette_changes_the_theme_at_once() -> None:
    async with shown(live(), "colon", *"theme: light") as (app, pilot):
        for _ in range(100):
            await pilot.pause(0.05)
            if not isinstance(app.screen, CommandPalette):
                break
            await pilot.press("enter")
        assert app.palette.theme.name == "light"


async def test_themes_reload_while_they_are_edited() -> None:
    changes: asyncio.Queue[tuple[Mapping[str, Theme], Sequence[object]]] = asyncio.Queue()

    async def watch() -> AsyncIterator[tuple[Mapping[str, Theme], Sequence[object]]]:
        while True:
            yield await changes.get()

    async with shown(live(), watch_themes=watch) as (app, pilot):
        dark = THEMES["dark"]
        changes.put_nowait(({"dark": replace(dark, colors={**dark.colors, "accent": "#010203"})}, []))
        await settle(pilot)
        assert app.palette.style("accent").color.name == "#010203"  # type: ignore[union-attr]
        assert app.current_theme.accent == "#010203"
        changes.put_nowait(({}, ["dark.yaml:3: [oops] no such key"]))
        await settle(pilot)
        assert app.palette.style("accent").color.name == "#010203"  # type: ignore[union-attr]
        assert [n.message for n in app._notifications] == ["dark.yaml:3: [oops] no such key"]


async def test_a_killed_job_leads_to_its_place_in_the_output_after_its_step_has_run_again() -> None:
    log = builds.output_log()
    start = log.index(b"a/b499")
    found = ev.FailureFound("k.o", "c++ -c k.cpp", None, (), start, start + 10)
    again = ev.StepStarted(1, 1, "", ("ninja",), 101, 2, log_start=len(log))
    story = builds.Story().add(5, ev.StepStarted(1, 1, "", ("ninja",), 99))
    story.add(6, ev.SchedulerStarted(1, "ninja", 100, "/src", "1.13.2", 8))
    story.add(7, ev.JobKilled("k.o", "shed", 1 << 30), found, ev.SchedulerEnded(1), again)
    async with shown(FakeSource(story.state, log=log), "f", "enter") as (app, _pilot):
        assert isinstance(app.screen, OutputScreen)
        assert "Foo499" in text_of(app)


async def test_a_failure_leads_to_its_place_in_the_output() -> None:
    log = builds.output_log()
    state = builds.failed().state
    at = log.index(b"a/b499")
    state = replace(state, failures=tuple(replace(f, log_start=at) for f in state.failures))
    async with shown(FakeSource(state, "ended", log=log), "f", "enter") as (app, _pilot):
        assert isinstance(app.screen, OutputScreen)
        assert "Foo499" in text_of(app)


# -- going on with a build that failed -------------------------------------------------------------------------


def over(story: builds.Story, link: Link = "ended", **options: object) -> FakeSource:
    return FakeSource(story.state, link, log=builds.output_log(), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(("key", "remedy"), [("r", True), ("c", False)])
@pytest.mark.parametrize("page", [(), ("f",), ("o",)])
async def test_going_on_asks_first_and_ends_this_screen(key: str, remedy: bool, page: tuple[str, ...]) -> None:
    going_on = GoingOn()
    async with shown(over(builds.killed()), *page, key, go_on=going_on) as (app, pilot):
        assert isinstance(app.screen, ResumeBox)
        assert "hdim256" in text_of(app) or not remedy
        await pilot.press(key)  # the key that asked is no answer
        await settle(pilot)
        assert going_on.asked == []
        await pilot.press("y")
        await settle(pilot)
    assert going_on.asked == [remedy]
    assert not app.is_running
    assert app.return_value is None


async def test_letters_in_a_burst_do_not_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Question, "deaf_seconds", 60.0)
    going_on = GoingOn()
    async with shown(over(builds.killed()), go_on=going_on) as (app, pilot):
        await pilot.press("r", "y")
        await settle(pilot)
        assert isinstance(app.screen, ResumeBox)
        await pilot.press("escape")
    assert going_on.asked == []


async def test_a_refusal_is_told_and_one_may_try_again() -> None:
    going_on = GoingOn("b2 has gone on with b1 already")
    async with shown(over(builds.killed()), "c", "y", go_on=going_on) as (app, pilot):
        assert "b2 has gone on with b1 already" in text_of(app)
        await pilot.press("r")
        await settle(pilot)
        assert isinstance(app.screen, ResumeBox)
    assert going_on.asked == [False]


NO_KEYS: dict[str, Callable[[], tuple[FakeSource, GoingOn | None]]] = {
    "it runs": lambda: (over(builds.running(3), "live"), GoingOn()),
    "it ended well": lambda: (over(builds.done()), GoingOn()),
    "only looking": lambda: (over(builds.killed(), read_only=True), None),
    "a replay": lambda: (over(builds.killed(), "replay", read_only=True), None),
    "the end is not known for certain": lambda: (over(builds.killed(), "lost"), GoingOn()),
}


@pytest.mark.parametrize("why", NO_KEYS)
async def test_there_is_no_going_on_where(why: str) -> None:
    source, going_on = NO_KEYS[why]()
    async with shown(source, "f", "r", "c", go_on=going_on) as (app, _pilot):
        assert not isinstance(app.screen, ResumeBox)
        text = text_of(app)
        assert "c resume" not in text
        assert "resume as it was" not in text


async def test_a_replay_shows_the_diagnosis_and_what_would_be_safe() -> None:
    async with shown(over(builds.killed(), "replay", read_only=True), "f", size=(120, 40)) as (app, _pilot):
        text = text_of(app)
    assert "Out of memory: the kernel killed a compiler" in text
    assert "safe    run the step again, flash_bwd_hdim256_bf16_causal_sm80.cu.o first and alone" in text


async def test_without_a_safe_action_there_is_no_remedy_to_apply() -> None:
    story = builds.diagnosed(*builds.killed().state.diagnosis.causes)  # type: ignore[union-attr]
    async with shown(over(story), "f", "r") as (app, _pilot):
        assert not isinstance(app.screen, ResumeBox)
        assert "r remedy" not in text_of(app)
        assert "c resume" in text_of(app)


async def test_enter_on_a_cause_shows_its_place_in_the_output() -> None:
    async with shown(over(builds.killed()), "f", "enter") as (app, _pilot):
        assert isinstance(app.screen, OutputScreen)
        assert app.screen.top <= 500
        assert not app.screen.follow
