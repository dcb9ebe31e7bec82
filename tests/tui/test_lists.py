"""Lists as people know them: sorted, filtered, clicked at, with plain names and reasons."""

from __future__ import annotations

from dataclasses import replace

import pytest
from textual.events import Key

from stoker.model import events as ev
from stoker.show.tui.home import HomeApp, HomeRow
from stoker.show.tui.pages.job_list import ORDERS
from stoker.show.tui.pages.names import MAX_NAME, distinct_names, matches, plain_name
from stoker.show.tui.screens.dashboard_screen import DashboardScreen, TimelineScreen
from stoker.show.tui.screens.failures_screen import FailuresScreen
from stoker.show.tui.screens.job_box import JobBox
from stoker.show.tui.screens.output_screen import OutputScreen

from . import builds, test_verification
from .apps import THEMES, settle, shown
from .builds import FakeSource
from .pictures import text_of


def governed() -> FakeSource:
    return FakeSource(builds.governed(5, 8).state, log=builds.output_log(50))


def rows(text: str) -> list[str]:
    """The table of jobs: its heading and the rows below."""
    lines = text.splitlines()[:-1]
    return lines[next(n for n, line in enumerate(lines) if line.startswith("running ") or " match '" in line) :]


@pytest.mark.parametrize(
    ("output", "name"),
    [
        ("caffe2/CMakeFiles/torch_cuda.dir/__/aten/src/ATen/Sum.cu.o", "aten/src/ATen/Sum.cu.o"),
        ("CMakeFiles/grate.dir/src/main.cpp.o", "src/main.cpp.o"),
        ("CMakeFiles/t.dir/__/__/outside.c.o", "outside.c.o"),
        ("a/b/CMakeFiles/t.dir/__/__/c.o", "c.o"),
        ("hold a/CMakeFiles/x.dir/b.o", "hold a/b.o"),
        ("lib/__init__/x.o", "lib/__init__/x.o"),
        ("myCMakeFiles/x.dir/b.o", "myCMakeFiles/x.dir/b.o"),
    ],
)
def test_a_name_is_shown_without_the_folders_of_cmake(output: str, name: str) -> None:
    assert plain_name(output) == name


def test_jobs_of_one_name_are_told_apart_by_their_targets_or_else_shown_whole() -> None:
    ours, theirs = "SPIRV/CMakeFiles/SPIRV.dir/doc.cpp.o", "SPIRV/CMakeFiles/SPVRemapper.dir/doc.cpp.o"
    other = "SPIRV/CMakeFiles/SPIRV.dir/Logger.cpp.o"
    assert distinct_names([ours, other, theirs, ours]) == {
        ours: "SPIRV/doc.cpp.o (SPIRV)",
        theirs: "SPIRV/doc.cpp.o (SPVRemapper)",
        other: "SPIRV/Logger.cpp.o",
    }
    up, here = "a/CMakeFiles/t.dir/__/b.o", "CMakeFiles/t.dir/b.o"
    assert distinct_names([up, here]) == {up: up, here: here}


async def test_two_jobs_of_one_name_are_told_apart_while_they_run_and_at_the_end() -> None:
    story = builds.started().add(1, ev.SchedulerStarted(1, "ninja", 8, "/src", "1.13", 9), ev.LevelSet("auto", 4))
    targets = ("SPIRV", "SPVRemapper")
    for jid, target in enumerate(targets, 1):
        output = f"SPIRV/CMakeFiles/{target}.dir/doc.cpp.o"
        story.add(2, ev.JobStarted(jid, 1, 100 + jid, output, "cxx", builds.START + 2))
    story.add(3, builds.sampled(2))
    async with shown(FakeSource(story.state)) as (app, _pilot):
        assert all(f"SPIRV/doc.cpp.o ({target})" in text_of(app) for target in targets)
    for jid, target in enumerate(targets, 1):
        output = f"SPIRV/CMakeFiles/{target}.dir/doc.cpp.o"
        story.add(9, ev.JobFinished(jid, 1, output, "cxx", 7.0, "ok", 2**30))
    story.add(10, ev.BuildEnded("done", 0, ""))
    async with shown(FakeSource(story.state, "ended")) as (app, _pilot):
        assert all(f"SPIRV/doc.cpp.o ({target})" in text_of(app) for target in targets)


def test_a_name_without_an_end_takes_no_time() -> None:
    assert len(plain_name("a" * 10**6 + "/__/" * 10**5)) <= MAX_NAME + 1


