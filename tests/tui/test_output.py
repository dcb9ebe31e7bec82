from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.pilot import Pilot

from stoker.model import events as ev
from stoker.model.state import BuildState
from stoker.model.units import format_bytes
from stoker.show.tui.pages.lines import text_of as plain
from stoker.show.tui.screens.output_screen import ABOVE, OutputScreen
from stoker.show.tui.screens.page_widget import Page
from stoker.show.tui.text_log import ERRORS, SHOWN, TextLog, pattern_of, scan, scan_back

from . import builds
from .apps import settle, shown
from .builds import FakeLog, FakeSource
from .pictures import text_of

logs = st.lists(st.binary(max_size=6).map(lambda b: b.replace(b"\n", b"")), max_size=20).flatmap(
    lambda rows: st.sampled_from([b"\n".join(rows), b"".join(row + b"\n" for row in rows)])
)


def split(data: bytes) -> list[bytes]:
    rows = data.split(b"\n")
    return rows[:-1] if not rows[-1] else rows


@given(logs, st.integers(0, 25))
def test_lines_are_those_of_the_file(data: bytes, count: int) -> None:
    log = TextLog(FakeLog(data))
    rows = split(data)
    assert [line.raw for line in log.lines(0, count)] == rows[:count]
    tail = log.lines(log.tail(max(1, count)), max(1, count))
    assert [line.raw for line in tail] == rows[-max(1, count) :]


@given(logs, st.integers(0, 80), st.integers(0, 25))
def test_going_back_and_forth_meets_the_same_lines(data: bytes, offset: int, count: int) -> None:
    log = TextLog(FakeLog(data))
    starts = [0, *(m.end() for m in re.finditer(b"\n", data))]
    start = log.start_of(offset)
    assert start in starts
    assert start <= min(offset, len(data))
    back = log.back(start, count)
    assert back == starts[max(0, starts.index(start) - count)]


def test_a_huge_line_is_read_in_bounded_pieces() -> None:
    source = FakeLog(b"a\n" + b"x" * 10_000_000 + b"\nb\n")
    log = TextLog(source)
    first, huge, last = log.lines(0, 9)
    assert (first.raw, last.raw) == (b"a", b"b")
    assert len(huge.raw) == SHOWN
    assert log.back(last.start, 1) == 2
    assert source.longest_read <= 1_000_000


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (b"FAILED: [code=1] foo.o", True),
        (b"foo.c:1:2: error: no", True),
        (b"foo.c:1:2: \x1b[01;31m\x1b[Kerror: \x1b[m\x1b[Kno", True),
        (b"foo.c:1:2: \x1b[0;1;31mfatal error: \x1b[0mno", True),
        (b"x.cc:(.text+0x5): undefined reference to `f'", True),
        (b"c++: fatal error: Killed signal terminated program cc1plus", True),
        (b"ninja: build stopped: subcommand failed.", True),
        (b"make: *** [Makefile:2: all] Error 1", True),
        (b"ModuleNotFoundError: No module named 'x'", True),
        (b"CMake Error at CMakeLists.txt:1:", True),
        (b"[1/2] Building CXX object error.cpp.o", False),
        (b"-- Performing Test HAS_WERROR - Success", False),
        (b"nothing went wrong, no errors", False),
    ],
)
def test_what_looks_like_an_error(line: bytes, found: bool) -> None:
    assert bool(ERRORS.search(line)) is found


def test_words_are_found_through_colours_and_case() -> None:
    assert pattern_of("foo.c: error").search(b"Foo.c: \x1b[31m\x1b[KError")
    assert not pattern_of("Error").search(b"error")
    assert not pattern_of("a.b").search(b"axb")


async def test_a_scan_finds_everything_across_its_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stoker.show.tui.text_log.SCAN", 7)
    data = b"..needle......needleneedle......needle"
    places = [m.start() for m in re.finditer(b"needle", data)]
    forth = [hit async for part in scan(FakeLog(data), re.compile(b"needle"), 0, len(data)) for hit in part.hits]
    back = [
        hit
        async for part in scan_back(FakeLog(data), re.compile(b"needle"), 0, len(data))
        for hit in reversed(part.hits)
    ]
    assert forth == places
    assert back == places[::-1]


async def find(pilot: Pilot[Any], words: str) -> None:
    await pilot.press("slash")
    await settle(pilot)
    await pilot.press(*words)
    await pilot.press("enter")
    await searched(pilot)


async def test_a_match_near_the_end_leaves_no_rows_empty() -> None:
    async with shown(FakeSource(builds.running(3).state, log=builds.output_log(500)), "o", "g") as (app, pilot):
        await find(pilot, "Foo499")
        *_, before, last, _status, _footer = text_of(app).splitlines()
        assert "Foo499" in last
        assert "file_498" in before


