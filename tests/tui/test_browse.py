"""The screens over recorded builds: their list with trends, one in brief, two sides compared."""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from textual.pilot import Pilot

from report.test_recorded import build_of
from stoker.model import events as ev
from stoker.report.arch_costs import ArchCosts
from stoker.report.comparison import Comparison, compare
from stoker.report.recorded import RecordedBuild
from stoker.report.summary import Brief, brief
from stoker.report.trends import TrendLine, with_shares
from stoker.show.build_library import Far, HistoryList, LibraryError
from stoker.show.tui.browse import BrowseApp
from stoker.show.tui.screens.browse_screens import CompareScreen, HistoryScreen, SummaryScreen
from stoker.show.tui.screens.page_screen import PageScreen

from .apps import THEMES, settle
from .pictures import check_golden, text_of

GIB = 2**30
HOUR = 3600.0
START = 1_790_000_000.0
HOSTILE = "\x1b[31m[bold]red\n.o"


def line(number: int, seconds: float, outcome: str = "done", jobs: int | None = 6579, **more: Any) -> TrendLine:
    return TrendLine(
        f"pytorch-{number:04}",
        "pytorch",
        ("ninja", "-C", "build"),
        START + 24 * HOUR * number,
        outcome,
        seconds,
        jobs,
        None if jobs is None else 40 * GIB + number * GIB,
        0.5,
        cwd="/src/pytorch",
        **more,
    )


LINES = [
    line(1, 7200),
    line(2, 7300),
    line(3, 600, "failed", 200),
    line(4, 7100),
    line(5, 9000),
    line(6, 60, "running", 20),
    line(7, 0, "unreadable", None, fault="journal.jsonl is not a readable journal"),
]


def recorded_build(number: int, cpu: float, outcome: ev.Outcome = "done") -> RecordedBuild:
    """Three jobs, one of which takes so many CPU seconds; one has a name that would harm a terminal."""
    jobs = [("kernels/flash_bwd_hdim256.cu.o", "nvcc", cpu), ("a/Sum.cpp.o", "cxx", 10.0), (HOSTILE, "cxx", 5.0)]
    events: list[ev.Event] = []
    for jid, (output, tool, seconds) in enumerate(jobs, 1):
        events.append(ev.JobStarted(jid, 1, jid, output, tool, 1004.0))  # type: ignore[arg-type]
        end = ev.JobFinished(jid, 1, output, tool, 60.0, "ok", peak_rss=jid * GIB, cpu_seconds=seconds + number / 100)  # type: ignore[arg-type]
        events.append(end)
    code = 0 if outcome == "done" else 1
    build = build_of([*events, ev.BuildEnded(outcome, code, "" if code == 0 else "exit status 1")])
    return replace(build, state=replace(build.state, id=f"pytorch-{number:04}"))


class FakeLibrary:
    """Gives values at once, or when it is let go; notes what it was asked for."""

    def __init__(
        self, lines: Sequence[TrendLine] = LINES, *, unread: int = 0, elsewhere: Sequence[TrendLine] = ()
    ) -> None:
        self.lines, self.unread, self.elsewhere = lines, unread, elsewhere
        self.asked: list[object] = []
        self.go = threading.Event()
        self.go.set()

    def history(self, *, everywhere: bool) -> HistoryList:
        self.asked.append(everywhere)
        unread, self.unread = self.unread, 0
        lines = [*self.elsewhere, *self.lines] if everywhere else self.lines
        return HistoryList(tuple(with_shares(lines)), "" if everywhere else "/src/pytorch", unread)

    def brief(self, build: str, far: Far) -> Brief:
        far(0.25)
        self.go.wait(10)
        far(1.0)
        if build == "pytorch-0007":
            raise LibraryError("journal.jsonl is not a readable journal")
        return brief(recorded_build(1, 40, "failed"), ArchCosts())

    def comparison(self, before: Sequence[str], after: Sequence[str], far: Far) -> Comparison:
        self.asked.append((list(before), list(after)))
        far(0.5)
        first, second = [1 + n for n in range(len(before))], [11 + n for n in range(len(after))]
        sides = [recorded_build(n, 40) for n in first], [recorded_build(n, 60) for n in second]
        return compare(*sides, 0.05)


