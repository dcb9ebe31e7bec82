"""The page of decisions: one entry for a job's freezes, kinds, and the keys that choose one."""

from __future__ import annotations

import pytest

from stoker.model import events as ev
from stoker.model.state import BuildState, DecisionEntry, Notice
from stoker.show.tui.app import StokerApp
from stoker.show.tui.pages import decision_lines
from stoker.show.tui.pages.decision_kinds import counts, kind_of, with_stops_gathered
from stoker.show.tui.pages.lines import text_of as text_of_line
from stoker.show.tui.pages.moment import time_of_day
from stoker.show.tui.screens.dashboard_screen import TimelineScreen
from stoker.show.tui.screens.decisions_screen import DecisionsScreen
from stoker.show.tui.terminal.glyphs import UNICODE

from . import builds
from .apps import settle, shown
from .builds import START, FakeSource
from .pictures import text_of
from .test_views import at


def by(who: str, at: float, what: str, why: str = "memory is short") -> DecisionEntry:
    return DecisionEntry(START + at, who, what, why)


def gathered(*entries: DecisionEntry, frozen: tuple[str, ...] = (), now: float = 0.0) -> list[tuple[str, str]]:
    found = with_stops_gathered(entries, frozen, START + now)
    assert all(isinstance(entry, DecisionEntry) for entry in found)
    return [(entry.what, entry.why) for entry in found if isinstance(entry, DecisionEntry)]


def test_all_freezes_of_a_job_are_one_entry_with_their_time_and_the_last_reason() -> None:
    since = time_of_day(START)
    assert gathered(
        by("governor", 0, "freeze a.o", "5 MiB too little"),
        by("governor", 3, "hold b.o", "no room"),
        by("governor", 10, "thaw a.o", "nothing else runs"),
        by("governor", 20, "freeze a.o", "2 MiB too little"),
        by("governor", 52, "thaw a.o", "memory is free"),
    ) == [
        ("hold b.o", "no room"),
        ("freeze a.o 2 times", f"2 MiB too little; 0:42 in all since {since}, thawed again"),
    ]


def test_a_freeze_that_has_ended_says_how_long_it_was_and_one_that_has_not_stays_as_it_is() -> None:
    once = by("governor", 0, "freeze a.o"), by("governor", 7, "thaw a.o")
    assert gathered(*once) == [("freeze a.o", "for 0:07; memory is short")]
    moment = by("governor", 0, "freeze a.o"), by("governor", 0.4, "thaw a.o")
    assert gathered(*moment) == [("freeze a.o", "for less than 1 s; memory is short")]
    assert gathered(once[0], frozen=("a.o",), now=9) == [("freeze a.o", "memory is short")]


def test_a_freeze_that_goes_on_counts_up_to_now() -> None:
    entries = (by("governor", 0, "freeze a.o"), by("governor", 5, "thaw a.o"), by("governor", 10, "freeze a.o"))
    ((_, why),) = gathered(*entries, frozen=("a.o",), now=40)
    assert why == f"memory is short; 0:35 in all since {time_of_day(START)}, frozen now"
    ((_, why),) = gathered(*entries, now=40)  # it was killed: nobody knows when
    assert why == f"memory is short; 0:05 in all since {time_of_day(START)}"


def test_a_freeze_for_a_job_alone_is_not_gathered_with_those_for_memory() -> None:
    assert gathered(
        by("governor", 0, "freeze a.o", "b.o runs alone"),
        by("governor", 2, "thaw a.o", "nothing runs alone any more"),
        by("governor", 10, "freeze a.o"),
        by("governor", 20, "thaw a.o"),
    ) == [("freeze a.o", "for 0:02; b.o runs alone"), ("freeze a.o", "for 0:10; memory is short")]


def test_the_wait_of_a_job_on_deck_is_one_entry_whoever_starts_it() -> None:
    holds = [by("governor", n, f"hold {n}.o", "needs up to 2.0 GiB") for n in (0, 1, 2)]
    starts = by("governor", 9, "admit 0.o", "needs up to 2.0 GiB"), by("ann", 9, "start 1.o", "by request")
    assert gathered(*holds, *starts) == [
        ("hold 0.o", "for 0:09; needs up to 2.0 GiB"),
        ("hold 1.o", "for 0:08; needs up to 2.0 GiB"),
        ("hold 2.o", "needs up to 2.0 GiB"),
        ("start 1.o", "by request"),
    ]


