"""Nothing that a person needs is cut for good: texts wrap, scroll and filter at 80 columns."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import replace

from stoker.model import events as ev
from stoker.model.diagnosis import Cause
from stoker.model.events import KilledBy
from stoker.model.state import Failure
from stoker.model.units import format_duration
from stoker.show.tui.pages import timeline_page
from stoker.show.tui.pages.lines import text_of as text_of_line
from stoker.show.tui.pages.lines import wrap
from stoker.show.tui.pages.moment import time_of_day
from stoker.show.tui.screens.dashboard_screen import TimelineScreen
from stoker.show.tui.terminal.glyphs import ASCII

from . import builds
from .apps import settle, shown
from .builds import FakeSource
from .pictures import text_of
from .test_views import at


async def test_what_to_do_next_is_whole_at_the_end() -> None:
    async with shown(FakeSource(builds.failed().state, "ended")) as (app, _pilot):
        text = text_of(app)
        assert "next     c resumes it, or from a shell: stoker run --resume b1\n" in text


async def test_the_end_offers_no_command_that_cannot_work() -> None:
    source = FakeSource(builds.failed().state, "ended")
    async with shown(source, unresumable="stoker demo starts another") as (app, _pilot):
        text = text_of(app)
        assert "next     c resumes it now; stoker demo starts another\n" in text
        assert "--resume" not in text


async def test_the_end_of_a_build_whose_folder_is_gone_says_so_wherever_it_would_be_resumed() -> None:
    source, gone = (
        FakeSource(builds.failed().state, "ended", read_only=True),
        "it cannot be resumed: its folder is gone",
    )
    async with shown(source, unresumable=gone) as (app, pilot):
        source.read_only = False  # what a viewer without a way to resume is, on a build that nobody can resume
        assert f"next     {gone}\n" in text_of(app)
        await pilot.press("c")
        await settle(pilot)
        assert f"c (resume): {gone}" in text_of(app)


async def test_the_end_names_the_output_in_a_way_that_can_be_copied() -> None:
    state = replace(builds.failed().state, log_path=f"/{'long/' * 14}output.log")
    for size, named in (((80, 24), "stoker log b1"), ((120, 40), state.log_path)):
        async with shown(FakeSource(state, "ended"), size=size) as (app, _pilot):
            assert f"log      {named}  (" in text_of(app)


async def test_a_failure_of_a_running_build_says_when_its_cause_is_looked_for_and_what_can_be_done() -> None:
    running = replace(builds.failed().state, outcome=None, ended=None, exit_code=None)
    async with shown(FakeSource(running), "f") as (app, _pilot):
        text = text_of(app)
        assert "cause   is looked for when the build ends; until then its output is below" in text
        assert "c       resumes the build once it has ended: fix the cause by then" in text
        assert "s       stops the build now" in text
    async with shown(FakeSource(running, read_only=True), "f") as (app, _pilot):
        assert "is looked for when the build ends" in text_of(app)
        assert "stops the build now" not in text_of(app)


async def test_a_failure_of_a_running_build_says_why_it_failed_and_what_to_do() -> None:
    running = replace(builds.failed().state, outcome=None, ended=None, exit_code=None)
    known = Cause("x", "The headers of zlib are not found", "It is not installed.", "apt install zlib1g-dev", line=3)

    async def find(failure: Failure, _killers: Collection[KilledBy]) -> Cause | None:
        return known if "Foo" in failure.output else None

    async with shown(FakeSource(running), "f", find_cause=find) as (app, pilot):
        text = text_of(app)
        assert "cause   The headers of zlib are not found\n" in text
        assert "why     It is not installed.\nremedy  apt install zlib1g-dev\n" in text
        assert "c       resumes the build once it has ended" in text
        assert "error: 'x' was not declared" in text
        await pilot.press("down")
        await settle(pilot)
        assert "cause   no rule knows it; its output is below\n" in text_of(app)


async def test_while_a_cause_is_looked_for_the_page_says_so_and_points_to_what_the_step_printed() -> None:
    found = asyncio.Event()

    async def find(failure: Failure, _killers: Collection[KilledBy]) -> Cause | None:
        await found.wait()
        return None

    running = replace(builds.failed().state, outcome=None, ended=None, exit_code=None)
    async with shown(FakeSource(running), "f", find_cause=find) as (app, pilot):
        text = text_of(app)
        assert "cause   is being looked for now; its output is below\n" in text
        assert "error: 'x' was not declared" in text
        await pilot.press("escape", "f")  # the search goes on
        found.set()
        await settle(pilot)
        assert "cause   no rule knows it; its output is below\n" in text_of(app)


async def test_a_search_for_a_cause_that_fails_is_not_a_cause_that_no_rule_knows() -> None:
    async def find(failure: Failure, _killers: Collection[KilledBy]) -> Cause | None:
        raise TimeoutError(failure.output)

    running = replace(builds.failed().state, outcome=None, ended=None, exit_code=None)
    async with shown(FakeSource(running), "f", find_cause=find) as (app, _):
        assert "cause   the search for it failed; its output is below\n" in text_of(app)


async def test_the_ends_of_the_list_of_failures_have_their_keys() -> None:
    async with shown(FakeSource(builds.failed().state, "ended"), "f", "end") as (app, pilot):
        assert "▸ ✗ caffe2" in text_of(app)
        await pilot.press("home")
        await settle(pilot)
        assert "▸ ✗ aten" in text_of(app)


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


async def test_a_failure_whose_second_error_is_cut_says_so_and_shows_it() -> None:
    excerpt = (*(f"line {n}" for n in range(40)), "b.cpp:9:1: error: the second one")
    story = builds.running(0).add(3724, ev.FailureFound("b.o", "c++ -c b.cpp", 1, excerpt, 1, 2))
    async with shown(FakeSource(story.state), "f") as (app, pilot):
        assert "pgdn: more of this" in text_of(app)
        for _ in range(6):
            await pilot.press("pagedown")
        await settle(pilot)
        assert "the second one" in text_of(app)
        assert "no more below   pgup: back up" in text_of(app)


async def test_a_timeline_without_room_says_how_much_it_needs() -> None:
    async with shown(FakeSource(builds.running(12).state), "t", size=(40, 12)) as (app, _pilot):
        text = " ".join(text_of(app).split())
        assert "too small for the timeline, which needs 13 rows" in text
        assert "needs a few seconds" not in text


async def test_home_and_end_go_to_both_ends_of_the_timeline() -> None:
    state = builds.governed(5, 8).state
    points = state.timeline.points
    async with shown(FakeSource(state), "t", "home", size=(100, 30)) as (app, pilot):
        assert format_duration(points[0].time - state.started) + "  " in text_of(app)
        assert time_of_day(points[0].time) in text_of(app)
        await pilot.press("end")
        await settle(pilot)
        assert time_of_day(points[-1].time) in text_of(app)


def test_each_sign_of_the_timeline_in_ascii_has_one_meaning() -> None:
    text = "\n".join(text_of_line(line) for line in timeline_page.timeline(at(builds.governed().state), 120, 40, ASCII))
    assert "_ in all" in text
    assert "- budget" in text
    assert ". job started or held" in text


async def test_who_runs_alone_is_undone_with_a_key_in_any_width() -> None:
    for size in ((60, 20), (80, 24), (120, 40)):
        async with shown(FakeSource(builds.alone().state), size=size) as (app, _pilot):
            assert "; O undoes it" in text_of(app)


async def test_memory_that_was_never_measured_is_not_told_as_none() -> None:
    story = builds.running(0).add(3724, *builds.jobs(1, 3724))
    async with shown(FakeSource(story.state), "down", "enter") as (app, _pilot):
        assert "not measured yet" in text_of(app)
    short = builds.started().add(1, ev.BuildEnded("done", 0, ""))
    async with shown(FakeSource(short.state, "ended")) as (app, _pilot):
        assert "not measured: the build had ended before" in text_of(app)
        assert "0 B by the build" not in text_of(app)


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
        assert text_of(app).count("Move the cursor back in time") == 1


async def test_what_a_deck_job_has_not_used_is_not_listed() -> None:
    story = builds.governed(3, 30)
    story.add(3724, ev.JobsWaiting((9,), "memory", "needs ~9.1 GiB"))
    async with shown(FakeSource(story.state), "end", "enter") as (app, _pilot):
        text = text_of(app)
        assert "held before it does anything" in text
        assert "at most 0 B so far" not in text


async def test_a_time_left_that_may_be_anything_is_not_told_as_a_figure() -> None:
    story = builds.running(3).add(3725, ev.Estimated(240.0, 1.0, 40000.0))
    for size in ((60, 20), (80, 24), (120, 40)):
        async with shown(FakeSource(story.state), size=size) as (app, _pilot):
            assert "ETA learning" in text_of(app)
            assert "4 min" not in text_of(app).splitlines()[1]


async def test_the_output_on_the_dashboard_tells_of_discarded_jobs_in_whole_words() -> None:
    log = builds.dropped_log(100)
    async with shown(FakeSource(builds.dropped().state, log=log)) as (app, _pilot):
        lines = text_of(app).splitlines()
        assert "† 13 jobs that had not started were discarded after the failure" in lines


async def test_the_figures_of_a_moment_are_whole_on_a_small_screen() -> None:
    async with shown(FakeSource(builds.governed().state), "t", "left", "left", "left") as (app, _pilot):
        figures = next(line for line in text_of(app).splitlines() if line.startswith("1:0"))
        assert figures.endswith("cpu 63 of 63 %, 12 running")


def test_a_path_is_broken_behind_a_slash() -> None:
    path = "caffe2/CMakeFiles/torch_cuda.dir/__/aten/src/ATen/native/cuda/ReduceSumProdKernel.cu.o"
    assert wrap(path, 72, 4) == [path[:62], "ReduceSumProdKernel.cu.o"]
    assert wrap(f"killed for memory: {path}", 72, 4)[0].endswith("/")
    assert wrap("x" * 100, 72, 4) == ["x" * 72, "x" * 28]


async def test_the_name_stands_apart_on_a_narrow_screen() -> None:
    async with shown(FakeSource(builds.governed().state), size=(30, 8)) as (app, _pilot):
        assert text_of(app).splitlines()[0] == "pytorch       running  1:02:03"