async def searched(pilot: Pilot[Any]) -> None:
    await settle(pilot)
    for _ in range(400):
        if not any(worker.group == "search" and worker.is_running for worker in pilot.app.workers):
            break
        await pilot.pause(0.02)
    await settle(pilot)


def output(app: Any) -> OutputScreen:
    assert isinstance(app.screen, OutputScreen)
    return app.screen


async def test_following_shows_the_end_as_it_grows() -> None:
    source = FakeSource(builds.running(3).state, log=b"first\n")
    async with shown(source, "o") as (app, pilot):
        assert "first" in text_of(app)
        source.log.data += b"".join(b"line %d\n" % i for i in range(100))
        app.tick()
        await settle(pilot)
        assert "line 99" in text_of(app)
        await pilot.press("up")
        source.log.data += b"newest\n"
        app.tick()
        await settle(pilot)
        assert "newest" not in text_of(app)
        await pilot.press("end")
        await settle(pilot)
        assert "newest" in text_of(app)


async def test_home_end_pages_and_sides() -> None:
    log = b"".join(b"line %d %s END\n" % (i, b"x" * 100) for i in range(200))
    async with shown(FakeSource(builds.running(3).state, log=log), "o", "home") as (app, pilot):
        assert text_of(app).startswith("line 0 ")
        await pilot.press("pagedown")
        await settle(pilot)
        assert text_of(app).startswith("line 22 ")
        await pilot.press("down", "up", "pageup")
        await settle(pilot)
        assert text_of(app).startswith("line 0 ")
        await pilot.press("right", "right")
        await settle(pilot)
        assert "END" in text_of(app).splitlines()[0]
        await pilot.press("left", "left", "end")
        await settle(pilot)
        assert "line 199" in text_of(app)
        await pilot.press("up", "down")
        assert output(app).follow


async def test_search_goes_forth_and_back_and_around() -> None:
    log = b"".join(b"line %d%s\n" % (i, b" Needle" if i % 50 == 7 else b"") for i in range(200))
    async with shown(FakeSource(builds.running(3).state, log=log), "o", "home") as (app, pilot):
        await find(pilot, "needle")
        assert "line 7 Needle" in text_of(app)
        await pilot.press("n")
        await searched(pilot)
        assert "line 57 Needle" in text_of(app)
        await pilot.press("N")
        await searched(pilot)
        assert "line 7 Needle" in text_of(app)
        await pilot.press("N")
        await searched(pilot)
        assert "line 157 Needle" in text_of(app)
        assert "wrapped to the end" in text_of(app)
        assert "n/N next match" in text_of(app)
        await find(pilot, "nowhere")
        assert f"not found in {format_bytes(len(log))} so far" in text_of(app)


async def test_keys_typed_into_the_search_are_words_not_commands() -> None:
    source = FakeSource(builds.running(3).state, log=builds.output_log())
    async with shown(source, "o", "slash", "q", "s", "e") as (app, pilot):
        assert app.is_running
        assert source.commands == []
        assert text_of(app).splitlines()[-1].startswith("/ qse")
        await pilot.press("escape")
        await settle(pilot)
        output(app)
        await pilot.press("escape")
        await settle(pilot)
        assert not isinstance(app.screen, OutputScreen)


async def test_errors_first() -> None:
    source = FakeSource(builds.running(3).state, log=builds.output_log())
    async with shown(source, "o", "e") as (app, pilot):
        await searched(pilot)
        assert "Foo499" in text_of(app)
        await pilot.press("e")
        await searched(pilot)
        assert "Foo999" in text_of(app)
        await pilot.press("E")
        await searched(pilot)
        listed = text_of(app)
        assert all(f"Foo{i}" in listed for i in (499, 999, 1499, 1999, 2499, 2999))
        assert "Building" not in listed
        await pilot.press("E")
        await settle(pilot)
        assert "Building" in text_of(app)


async def test_jobs_that_stoker_dropped_are_no_errors() -> None:
    dropped = b"".join(b"FAILED: [code=137] d%d.o\nc++ d%d.cpp\n" % (n, n) for n in range(5))
    before = b"FAILED: [code=137] of-the-attempt-before.o\n"
    real = b"FAILED: [code=1] real.o \nc++ real.cpp\nreal.cpp:8:22: error: no such name\n"
    killed = b"FAILED: [code=137] killed.o\nKilled\n"
    log = before + real + dropped + killed + b"ninja: build stopped: subcommand failed.\n"
    story = builds.Story().add(0, builds.STARTED)
    story.add(1, ev.StepStarted(1, 1, "build", ("ninja",), 7, attempt=2, log_start=len(before)))
    story.add(2, ev.SchedulerStarted(1, "ninja", 8, "/src", "1.13", 9))
    story.add(3, *(ev.JobFinished(None, 1, f"d{n}.o", "cxx", 0.0, "dropped") for n in range(5)))
    for name in ("real.o", "killed.o"):
        at = log.index(name.encode())
        story.add(4, ev.FailureFound(name, "c++", 1, (), at, at + 20))
    async with shown(FakeSource(story.state, log=log), "o", "E") as (app, pilot):
        await searched(pilot)
        listed = text_of(app)
        assert "6 lines that look like errors" in listed
        assert "d0.o" not in listed
        assert all(name in listed for name in ("attempt-before", "real.o", "real.cpp:8:22", "killed.o", "Killed"))
        await pilot.press("E", "home")
        await settle(pilot)
        for _ in range(4):  # of the attempt before, real.o, its compiler, and now
            await pilot.press("e")
            await searched(pilot)
        top = text_of(app).splitlines()
        assert top[ABOVE].startswith("FAILED: [code=137] killed.o"), top