def held() -> builds.Story:
    """Three jobs come on deck; two of them have their turn a minute later, and one of those starts at once."""
    story, at = builds.started(), builds.NOW
    story.add(at, ev.SchedulerStarted(1, "ninja", 100, "/src/build", "1.13.2", 48))
    for jid in (1, 2, 3):
        story.add(at + jid, ev.JobStarted(jid, 1, 4000 + jid, f"obj/{jid}.o", "cxx", START + at + jid, "on_deck"))
    story.add(at + 60, ev.Decided("governor", "hold obj/1.o", "needs up to 2.0 GiB"))
    story.add(at + 60, ev.Decided("governor", "admit obj/1.o", "needs up to 2.0 GiB"), ev.JobMoved(1, "running"))
    return story.add(at + 61, ev.Decided("governor", "hold obj/2.o", "needs up to 3.0 GiB"))


def test_a_wait_on_deck_begins_when_the_job_came_there_not_when_its_turn_came() -> None:
    first, second = (e for e in with_stops_gathered(held().state.decisions, (), START) if isinstance(e, DecisionEntry))
    assert (first.time, first.what, first.why) == (
        START + builds.NOW + 1,
        "hold obj/1.o",
        "for 0:59; last: needs up to 2.0 GiB",
    )
    assert (second.time, second.what) == (START + builds.NOW + 2, "hold obj/2.o")


def test_holds_in_one_entry_say_how_many_wait_now_and_keep_their_time() -> None:
    (entry,) = decision_lines.page_entries(held().state, None, START + builds.NOW + 70)
    assert isinstance(entry, DecisionEntry)
    assert (entry.time, entry.what) == (START + builds.NOW + 1, "hold 2 jobs")
    assert entry.why == "1 waits now; each needs up to 2.0-3.0 GiB"


def test_a_wait_that_began_before_the_user_left_stands_before_that() -> None:
    state, left_at = held().state, START + builds.NOW + 30
    (entry,) = decision_lines.page_entries(state, left_at, START + builds.NOW + 70)
    lines = [text_of_line(line) for line in decision_lines.page_lines([entry], left_at, 80, UNICODE)]
    assert "hold 2 jobs" in lines[0]
    assert "you left here" in lines[-1]


def test_an_unknown_wait_has_no_duration() -> None:
    moment = by("governor", 5, "hold a.o", "no room"), by("governor", 5, "admit a.o", "nothing else runs")
    assert gathered(*moment) == [("hold a.o", "no room"), ("admit a.o", "nothing else runs")]


def test_starts_one_after_another_say_so_and_others_say_until_when() -> None:
    story = builds.started()
    for n in range(3):
        story.add(builds.NOW + 10 * n, ev.Decided("governor", f"admit {n}.o", f"nothing else runs; needs ~{n + 1} GiB"))
    (entry,) = decision_lines.entries(story.state)
    assert isinstance(entry, DecisionEntry)
    assert (entry.what, entry.why) == ("start 3 jobs one after another", "each needs ~1-3 GiB")
    assert decision_lines.page_entries(story.state, None, START) == [entry]
    story.add(builds.NOW + 30, ev.Decided("governor", "admit 3.o", "fits for now: needs up to 2 GiB"))
    (entry,) = decision_lines.entries(story.state)
    assert isinstance(entry, DecisionEntry)
    assert entry.what == f"start 4 jobs until {time_of_day(START + builds.NOW + 30)}"


def test_what_one_command_brought_about_follows_it() -> None:
    assert gathered(
        by("governor", 0, "freeze a.o"),
        by("ann", 9, "thaw a.o", "by request"),
        by("governor", 9, "freeze a.o", "3 MiB too little"),
        by("governor", 11, "thaw a.o"),
    ) == [
        ("thaw a.o", "by request"),
        ("freeze a.o 2 times", f"3 MiB too little; 0:11 in all since {time_of_day(START)}, thawed again"),
    ]