def test_words_are_looked_for_each_by_itself_and_capitals_count_if_there_are_any() -> None:
    assert matches("cuda flash", "third_party/Flash_bwd.cu.o", "CUDA")
    assert not matches("Cuda", "cuda")
    assert matches("", "anything")


async def test_jobs_are_sorted_by_what_a_key_goes_through() -> None:
    async with shown(governed(), size=(150, 40)) as (app, pilot):
        found = {}
        for head in ("time▾", "memory▾", "expected▾", "by name▾"):
            table = rows(text_of(app))
            found[head] = [line[2:].split()[0] for line in table[1:6]]
            assert ("mem▾/" if head == "memory▾" else head) in table[0]
            await pilot.press("greater_than_sign")
            await settle(pilot)
        assert found["by name▾"] == sorted(found["by name▾"])
        await pilot.press("less_than_sign")
        await settle(pilot)
        assert "by name▾" in rows(text_of(app))[0]


@pytest.mark.parametrize("key", ["greater_than_sign", "less_than_sign"])
async def test_sorting_leaves_the_picked_job_picked_and_in_sight(key: str) -> None:
    async with shown(governed(), "G", size=(80, 24)) as (app, pilot):
        assert isinstance(app.screen, DashboardScreen)
        picked = app.screen.picked
        assert picked is not None
        for _ in ORDERS:
            await pilot.press(key)
            await settle(pilot)
            assert app.screen.cursor == picked.jid
            assert any(picked.output.rpartition("/")[2] in line for line in rows(text_of(app)))


async def test_sorting_picks_no_job() -> None:
    async with shown(governed(), "greater_than_sign", size=(80, 24)) as (app, _pilot):
        assert isinstance(app.screen, DashboardScreen)
        assert app.screen.cursor is None
        assert not any(line.startswith("▸") for line in rows(text_of(app)))


async def test_largest_first_while_others_come_and_go() -> None:
    state = builds.governed(5, 8).state
    largest = max(state.jobs.values(), key=lambda job: job.rss)
    async with shown(FakeSource(state), "greater_than_sign", "home") as (app, _pilot):
        assert isinstance(app.screen, DashboardScreen)
        assert app.screen.cursor == largest.jid


async def test_a_filter_keeps_what_has_the_words_and_esc_shows_all() -> None:
    async with shown(governed(), "slash", *"onnx", size=(120, 40)) as (app, pilot):
        table = [line for line in rows(text_of(app))[1:] if ".o " in line or ".a " in line or ".so " in line]
        assert table
        assert all("onnx" in line for line in table)
        assert "/onnx: 2 of 13" in text_of(app)
        assert "2 of 13 match 'onnx'; 5362 more not started yet" in text_of(app)
        await pilot.press("enter", "down")
        await settle(pilot)
        assert isinstance(app.screen, DashboardScreen)
        assert app.screen.picked is not None
        assert "onnx" in app.screen.picked.output
        await pilot.press("escape")
        await settle(pilot)
        assert "DispatchKeySet" in text_of(app)
        assert " of 13" not in text_of(app)


@pytest.mark.parametrize(
    ("source", "key", "words", "kept", "gone"),
    [
        (lambda: FakeSource(builds.failed().state, "ended"), "f", "bar", "Bar.cpp.o", "Foo.cpp.o    "),
        (lambda: FakeSource(builds.governed().state), "d", "freeze", "descriptor.cc.o", "level 24"),
        (
            lambda: FakeSource(test_verification.ended(test_verification.MIXED)),
            "v",
            "zzz",
            "/zzz: 0 of",
            "libtorch",
        ),
    ],
)
async def test_every_list_has_a_filter(source: object, key: str, words: str, kept: str, gone: str) -> None:
    async with shown(source(), key, size=(120, 40)) as (app, pilot):  # type: ignore[operator]
        await pilot.press("slash", *words, "enter")
        await settle(pilot)
        assert kept in text_of(app)
        assert gone not in text_of(app)


async def test_a_waiting_job_says_why_in_its_row() -> None:
    for size in ((80, 24), (120, 40)):
        async with shown(governed(), size=size) as (app, _pilot):
            row = next(line for line in rows(text_of(app)) if line.startswith("○"))
            assert "too little memory" in row or "memory kept for " in row


# -- the mouse ---------------------------------------------------------------------------------------------------