FOLD = "13 jobs that had not started were discarded after the failure"


async def test_what_ninja_says_of_dropped_jobs_is_one_line_and_the_real_error_stays_in_sight() -> None:
    source = FakeSource(builds.dropped().state, log=builds.dropped_log(60))
    async with shown(source, "o") as (app, pilot):
        seen = text_of(app)
        assert FOLD in seen
        assert "'min' is not a member" in seen
        assert "137" not in seen
        assert "late.cpp.o" in seen
        await pilot.press("up", "down")
        await settle(pilot)
        assert output(app).follow
        assert text_of(app) == seen
        source.log.data += b"[41/69] Building CXX object later.cpp.o\n"
        app.tick()
        await settle(pilot)
        assert "later.cpp.o" in text_of(app)
        assert FOLD in text_of(app)
        await pilot.press("w")
        await settle(pilot)
        assert "the build tool reports each as FAILED" in " ".join(text_of(app).split())


async def test_lines_that_ninja_prints_of_jobs_dropped_later_leave_the_page_that_is_read() -> None:
    source = FakeSource(builds.dropped(count=0).state, log=builds.dropped_log(60))
    async with shown(source, "o", "up", "up") as (app, pilot):
        assert "d12.cpp.o" in text_of(app)
        source.put(builds.dropped().state)
        await settle(pilot)
        app.tick()
        await settle(pilot)
        assert "d12.cpp.o" not in text_of(app)
        assert FOLD in text_of(app)


async def test_a_search_counts_all_that_is_left_out_as_one_place_and_says_where_it_is_printed() -> None:
    """d7.cpp.o is in three lines of its block, and in no other."""
    log = b"d7.cpp.o first\n" + builds.dropped_log(200) + b"d7.cpp.o last\n" * 2
    async with shown(FakeSource(builds.dropped().state, log=log), "o", "home") as (app, pilot):
        await find(pilot, "d7.cpp.o")
        assert "1 of 4" in text_of(app)
        await pilot.press("n")
        await searched(pilot)
        seen = text_of(app)
        assert "2 of 4" in seen
        assert any(line.startswith(f"† {FOLD}") for line in seen.splitlines())
        assert "stoker log --raw" in seen
        await pilot.press("n")
        await searched(pilot)
        assert "3 of 4" in text_of(app)
        assert "stoker log --raw" not in text_of(app)
        await pilot.press("N", "N")
        await searched(pilot)
        assert "1 of 4" in text_of(app)


async def test_the_next_error_is_none_of_a_dropped_job() -> None:
    async with shown(FakeSource(builds.dropped().state, log=builds.dropped_log(60)), "o", "home") as (app, pilot):
        tops = []
        for _ in range(4):
            await pilot.press("e")
            await searched(pilot)
            tops.append(text_of(app).splitlines()[ABOVE])
        assert [top.split(" ")[0] for top in tops] == ["FAILED:", "Foo.cpp:203:9:", "ninja:", "FAILED:"]


def twice(count: int = 41) -> tuple[BuildState, bytes]:
    """A build that is done: of its first attempt a job was killed and so many were dropped, and all ran again."""
    reports = [f"[{n}/99] CXX d{n}.o\nFAILED: d{n}.o \nc++ -c -o d{n}.o d{n}.cpp\n" for n in range(count)]
    killed = "[9/99] CXX killed.cpp.o\nFAILED: killed.cpp.o \nc++ killed.cpp\n"
    first = "".join(["[1/99] CXX a.o\n", killed, *reports, "ninja: build stopped: subcommand failed.\n"]).encode()
    second = "".join(f"[{n}/{count}] CXX d{n}.o again\n" for n in range(count)).encode()
    return builds.repeated(len(first)).state, first + second