def test_a_wait_that_is_shown_at_its_begin_does_not_pass_off_later_figures_as_those_of_then() -> None:
    holds = by("governor", 0, "hold a.o", "169 MiB unpromised"), by("governor", 80, "hold a.o", "90 MiB unpromised")
    assert gathered(*holds) == [("hold a.o", "last: 90 MiB unpromised")]


def test_what_a_person_froze_or_thawed_keeps_its_own_entry() -> None:
    assert gathered(
        by("ann", 0, "freeze a.o", "by request"),
        by("ann", 5, "thaw a.o", "by request"),
        by("governor", 10, "freeze a.o"),
        by("ann", 12, "thaw a.o", "by request"),
    ) == [
        ("freeze a.o", "by request"),
        ("thaw a.o", "by request"),
        ("freeze a.o", "for 0:02; memory is short"),
        ("thaw a.o", "by request"),
    ]


def test_each_entry_has_one_kind_so_that_the_numbers_add_up() -> None:
    assert kind_of(by("governor", 0, "freeze a.o")) == "frozen"
    assert kind_of(by("governor", 0, "freeze a.o", "b.o runs alone")) == "frozen"
    assert kind_of(by("governor", 0, "run a.o alone", "it was killed beside others")) == "alone"
    assert kind_of(by("ann", 0, "run a.o alone")) == "people"
    assert kind_of(by("ann", 0, "level 3 → 4")) == "people"
    assert kind_of(by("engine", 0, "took over the running build")) == "other"
    assert kind_of(Notice(START, "info", "freeze")) == "notices"
    assert counts([by("ann", 0, "pause"), by("governor", 1, "drop 3 jobs on deck")]) == {"stops": 1, "people": 1}


def busy() -> BuildState:
    story = builds.governed(5, 30)
    at = builds.NOW
    for n in range(30):
        story.add(at + 2 * n, ev.Decided("governor", "freeze obj/kernel_04.o", f"{n} MiB too little"))
        story.add(at + 2 * n + 1, ev.Decided("governor", "thaw obj/kernel_04.o", "nothing else runs"))
    return story.add(at + 90, ev.Decided("ann", "run obj/kernel_01.o alone", "by request")).state


async def test_the_page_shows_one_kind_by_key_or_click_and_all_after_esc() -> None:
    async with shown(FakeSource(busy()), "d") as (app, pilot):
        page = text_of(app)
        assert "freeze obj/kernel_04.o 30 times" in page
        assert "29 MiB too little; " in page, "the reason of the last one comes first"
        assert "▸all 5 " in page
        assert "thaw obj" not in page
        await pilot.press("greater_than_sign")
        await settle(pilot)
        page = text_of(app)
        assert "▸frozen 2" in page
        assert "kernel_01" not in page
        await pilot.press("greater_than_sign", "greater_than_sign")
        await settle(pilot)
        assert "run obj/kernel_01.o alone" in text_of(app)
        assert "kernel_04" not in text_of(app)
        await pilot.press("escape")
        await settle(pilot)
        assert "▸all 5 " in text_of(app)
        x = text_of(app).splitlines()[2].index("people")
        await pilot.click(offset=(x, 2))
        await settle(pilot)
        assert "▸people 2" in text_of(app)
        assert "kernel_04" not in text_of(app)


async def test_home_goes_to_the_oldest_entry_and_end_to_the_newest() -> None:
    story = builds.running(5)
    for n in range(60):
        story.add(3800 + n, ev.Decided("ann", f"level {n + 1} → {n + 2}", "by request"))
    async with shown(FakeSource(story.state), "d", "home") as (app, pilot):
        assert "level 1 → 2" in text_of(app)
        await pilot.press("end")
        await settle(pilot)
        assert "level 60 → 61" in text_of(app)


@pytest.mark.parametrize("rows", range(1, 12))
def test_the_panel_of_a_wide_screen_begins_with_the_head_of_an_entry(rows: int) -> None:
    lines = [text_of_line(line) for line in decision_lines.decisions(at(busy()), 64, rows, UNICODE, whole=True)]
    assert len(lines) == rows
    assert lines[0][:2].isdigit(), lines[0]
    assert "thaw obj" not in "".join(lines)