async def test_a_click_picks_a_job_and_another_opens_it() -> None:
    async with shown(governed(), size=(120, 40)) as (app, pilot):
        y = next(n for n, line in enumerate(text_of(app).splitlines()) if "libtorch_cuda.so" in line)
        await pilot.click(offset=(10, y))
        await settle(pilot)
        assert isinstance(app.screen, DashboardScreen)
        assert app.screen.picked is not None
        assert app.screen.picked.output == "lib/libtorch_cuda.so"
        await pilot.click(offset=(30, y))
        await settle(pilot)
        assert isinstance(app.screen, JobBox)


@pytest.mark.parametrize("width", [80, 120])
async def test_a_click_on_a_heading_sorts_by_it(width: int) -> None:
    async with shown(governed(), size=(width, 30)) as (app, pilot):

        async def click(word: str) -> str:
            lines = text_of(app).splitlines()
            y, line = next((n, line) for n, line in enumerate(lines) if "/expected" in line)
            await pilot.click(offset=(line.index(word) + 1, y))
            await settle(pilot)
            return text_of(app).splitlines()[y]

        assert "mem▾/expected" in await click("mem")
        assert "mem/expected▾" in await click("expected")
        assert "▾" not in (await click("running")).replace("by name▾", "")
        assert "time▾" in await click("time")
        assert "time▾" in await click("cpu")
        assert "jobs are sorted by time, memory, expected or name, not by cpu" in text_of(app)


async def test_the_box_about_a_job_holds_what_can_be_done_and_a_click_does_it() -> None:
    source = governed()
    async with shown(source, "down", "enter", size=(120, 40)) as (app, pilot):
        lines = text_of(app).splitlines()
        y = next(n for n, line in enumerate(lines) if "F freeze   O alone   X kill" in line)
        await pilot.click(offset=(lines[y].index("F freeze") + 3, y))
        await settle(pilot)
        assert source.commands == [("job", {"jid": 1, "act": "freeze"})]
        await pilot.click(offset=(1, 1))
        await settle(pilot)
        assert isinstance(app.screen, DashboardScreen)


async def test_the_box_says_why_nothing_can_be_done() -> None:
    async with shown(FakeSource(builds.running(3).state), "down", "enter") as (app, _pilot):
        assert "stoker holds no jobs of this build" in text_of(app)


async def test_a_click_on_a_key_of_the_footer_presses_it() -> None:
    async with shown(governed(), size=(120, 40)) as (app, pilot):
        x = text_of(app).splitlines()[-1].index("o output")
        await pilot.click(offset=(x, 39))
        await settle(pilot)
        assert isinstance(app.screen, OutputScreen)


async def test_a_click_on_a_failure_chooses_it() -> None:
    async with shown(FakeSource(builds.failed().state, "ended"), "f") as (app, pilot):
        y = next(n for n, line in enumerate(text_of(app).splitlines()) if "Bar.cpp.o" in line)
        await pilot.click(offset=(10, y))
        await settle(pilot)
        assert isinstance(app.screen, FailuresScreen)
        assert "▸ ✗ caffe2/Bar.cpp.o" in text_of(app)


# -- keys that can do nothing now -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "keys", "why"),
    [
        (lambda: FakeSource(builds.done().state, "ended"), ("s",), "s (stop): the build has ended"),
        (lambda: FakeSource(builds.done().state, "ended"), ("c",), "there is nothing to resume"),
        (lambda: FakeSource(builds.running(3).state), ("c",), "the build has not ended"),
        (lambda: FakeSource(builds.running(3).state), ("space",), "only in a replay"),
        (lambda: FakeSource(builds.running(3).state, read_only=True), ("p",), "this viewer is read-only"),
        (lambda: FakeSource(builds.running(3).state, "replay"), ("s",), "this is a replay"),
        (lambda: FakeSource(builds.running(3).state), ("t", "X"), "X (kill) works on the dashboard screen only"),
    ],
)
async def test_a_key_that_can_do_nothing_says_why(source: object, keys: tuple[str, ...], why: str) -> None:
    async with shown(source(), *keys) as (app, _pilot):  # type: ignore[operator]
        assert any(why in note.message for note in app._notifications), [n.message for n in app._notifications]