async def test_a_build_that_is_done_has_no_error_of_jobs_that_ran_again() -> None:
    state, log = twice()
    async with shown(FakeSource(state, log=log), "o", "home") as (app, pilot):
        seen = text_of(app)
        assert "41 jobs were ended or discarded here, and ran again" in seen
        assert "d0.o again" in seen, "they take one line"
        assert "killed by ann; the build tool calls that a failure: FAILED: killed.cpp.o" in seen
        await pilot.press("e")
        await searched(pilot)
        assert "no error found" in text_of(app)
        await pilot.press("E")
        await searched(pilot)
        assert "0 lines that look like errors" in text_of(app)


async def test_a_jump_into_what_is_left_out_shows_the_line_that_stands_for_it() -> None:
    log = builds.dropped_log(200)
    async with shown(FakeSource(builds.dropped().state, log=log), "o") as (app, pilot):
        output(app).jump(log.index(b"d5.cpp.o"))
        await settle(pilot)
        assert text_of(app).splitlines()[ABOVE].startswith(f"† {FOLD}")


async def test_an_error_of_cmakes_is_listed_with_its_whole_message() -> None:
    message = (
        b"CMake Error at CMakeLists.txt:7 (message):\n"
        b"  The frobnicator needs libfrob 3,\n\n  but error: 2 was found.\n\n\n"
        b"-- Configuring incomplete, errors occurred!\n"
    )
    log = b"-- The C compiler\n" * 300 + message + b"x.cpp:1:2: error: here\n" * 40 + message
    async with shown(FakeSource(builds.running(3).state, log=log), "o", "E", "home") as (app, pilot):
        await searched(pilot)
        listed = text_of(app)
        assert "libfrob 3,\n" in listed
        assert listed.count("but error: 2 was found.") == 1
        assert "-- " not in listed
        await pilot.press("end")
        await pilot.press("E", "E")
        await pilot.press("pagedown", "pagedown", "pagedown", "pagedown")
        await searched(pilot)
        assert text_of(app).splitlines()[-3].rstrip().endswith("but error: 2 was found.")


async def test_a_ten_megabyte_line_is_just_a_long_line() -> None:
    log = b"before\n" + b"y" * 10_000_000 + b"\nafter\n"
    async with shown(FakeSource(builds.running(3).state, log=log), "o") as (app, pilot):
        text = text_of(app)
        assert "before" in text
        assert "after" in text
        await find(pilot, "after")
        assert "after" in text_of(app)
        await pilot.press("home", "right", "down", "end")
        await settle(pilot)
        assert app.is_running


async def test_no_output_at_all() -> None:
    async with shown(FakeSource(builds.running(3).state), "o", "home", "down", "up", "e", "E", "end", "slash") as (
        app,
        _pilot,
    ):
        assert "/ (search): nothing is written yet" in text_of(app)


async def test_at_the_end_of_the_output_it_says_that_the_build_has_ended() -> None:
    source = FakeSource(builds.failed().state, "ended", log=builds.output_log(50))
    async with shown(source, "o") as (app, pilot):
        await settle(pilot)
        assert "the build has ended: failed" in text_of(app)


async def test_a_search_says_which_of_how_many_places_is_shown_and_marks_it() -> None:
    log = b"".join(b"needle %d and Needle\n" % i if i % 10 == 0 else b"hay\n" for i in range(100))
    async with shown(FakeSource(builds.running(3).state, log=log), "o", "home") as (app, pilot):
        await find(pilot, "needle")
        await settle(pilot)
        assert "1 of 20" in text_of(app)
        await pilot.press("n", "n")
        await searched(pilot)
        await settle(pilot)
        assert "3 of 20" in text_of(app)
        line = next(line for line in app.screen.query_one(Page).lines if "needle 10 " in plain(line))
        marked = [part.ink for part in line if part.text.lower() == "needle"]
        assert marked == ["cursor_text on cursor", "text on selection"]


async def test_long_lines_are_wrapped_by_a_key_and_nothing_of_them_is_lost() -> None:
    log = b"".join(b"%d %s end%d\n" % (i, b"x" * 200, i) for i in range(50))
    async with shown(FakeSource(builds.running(3).state, log=log), "o", "home") as (app, pilot):
        assert "end0" not in text_of(app)
        await pilot.press("w")
        assert "end0" in text_of(app)
        assert "end5" in text_of(app)
        await pilot.press("pagedown")
        assert "end7" in text_of(app)
        await pilot.press("end")
        assert "end49" in text_of(app)


@pytest.mark.parametrize("key", ["E", "escape"])
async def test_after_a_look_at_the_errors_the_output_is_followed_again(key: str) -> None:
    source = FakeSource(builds.running(3).state, log=builds.output_log(300))
    async with shown(source, "o", "E", key) as (app, pilot):
        source.log.data += b"the newest line\n"
        app.redraw()
        await settle(pilot)
        assert "the newest line" in text_of(app)
        assert "follows the build" in text_of(app)