def marked(app: StokerApp) -> list[str]:
    """What the entries that are marked decided."""
    assert isinstance(app.screen, DecisionsScreen)
    lines = app.screen.paint(*app.screen.size)
    return [line[2].text for line in lines if line and all("cursor" in str(part.ink) for part in line)]


async def test_enter_on_a_moment_of_the_timeline_shows_what_was_decided_then() -> None:
    story = builds.running(3)
    start = story.state.timeline.points[0].time - START
    for n in range(60):
        story.add(start + 50 * n, ev.Decided("ann", f"level {n}", "asked for"))
    async with shown(FakeSource(story.state), "t", "home", "enter") as (app, pilot):
        assert "level 0  asked for" in text_of(app)
        assert "level 59  asked for" not in text_of(app)
        assert marked(app) == ["level 0"]
        await pilot.press("up")
        await settle(pilot)
        assert marked(app) == ["level 0"], "it is scrolled, not lost"
        await pilot.press("t", "end", "enter")
        await settle(pilot)
        assert "level 59  asked for" in text_of(app)
        assert "level 0  asked for" not in text_of(app)
        assert len(marked(app)) == 1
        await pilot.press("escape", "d")
        await settle(pilot)
        assert marked(app) == [], "nobody asked for a moment"
        await pilot.press("t", "escape", "enter")
        await settle(pilot)
        assert isinstance(app.screen, TimelineScreen), "a cursor comes first"


async def test_the_same_starts_have_one_count_on_the_timeline_and_on_the_page() -> None:
    story = builds.running(3)
    end = story.state.time - START
    alone = "nothing else runs; needs ~1.0 GiB"
    for seconds, what, why in (
        (1, "hold d.o", "no room"),
        (6, "admit c.o", alone),
        (7, "hold d.o", "still no room"),
        (8, "admit d.o", alone),
    ):
        story.add(end + seconds, ev.Decided("governor", what, why))
    async with shown(FakeSource(story.state), "t", "N") as (app, pilot):
        assert "start 2 jobs" in text_of(app)
        await pilot.press("enter")
        await settle(pilot)
        assert "start 2 jobs" in text_of(app)


def hand_then_freezes(seconds: float) -> BuildState:
    """A person has unpaused a build, and stoker has frozen a few jobs since; the last one `seconds` later."""
    story = builds.running(5)
    story.add(3722, ev.Decided("ann", "unpause", "asked for: lets 3 frozen go on, 12 on deck may start"))
    for n in range(4):
        why = f"7{n} MiB left, below the floor of 1.3 GiB; this one holds 2.6 GiB and grows on"
        story.add(3722 + seconds, ev.Decided("governor", f"freeze src/kernel_{n}.cpp.o", why))
    return story.add(3722 + seconds, builds.sampled(5)).state


@pytest.mark.parametrize("rows", [2, 3, 4])
@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_freezes_that_follow_a_persons_decision_do_not_hide_it(width: int, rows: int) -> None:
    def shown(seconds: float) -> list[str]:
        moment = at(hand_then_freezes(seconds), 3722 + seconds)
        return [text_of_line(line) for line in decision_lines.decisions(moment, width, rows, UNICODE)]

    lines = shown(3)
    assert len(lines) == rows
    assert "unpause" in lines[0]
    assert "kernel_3" in "".join(lines)
    assert "unpause" not in "".join(shown(90))


def test_on_a_single_line_a_persons_decision_gives_way_sooner() -> None:
    def shown(seconds: float) -> str:
        (line,) = decision_lines.decisions(at(hand_then_freezes(seconds), 3722 + seconds), 60, 1, UNICODE)
        return text_of_line(line)

    assert "unpause  lets 3 frozen go on" in shown(3)
    assert "kernel_3" in shown(30)


@pytest.mark.parametrize("width", [60, 80])
def test_a_short_line_about_a_persons_decision_says_what_it_does(width: int) -> None:
    first, *_ = decision_lines.decisions(at(hand_then_freezes(3)), width, 2, UNICODE)
    assert "lets 3 frozen go on" in text_of_line(first)