async def test_a_message_goes_at_the_next_key_and_with_its_page_but_an_error_stays() -> None:
    async with shown(governed(), "X") as (app, pilot):
        assert "pick a job first" in text_of(app)
        await pilot.press("x")
        await settle(pilot)
        assert "pick a job first" not in text_of(app)
        await pilot.press("X", "t")
        await settle(pilot)
        assert "pick a job first" not in text_of(app)
        app.inform("no such thing", "error")
        await pilot.press("o")
        await settle(pilot)
        assert "no such thing" in text_of(app)


async def test_of_keys_in_one_burst_only_the_last_message_is_shown() -> None:
    """Pasted text does that: its messages covered the screen."""
    async with shown(governed()) as (app, pilot):
        for key in ("e", "E", "n", "z", "e"):
            app.post_message(Key(key, key))
        await settle(pilot)
        assert len(app._notifications) == 1
        assert "e (next error) works on the output screen only" in text_of(app)


async def test_a_key_that_does_something_says_nothing() -> None:
    async with shown(governed(), "plus", "down", "F", "o", "escape", "x") as (app, _pilot):
        assert [n.message for n in app._notifications] == []


# -- the timeline's cursor, and the end -----------------------------------------------------------------------------


async def test_the_timeline_names_the_jobs_and_the_decision_of_a_moment() -> None:
    keys = ("t", "left", "z", *["left"] * 4)
    async with shown(FakeSource(builds.governed().state), *keys, size=(120, 40)) as (app, pilot):
        text = text_of(app)
        assert "third_party/flash_bwd_hdim256_bf16_causal_sm80.cu.o" in text
        assert "descriptor.cc.o  1.1 GiB left" in text
        half = ["35:00", "40:00", "45:00", "50:00", "55:00", "1:00:00"]
        assert text.splitlines()[-7].split() == half
        await pilot.press("escape")
        await settle(pilot)
        assert isinstance(app.screen, TimelineScreen)
        assert "freeze descriptor.cc.o" not in text_of(app)


async def test_the_end_fills_a_large_screen_and_says_what_to_do_next() -> None:
    ended = builds.done().state
    source = FakeSource(replace(ended, restraint=replace(ended.restraint, held=14)), "ended")
    async with shown(source, size=(200, 60), closing=lambda: "14 held, 2 frozen, 0 killed") as (app, _pilot):
        text = text_of(app)
        assert "governed 14 held, 2 frozen, 0 killed" in text
        assert "waited for memory" not in text, "the line above says so already"
        assert "from a shell: stoker report b1" in text
        assert "memory over the build" in text
        assert "by request" in text  # a decision
        assert sum(not line for line in text.splitlines()) <= 12


async def test_what_a_small_end_screen_keeps_of_a_demos_words_has_their_label() -> None:
    words = "20 waited for memory, 0 freezes, 0 killed; plain ninja -j8 would have needed 6.1 GiB, the budget is 2 GiB"
    for size in ((60, 20), (80, 24), (120, 40)):
        async with shown(FakeSource(builds.done().state, "ended"), size=size, closing=lambda: words) as (app, _pilot):
            (line,) = [line for line in text_of(app).splitlines() if "20 waited for memory" in line]
            assert line.startswith("governed 20 waited")


async def test_a_small_end_screen_cuts_no_figure_and_no_command() -> None:
    async with shown(FakeSource(builds.failed().state, "ended"), size=(40, 12), go_on=None) as (app, _pilot):
        lines = text_of(app).splitlines()
    assert "after 1:02:10" in lines[0]
    assert "jobs     1204 done, 2 failed" in lines
    assert "next     c resumes it" in lines
    assert "memory   at most 19.0 GiB by the build" in lines


@pytest.mark.parametrize("ascii_only", [False, True])
async def test_home_marks_the_picked_build_and_its_keys_are_in_the_help(ascii_only: bool) -> None:
    rows = tuple(HomeRow(name, (name, "1:00", "running"), "ok") for name in ("pytorch-1", "llvm-1", "llvm-2"))
    app = HomeApp(lambda: (("ID", "TIME", "STATE"), rows), THEMES["dark"], ascii_only=ascii_only, no_colour=True)

    def marked() -> list[str]:
        return [
            line.split()[1] for line in text_of(app).splitlines() if line.lstrip()[:1] == (">" if ascii_only else "▸")
        ]

    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert marked() == ["pytorch-1"]
        for key, name in (("end", "llvm-2"), ("g", "pytorch-1"), ("G", "llvm-2"), ("home", "pytorch-1")):
            await pilot.press(key)
            await pilot.pause()
            assert marked() == [name], key
        await pilot.press("question_mark")
        await settle(pilot)
        assert "Filter builds by words" in text_of(app)
        app.refresh_rows()  # the list is looked at anew behind the box, too
        await pilot.press("escape")
        await settle(pilot)
        assert "Filter builds by words" not in text_of(app)
        assert marked() == ["pytorch-1"]