@asynccontextmanager
async def browsing(
    library: FakeLibrary, *keys: str, size: tuple[int, int] = (80, 24), **options: Any
) -> AsyncIterator[tuple[BrowseApp, Pilot[str]]]:
    app = BrowseApp(library, THEMES["dark"], ascii_only=False, no_colour=False, **options)
    async with app.run_test(size=size, notifications=True) as pilot:
        await read(app, pilot)
        for key in keys:
            await pilot.press(key)
            await read(app, pilot)
        yield app, pilot


async def read(app: BrowseApp, pilot: Pilot[str]) -> None:
    """Until what was asked for has been read and drawn."""
    await settle(pilot)
    while any(worker.is_running for worker in app.workers):
        await pilot.pause(0.01)
    await settle(pilot)


async def test_all_builds_where_there_are_no_others_says_so() -> None:
    async with browsing(FakeLibrary(), "a") as (app, _pilot):
        assert any("no other folder has builds" in note.message for note in app._notifications)


def showing(app: BrowseApp, kind: type[PageScreen]) -> bool:
    return isinstance(app.screen, kind)


def listing(app: BrowseApp) -> HistoryScreen:
    assert isinstance(app.screen, HistoryScreen)
    return app.screen


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "localtime", time.gmtime)


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize(
    ("name", "keys", "sides"),
    [
        ("history", ("down", "down", "space", "down", "space"), None),
        ("history-none", ("slash", *"zzz", "enter"), None),
        ("brief", ("down", "enter"), None),
        ("compare", ("down",), (["a", "b"], ["c", "d"])),
        ("compare-one-run", (), (["a"], ["b"])),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_golden(name: str, keys: tuple[str, ...], sides: Any, size: tuple[int, int]) -> None:
    async with browsing(FakeLibrary(), *keys, size=size, sides=sides) as (app, _pilot):
        check_golden(f"{name}-{size[0]}x{size[1]}", text_of(app))


async def test_a_folder_without_builds_says_how_to_start_one() -> None:
    async with browsing(FakeLibrary(())) as (app, pilot):
        assert "No build of this folder yet" in text_of(app)
        assert text_of(app).splitlines()[-1] == "a all folders  q leave  ? help"
        await pilot.press("enter", "space", "c", "o", "greater_than_sign", "down", "end")
        await read(app, pilot)
        assert showing(app, HistoryScreen)


async def test_the_builds_of_all_folders_are_a_key_away() -> None:
    library = FakeLibrary(LINES[1:], elsewhere=LINES[:1])
    async with browsing(library, "a") as (app, _pilot):
        assert "of all folders" in text_of(app)
        assert "a this folder" in text_of(app)
        assert library.asked[-1] is True


async def test_what_has_not_been_read_yet_is_said_and_comes() -> None:
    library = FakeLibrary(unread=3)
    async with browsing(library) as (app, _pilot):
        assert len(library.asked) == 2
        assert "reading" not in text_of(app)


async def test_lists_sort_and_the_chosen_build_stays_chosen() -> None:
    async with browsing(FakeLibrary(), "down", "down", "greater_than_sign") as (app, _pilot):
        assert listing(app).chosen_build == "pytorch-0005"
        assert listing(app).chosen == 0, "it took longest"
        assert "took▾" in text_of(app)


async def test_marked_builds_are_compared() -> None:
    library = FakeLibrary()
    keys = ("end", "space", "up", "space", "up", "up", "space", "c")
    async with browsing(library, *keys) as (app, pilot):
        assert library.asked[-1] == (["pytorch-0001"], ["pytorch-0002", "pytorch-0004"])
        assert showing(app, CompareScreen)
        await pilot.press("escape")
        await read(app, pilot)
        assert listing(app).marks, "they stay marked"
        await pilot.press("escape")
        await settle(pilot)
        assert not listing(app).marks


async def test_a_mark_goes_to_the_other_side_and_away() -> None:
    async with browsing(FakeLibrary(), "end") as (app, pilot):
        for marks in ({"pytorch-0001": "A"}, {"pytorch-0001": "B"}, {}):
            await pilot.press("space")
            await settle(pilot)
            assert listing(app).marks == marks


async def test_what_has_not_ended_is_refused_when_it_is_marked() -> None:
    async with browsing(FakeLibrary(), "down", "space") as (app, pilot):
        assert not listing(app).marks
        assert "0006 is running: only builds that have ended can be compared" in text_of(app)
        await pilot.press("up", "space")
        await settle(pilot)
        assert "0007 cannot be read: only builds" in text_of(app)
        await pilot.press("end", "space", "home", "down", "c")
        await read(app, pilot)
        assert showing(app, HistoryScreen), "nor is it compared as the second one"


async def test_in_all_folders_each_build_has_its_name() -> None:
    async with browsing(FakeLibrary(), "a") as (app, _pilot):
        assert "pytorch: ninja" in text_of(app).splitlines()[4]


async def test_trends_have_a_column_where_there_are_any() -> None:
    async with browsing(FakeLibrary()) as (app, _pilot):
        assert "trend" in text_of(app).splitlines()[1]
    async with browsing(FakeLibrary(LINES[:1])) as (app, _pilot):
        assert "trend" not in text_of(app).splitlines()[1]


async def test_without_two_builds_it_says_how_to_mark_them() -> None:
    async with browsing(FakeLibrary(), "c") as (app, _pilot):
        assert any("mark two builds" in note.message for note in app._notifications)


async def test_what_cannot_be_read_is_said_on_the_list() -> None:
    async with browsing(FakeLibrary(), "enter") as (app, pilot):
        assert showing(app, HistoryScreen)
        assert "fault    journal.jsonl is not a readable journal" in text_of(app)
        assert any("is not a readable journal" in note.message for note in app._notifications)
        await pilot.press("down", "enter")
        await read(app, pilot)
        assert showing(app, SummaryScreen)
        assert "exit status 1" in text_of(app)


async def test_keys_are_answered_while_a_journal_is_read_and_esc_leaves_it() -> None:
    library = FakeLibrary()
    async with browsing(library, "end") as (app, pilot):
        library.go.clear()
        await pilot.press("enter")
        while app.far != 0.25:
            await pilot.pause(0.01)
        await pilot.pause(0.6)
        assert "reading the journal, 25 %" in text_of(app)
        await pilot.press("escape")
        await settle(pilot)
        library.go.set()
        await read(app, pilot)
        assert showing(app, HistoryScreen)
        assert not app._notifications


async def test_a_comparison_that_cannot_be_made_ends_with_the_reason() -> None:
    class Refusing(FakeLibrary):
        def comparison(self, before: Sequence[str], after: Sequence[str], far: Far) -> Comparison:
            raise LibraryError("b ended with status 1")

    app = BrowseApp(Refusing(), THEMES["dark"], ascii_only=False, no_colour=False, sides=(["a"], ["b"]))
    async with app.run_test() as pilot:
        while not app.refusal:
            await pilot.pause(0.01)
    assert app.refusal == "b ended with status 1"


async def test_jobs_are_sorted_and_looked_for() -> None:
    sides = (["a", "b"], ["c", "d"])
    async with browsing(FakeLibrary(), *["greater_than_sign"] * 3, sides=sides, size=(120, 40)) as (app, pilot):
        assert "by name▾" in text_of(app)
        await pilot.press("slash", *"worse", "enter")
        await settle(pilot)
        assert "/worse: 1 of 3" in text_of(app)
        assert "flash_bwd" in text_of(app)
        assert "Sum.cpp" not in text_of(app)


async def test_the_build_that_is_opened_is_returned() -> None:
    app = BrowseApp(FakeLibrary(), THEMES["dark"], ascii_only=False, no_colour=False, chosen="pytorch-0004")
    async with app.run_test() as pilot:
        await read(app, pilot)
        await pilot.press("o")
        await pilot.pause()
    assert app.return_value == "pytorch-0004"


async def test_help_names_only_what_can_be_done_here() -> None:
    async with browsing(FakeLibrary(), "question_mark", size=(120, 60)) as (app, _pilot):
        text = text_of(app)
        assert "Compare the builds marked A" in text
        assert "Raise the level: how many jobs may run at once" not in text


async def test_all_is_drawn_in_ascii_and_in_small_terminals() -> None:
    for size in ((80, 24), (60, 20), (40, 12), (20, 5)):
        for keys, sides in (((), None), (("down", "enter"), None), ((), (["a", "b"], ["c", "d"]))):
            app = BrowseApp(FakeLibrary(), THEMES["dark"], ascii_only=True, no_colour=True, sides=sides)
            async with app.run_test(size=size) as pilot:
                await read(app, pilot)
                await pilot.press(*keys)
                await read(app, pilot)
                assert text_of(app).isascii(), size