async def test_home_without_builds_says_how_to_start_one_and_offers_no_key_of_a_list() -> None:
    rows: list[HomeRow] = []
    app = HomeApp(lambda: (("ID", "STATE"), tuple(rows)), THEMES["dark"], ascii_only=False, no_colour=False)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        first, *rest = text_of(app).splitlines()
        assert first.strip() == "No builds yet. Start one with:  stoker run -- ninja -C build"
        assert [line.strip() for line in rest if line.strip()] == ["q leave; builds continue  ? help"]
        rows.append(HomeRow("pytorch-1", ("pytorch-1", "running"), "ok"))
        app.refresh_rows()
        await settle(pilot)
        assert "enter open  / filter  q leave" in text_of(app)
        await pilot.press("enter")
    assert app.return_value == "pytorch-1"


async def test_home_hides_builds_that_ended_well_at_once_but_the_newest() -> None:
    names = (("true-3", True), ("llvm-1", False), ("true-2", True), ("true-1", True))
    rows = tuple(HomeRow(name, (name, "0:01", "done"), "ok", trivial) for name, trivial in names)
    app = HomeApp(lambda: (("ID", "TIME", "STATE"), rows), THEMES["dark"], ascii_only=False, no_colour=False)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        text = text_of(app)
        assert "2 builds are hidden that succeeded in less than 2 seconds; a shows all" in text
        assert [name in text for name, _ in names] == [True, True, False, False]
        await pilot.press("a")
        await pilot.pause()
        assert all(name in text_of(app) for name, _ in names)
        assert "hidden" not in text_of(app)
        await pilot.press("a", "slash", *"true-1")
        await pilot.pause()
        assert "/true-1: 1 of 4" in text_of(app)


async def test_home_has_the_cursor_on_the_build_that_was_just_left() -> None:
    """Also if it is one of those that the list hides, and while its row changes."""
    names = (("true-3", True), ("llvm-1", False), ("true-2", True))
    looks = iter(range(99))

    def look() -> tuple[tuple[str, ...], tuple[HomeRow, ...]]:
        time = f"0:0{next(looks)}"
        return ("ID", "TIME", "STATE"), tuple(HomeRow(name, (name, time, "done"), "ok", quick) for name, quick in names)

    app = HomeApp(look, THEMES["dark"], ascii_only=False, no_colour=True, chosen="true-2")
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        app.refresh_rows()
        await settle(pilot)
        assert [line.split()[1] for line in text_of(app).splitlines() if line.lstrip().startswith("▸")] == ["true-2"]


async def test_home_offers_all_builds_only_where_some_are_hidden() -> None:
    rows = [HomeRow("llvm-1", ("llvm-1", "9:01", "done"), "ok")]
    app = HomeApp(lambda: (("ID", "TIME", "STATE"), tuple(rows)), THEMES["dark"], ascii_only=False, no_colour=False)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert "a all builds" not in text_of(app)
        rows.append(HomeRow("true-1", ("true-1", "0:01", "done"), "ok", trivial=True))
        app.refresh_rows()
        await pilot.pause()
        await pilot.pause()
        assert "a all builds" in text_of(app)


async def test_home_shows_the_builds_with_some_words_and_esc_shows_all() -> None:
    rows = tuple(HomeRow(name, (name, "1:00", "running"), "ok") for name in ("pytorch-1", "llvm-1", "llvm-2"))
    app = HomeApp(lambda: (("ID", "TIME", "STATE"), rows), THEMES["dark"], ascii_only=False, no_colour=False)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("slash", *"llvm")
        await pilot.pause()
        assert text_of(app).splitlines()[-1].strip() == "/ llvm"
        await pilot.press("enter")
        await pilot.pause()
        assert "/llvm: 2 of 3" in text_of(app)
        assert "pytorch-1" not in text_of(app)
        await pilot.press("escape")
        await pilot.pause()
        assert "pytorch-1" in text_of(app)
        await pilot.press("slash", *"llvm-2", "enter", "enter")
        await pilot.pause()
    assert app.return_value == "llvm-2"
