"""What a person sees of a build that is governed: the level, the deck, what is promised, and what was asked for."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from stoker.model import events as ev
from stoker.model.events import Paused
from stoker.model.samples import JobSample
from stoker.model.state import BuildState, MemoryUse
from stoker.model.status import status_of
from stoker.model.text import clean
from stoker.model.update import Update
from stoker.show.left_text import frozen_text, left_text, stalled_text
from stoker.show.level_text import level_text
from stoker.show.plain import PlainRenderer
from stoker.show.tui.input.pending import Act, Pending
from stoker.show.tui.pages import dashboard_page, decision_lines, end_page, header, meters, timeline_page
from stoker.show.tui.pages.job_list import JobView, ordered
from stoker.show.tui.pages.job_table import of_expected, table
from stoker.show.tui.pages.lines import text_of, width_of
from stoker.show.tui.terminal.glyphs import UNICODE

from . import builds
from .builds import GIB, MACHINE, NOW
from .test_views import at, text, texts


def meter(state: BuildState, label: str, width: int = 80, pending: Pending | None = None) -> str:
    """The meter with that label."""
    m = replace(at(state), pending=pending or Pending())
    lines = [text_of(line).rstrip() for line in meters.meters(m, width, UNICODE, 6)]
    return next(line for line in lines if line.startswith(label))


def governed(*level: object) -> BuildState:
    return builds.governed(level=ev.LevelSet(*level) if level else None).state  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("width", "level", "said"),
    [(1, 99, "make starts only 1"), (8, 9, "make starts only 8"), (8, 8, ""), (None, 99, "")],
)
def test_a_level_above_what_the_build_tool_starts_says_so(width: int | None, level: int, said: str) -> None:
    before = builds.running(1).add(NOW, ev.LevelSet("manual", level)).state
    state = replace(before, schedulers={1: replace(before.schedulers[1], tool="make", width=width)})
    for shown in (meter(state, "jobs"), level_text(state)):
        assert said in shown
        assert ("starts only" in shown) == bool(said)


def test_an_automatic_level_says_nothing_of_what_the_build_tool_starts() -> None:
    before = builds.running(1).add(NOW, ev.LevelSet("auto", 16)).state
    state = replace(before, schedulers={1: replace(before.schedulers[1], tool="make", width=1)})
    assert "starts only" not in meter(state, "jobs") + level_text(state)


@pytest.mark.parametrize(
    ("running", "level", "said"),
    [
        (5, ("auto", 2), "3 above the level run on"),
        (3, ("auto", 2), "1 above the level runs on"),
        (2, ("auto", 2), ""),
        (5, ("auto", 2, "soft"), ""),
        (5, ("manual", 2), ""),
    ],
)
def test_an_automatic_level_below_what_runs_says_that_the_rest_runs_on(
    running: int, level: tuple[str, ...], said: str
) -> None:
    """As after a person's higher number: the automatic level freezes nothing."""
    state = builds.running(running).add(NOW, ev.LevelSet(*level)).state  # type: ignore[arg-type]
    for shown in (meter(state, "jobs"), level_text(state)):
        assert said in shown
        assert ("above the level" in shown) == bool(said)


def test_a_job_that_contains_a_scheduler_is_none_too_many() -> None:
    story = builds.running(3).add(NOW, ev.SchedulerStarted(2, "ninja", 901, "/src/in", "1.13.2", 8, parent=1))
    assert "above the level" not in level_text(story.add(NOW, ev.LevelSet("auto", 2)).state)


@pytest.mark.parametrize(
    ("others", "most"),
    [
        ([ev.SchedulerStarted(2, "ninja", 101, "/src/build", "1.13.2", 8)], "the build tools start only 9"),
        ([ev.SchedulerStarted(2, "ninja", 101, "/src/build", "1.13.2", 8, parent=1)], "the build tools start only 8"),
        ([ev.SchedulerStarted(2, "make", 101, "/src/build", "4.3", 1, parent=1)], "make starts only 1"),
        ([ev.SchedulerStarted(2, "ninja", 101, "/src/build", "1.13.2", None)], ""),
    ],
    ids=["side by side", "one below another", "one jobserver", "no limit"],
)
def test_several_build_tools_start_what_all_of_them_may(others: list[ev.Event], most: str) -> None:
    story = builds.started().add(5, ev.SchedulerStarted(1, "make", 100, "/src/build", "4.3", 1))
    said = level_text(story.add(6, *others, ev.LevelSet("manual", 12)).state)
    assert most in said
    assert ("start" in said) == bool(most)


def test_the_level_line_tells_how_many_run_and_wait_and_who_sets_the_level() -> None:
    assert "3 running" in meter(builds.running(3).state, "jobs")
    assert "only watched" in meter(builds.running(3).state, "jobs")
    assert meter(governed(), "jobs").endswith("11 running of 16  auto  ○ 40 on deck  ‖ 1 frozen")
    assert "11 running of 12  by hand  ○ 40 on deck" in meter(governed("manual", 12), "jobs")
    assert meter(governed(), "jobs", 120).endswith("automatic  ○ 40 on deck  ‖ 1 frozen")


def test_a_level_that_was_asked_for_is_shown_before_it_is_so() -> None:
    assert "11 running of 16→19  by hand" in meter(governed(), "jobs", pending=Pending(level=19))
    assert "11 running of 12  →auto" in meter(governed("manual", 12), "jobs", pending=Pending(level="auto"))
    assert "of 12  by hand" in meter(governed("manual", 12), "jobs", pending=Pending(level=12))


@pytest.mark.parametrize(("width", "rows"), [(80, 6), (160, 6), (80, 2)])
def test_other_programs_hold_no_0_bytes_where_the_budget_is_the_builds_own(width: int, rows: int) -> None:
    state = governed()
    assert state.machine is not None
    machine = replace(state.machine, memory_limit_source="--memory", memory_used=state.memory.build)
    whole = "\n".join(text(line) for line in meters.meters(at(replace(state, machine=machine)), width, UNICODE, rows))
    assert "others" not in whole
    assert "other programs" not in whole
    assert rows == 2 or "to come" in whole


def test_the_load_that_waiting_jobs_make_is_not_passed_off_as_that_of_others() -> None:
    story, few = builds.governed(), replace(MACHINE, cpu_cores=(60, 66), load=71.0)
    busy, calm = replace(few, load_held=28.1), replace(few, load_held=0.1)
    assert meter(story.add(NOW, builds.sampled(12, busy)).state, "cpu", 120).endswith(
        "load 71.0 (28.1 of waiting jobs)"
    )
    assert meter(story.add(NOW, builds.sampled(12, calm)).state, "cpu", 120).endswith("load 71.0")


def test_the_memory_that_is_spoken_for_adds_up_to_the_budget() -> None:
    lines = [text(line) for line in meters.meters(at(governed()), 80, UNICODE, 6)]
    assert "37.9 of 55.0 GiB" in lines[0]
    assert lines[1] == "┅ 4.8 GiB others  ░ 13.2 GiB to come  ▒ 3.3 GiB reserve  ─ 614 MiB free"
    assert abs(37.9 + 13.2 + 3.3 + 614 / 1024 - 55.0) < 0.1
    assert "━━━━━━━━━━━┅┅░░░░░▒│" in lines[0]


@settings(max_examples=30)
@given(
    st.integers(0, 80 * GIB),
    st.integers(0, 80 * GIB),
    st.integers(0, 80 * GIB),
    st.integers(0, 9 * GIB),
    st.integers(10, 60),
)
def test_the_memory_bar_has_its_width_whatever_is_promised(
    used: int, own: int, promised: int, reserve: int, width: int
) -> None:
    machine = replace(MACHINE, memory_used=used)
    state = replace(governed(), machine=machine, memory=MemoryUse(own, own, used, promised, reserve))
    assert width_of(meters.memory_bar(state, machine, width, UNICODE)) == width


@pytest.mark.parametrize("size", [(80, 23), (60, 19), (120, 39)])
def test_unguarded_memory_is_a_warning_at_every_size(size: tuple[int, int]) -> None:
    state = builds.governed(level=ev.LevelSet("manual", 12, guarded=False)).state
    page = [text(line) for line in dashboard_page.dashboard(at(state), *size, UNICODE, JobView(), [])]
    assert sum("memory not guarded!" in line for line in page) == 1


@pytest.mark.parametrize(
    ("paused", "word", "meaning"),
    [("soft", "PAUSED", "paused: nothing new starts"), ("hard", "‖ FROZEN", "frozen: 12 jobs keep")],
)
def test_a_pause_stands_in_the_header_and_says_what_it_means(paused: str, word: str, meaning: str) -> None:
    page = [
        text(line)
        for line in dashboard_page.dashboard(at(governed("auto", 16, paused)), 80, 23, UNICODE, JobView(), [])
    ]
    assert word in page[0]
    assert any(line.startswith(f"! {meaning}") for line in page)


def frozen_by_hand(count: int, on_deck: int = 0) -> BuildState:
    """A build of which all that was started has been frozen by a person."""
    story = builds.governed(12, on_deck)
    jids = sorted(story.state.jobs)[:12]
    story.add(NOW, *(ev.JobFinished(jid, 1, "", "cxx", 9, "ok", GIB) for jid in jids[count:]))
    return story.add(NOW, *(ev.JobMoved(jid, "frozen", None, "person") for jid in jids[:count])).state


def test_a_build_stalled_by_a_frozen_job_says_so_and_promises_no_end() -> None:
    late = replace(at(frozen_by_hand(1)), now=NOW + 99999)
    page = [text(line) for line in dashboard_page.dashboard(late, 80, 23, UNICODE, JobView(), [])]
    assert "no ETA: nothing runs" in page[1]
    (said,) = (line for line in page if "nothing runs: " in line)
    assert said.rstrip().endswith(" is frozen by hand; F thaws the picked job")
    assert left_text(late.state, late.now) == ""
    assert stalled_text(frozen_by_hand(3)).endswith(" and 2 more are frozen by hand")
    assert "eta" in status_of(late.state, late.now)


def test_while_a_job_is_frozen_by_hand_the_time_left_counts_from_its_thaw() -> None:
    story = builds.governed(12, 0)
    jid = min(story.state.jobs)
    state = story.add(NOW, ev.Estimated(300.0, 200.0, 450.0), ev.JobMoved(jid, "frozen", None, "person")).state
    for later in (0.0, 1000.0):
        m = replace(at(state), now=NOW + later)
        page = [text(line) for line in dashboard_page.dashboard(m, 80, 23, UNICODE, JobView(), [])]
        assert page[1].rstrip().endswith("ETA 5 min (3–8 min) after a thaw"), (
            "it does not count down: the build cannot end"
        )
        (said,) = (line for line in page if "the build cannot end: " in line)
        assert said.rstrip().endswith(" is frozen by hand; F thaws the picked job")
        assert status_of(state, m.now)["eta"] == {"seconds": 300.0, "low": 200.0, "high": 450.0}
    assert clean(state.jobs[jid].output) in frozen_text(state)
    thawed = story.add(NOW, ev.JobMoved(jid, "running", None, "person")).state
    assert frozen_text(thawed) == ""
    assert "thaw" not in left_text(thawed, NOW)
    by_stoker = story.add(NOW, ev.JobMoved(jid, "frozen", None)).state
    assert (frozen_text(by_stoker), "thaw" in left_text(by_stoker, NOW)) == ("", False), "stoker thaws it itself"
    assert frozen_text(frozen_by_hand(1)) == "", "nothing runs: that is said instead"


def test_a_frozen_job_beside_a_running_one_or_a_pause_stalls_nothing() -> None:
    state = frozen_by_hand(1)
    running = replace(state, jobs={**state.jobs, 99: replace(next(iter(state.jobs.values())), jid=99, state="running")})
    paused = replace(state, level=replace(state.level, paused="hard"))
    assert [stalled_text(s) for s in (running, paused)] == ["", ""]
    assert stalled_text(frozen_by_hand(1, on_deck=1)), "a job on deck that waits for its memory runs neither"


def test_a_pause_that_was_asked_for_is_shown_before_it_is_so() -> None:
    def shown(state: BuildState, wish: Paused) -> str:
        return text(header.title(replace(at(state), pending=Pending(paused=wish)), 80, UNICODE))

    assert "pausing…" in shown(governed(), "soft")
    assert "freezing…" in shown(governed(), "hard")
    assert "unpausing…" in shown(governed("auto", 16, "hard"), "no")
    assert "PAUSED" in shown(governed("auto", 16, "soft"), "soft")


def test_a_step_that_is_run_again_says_which_attempt_it_is() -> None:
    story = builds.governed()
    assert "attempt" not in text(header.title(at(story.state), 80, UNICODE))
    story.add(3724, ev.StepStarted(1, 1, "build", ("ninja",), 99, attempt=2))
    assert "attempt 2  running" in text(header.title(at(story.state), 80, UNICODE))


def test_a_decision_keeps_its_numbers_and_both_ends_of_the_name() -> None:
    hold, _, freeze = (text(line) for line in decision_lines.decisions(at(governed()), 80, 3, UNICODE))
    assert "cu.o  needs up to 9.1 GiB, 6.2 GiB unpromised" in hold
    assert freeze.strip() == "floor of 1.3 GiB; this one holds 2.6 GiB and grows on"


def test_the_newest_decision_is_whole_where_there_are_two_lines() -> None:
    what, why = (text(line) for line in decision_lines.decisions(at(governed()), 80, 2, UNICODE))
    assert what.endswith("/descriptor.cc.o  1.1 GiB left, below the")
    assert why.strip() == "floor of 1.3 GiB; this one holds 2.6 GiB and grows on"
    (only,) = (text(line) for line in decision_lines.decisions(at(governed()), 80, 1, UNICODE))
    assert "freeze descriptor.cc.o  1.1 GiB left, below the floor of 1.3 GiB" in only


def test_many_alike_are_one_line_and_jobs_that_just_fit_are_no_news() -> None:
    story = builds.governed()
    for n in range(14):
        story.add(
            3660 + n, ev.Decided("governor", f"hold k{n}.o", f"needs up to {n + 245} MiB within 0:12, {n} B unpromised")
        )
        story.add(3660 + n, ev.Decided("governor", f"admit small{n}.o", "needs up to 9.1 MiB of 55.0 GiB"))
    story.add(3680, ev.Decided("governor", "admit k3.o", "in what is left: needs ~245 MiB, may hold 1.0 GiB"))
    hold, early = (text(line) for line in decision_lines.decisions(at(story.state), 80, 2, UNICODE))
    assert hold.endswith("hold 14 jobs  each needs up to 245-258 MiB")
    assert "start k3.o  in what is left" in early
    assert dashboard_page.decision_rows(story.state, 36) == 5  # a person's, a hold, a freeze, and these two


@given(texts, texts, st.integers(0, 120))
def test_a_decision_fits_its_line(what: str, why: str, room: int) -> None:
    first, second = decision_lines.fitted(what, why, room, UNICODE)
    assert cell_len(first) + cell_len(second) <= max(0, room - 2)


def rows_of(state: BuildState, rows: int, width: int = 80, cursor: int | None = None) -> list[str]:
    return [text_of(line).rstrip() for line in table(at(state), width, rows, JobView(cursor), UNICODE)]


def test_a_frozen_job_uses_no_cpu_and_a_thawed_one_has_no_figure_before_it_is_measured() -> None:
    """Frozen rows kept the figure of the second before, and one that had just been thawed stood at 0 %."""
    story = builds.running(3)

    def cpu_after(event: ev.Event) -> str:
        story.add(NOW, event)
        row = next(row for row in rows_of(story.state, 9) if "flash_bwd" in row)
        return row.rpartition(" %")[0].split()[-1] if " %" in row else ""

    def sampled(cpu: float, state: Literal["running", "frozen"] = "running") -> ev.Sampled:
        return replace(builds.sampled(0), jobs=(JobSample(2, GIB, cpu, "ptxas", state),))

    assert cpu_after(sampled(96.0)) == "96"
    assert cpu_after(ev.JobMoved(2, "frozen")) == "0"
    assert cpu_after(sampled(45.0, "frozen")) == "0"
    assert cpu_after(ev.JobMoved(2, "running")) == ""
    assert cpu_after(sampled(30.0)) == "30"


def test_jobs_on_deck_come_after_those_that_were_started() -> None:
    state = builds.governed(4, 3).state
    rows = rows_of(state, 9)
    assert [row[0] for row in rows[1:]] == [" ", " ", " ", "‖", "○", "○", "○"]
    assert rows[0].startswith("running 3, frozen 1 ─")
    assert "frozen" in rows[4]
    assert rows[4].split()[-4:-2] == ["2.6/2.7", "GiB"]
    assert all("too little memory" in row or "kept for libonnx_proto.a" in row for row in rows[5:])


def test_by_time_the_jobs_stand_in_the_order_of_the_times_that_are_shown() -> None:
    story = builds.governed(4, 0)
    began = story.state.jobs[1].running_since or 0.0
    frozen = replace(story.state.jobs[1], state="frozen", frozen_at=began + 1)
    state = replace(story.state, jobs={**story.state.jobs, 1: frozen})
    assert next(job.jid for job in ordered(state, began + 1)) == 1
    assert [job.jid for job in ordered(state, began + 1000)][-1] == 1


def test_the_jobs_that_run_stay_in_view_while_a_picked_one_fits_below_them() -> None:
    assert [row[0] for row in rows_of(builds.governed(4, 40).state, 11, cursor=6)[1:5]] == [" ", " ", " ", "‖"]


def test_a_job_let_go_from_the_deck_joins_the_running_ones_at_their_end() -> None:
    story = builds.governed(4, 3)
    story.add(3730, ev.JobMoved(7, "running"))
    assert [job.jid for job in ordered(story.state, story.state.time)] == [1, 2, 4, 3, 7, 5, 6]


def test_of_the_deck_as_many_are_shown_as_fit_and_the_rest_is_counted() -> None:
    state = builds.governed(4, 40).state
    rows = rows_of(state, 9)
    assert len(rows) == 9
    assert [row[0] for row in rows[5:8]] == ["○"] * 3
    assert rows[-1] == "  +37 more on deck"
    assert rows_of(state, 3)[-1] == "  +3 more started, 40 on deck; next: too little memory"
    assert "more" not in rows_of(builds.governed(4, 0).state, 9)[-1]
    assert len(rows_of(state, 45)) == 45


def test_the_jobs_memory_is_a_part_of_the_builds_in_the_figures_of_the_meter() -> None:
    """ "127 MiB in all" stood below "build 352 MiB": which is all?"""
    story = builds.governed(4, 3)
    whole = re.search(r"build ([\d.]+ GiB)", meter(story.state, "memory", 120))
    assert whole is not None
    assert f" of the build's {whole[1]} " in rows_of(story.state, 9, 120)[0]
    less = replace(story.state, memory=replace(story.state.memory, build=1 << 20))
    assert "build's" not in rows_of(less, 9, 120)[0], "a sum of another moment is none"


def test_the_cursor_reaches_the_last_job_on_deck() -> None:
    rows = rows_of(builds.governed(4, 40).state, 9, cursor=44)
    assert "more" not in rows[-1]
    assert any("on deck" in row for row in rows[-2:])


def test_why_the_picked_job_waits_stands_whole_below_the_table() -> None:
    rows = rows_of(builds.governed(4, 40).state, 9, cursor=6)
    whole = " ".join(" ".join(rows[-2:]).split())
    reason = "memory is kept for lib/libonnx_proto.a, and for what runs; 614 MiB left above the reserve"
    assert f"libonnx_proto.a waits: {reason}" in whole
    assert len(rows) == 9


@pytest.mark.parametrize("width", [80, 120])
def test_the_row_of_a_frozen_job_says_in_whole_words_that_it_is_frozen_and_what_it_waits_for(width: int) -> None:
    story = builds.governed(2, 3)
    for cause, why, said in (
        ("rest", "goes on soon; first the last freeze must show its effect", "frozen: goes on soon"),
        (
            "memory",
            "running jobs go first; it holds 9 MiB and needs up to 4.6 GiB, 2 MiB left",
            "running jobs go first",
        ),
        ("person", "frozen by hand; it goes on when it is thawed by hand", "frozen by hand"),
    ):
        story.add(NOW, ev.JobMoved(2, "frozen"), ev.JobsWaiting((2,), cause, why))  # type: ignore[arg-type]
        (row,) = (row for row in rows_of(story.state, 9, width) if row.startswith("‖ flash"))
        assert said in row
        assert row.count("frozen") == (1 if width == 120 or "frozen" in said else 0)


@pytest.mark.parametrize("width", [80, 160])
def test_where_only_a_spare_place_is_free_a_waiting_row_says_nothing_that_the_memory_above_it_denies(
    width: int,
) -> None:
    """A short row once said "all peaks would not fit" below a meter with a gigabyte free."""
    story = builds.governed(2, 3)
    why = "each core has its job; the extra place is filled only if all peaks fit at once"
    story.add(NOW, ev.JobsWaiting((3, 4, 5), "place", why))
    rows = rows_of(story.state, 9, width)
    assert sum("each core has its job" in row for row in rows) == 3
    assert not any(row.rstrip().endswith("fit") or "would not" in row for row in rows)
    assert why in " ".join(" ".join(rows_of(story.state, 9, width, cursor=4)[-2:]).split())


def test_a_waiting_job_shows_how_long_it_waits_and_what_it_is_expected_to_need() -> None:
    assert rows_of(builds.governed(4, 1).state, 9)[-1].split()[-4:-1] == ["1:18", "~6.3", "GiB"]


@pytest.mark.parametrize(
    ("rss", "expected", "words"),
    [
        (int(3.1 * GIB), int(4.8 * GIB), "3.1/4.8 GiB"),
        (200 << 20, int(4.8 * GIB), "0.2/4.8 GiB"),
        (int(2.5 * GIB), 600 << 20, "2.5/0.6 GiB"),
        (100 << 20, 600 << 20, "100/600 MiB"),
        (0, 600 << 20, "~600 MiB"),
        (600 << 20, None, "600 MiB"),
        (0, None, "╌"),
    ],
)
def test_what_a_job_holds_and_needs_share_a_unit(rss: int, expected: int | None, words: str) -> None:
    job = replace(builds.governed(1, 0).state.jobs[1], rss=rss, expected=expected)
    assert of_expected(job, UNICODE) == words


@pytest.mark.parametrize(("rss", "words"), [(0, "~700 MiB?"), (45 << 20, "45.0/700? MiB"), (800 << 20, "800/800+ MiB")])
def test_a_guess_is_told_as_one(rss: int, words: str) -> None:
    job = replace(builds.governed(1, 0).state.jobs[1], rss=rss, peak_rss=rss, expected=700 << 20, guessed=True)
    assert of_expected(job, UNICODE) == words


@settings(max_examples=40)
@given(st.integers(0, 2**43), st.integers(1, 2**43), st.booleans())
def test_no_size_is_wider_than_its_column(rss: int, expected: int, guessed: bool) -> None:
    job = replace(builds.governed(1, 0).state.jobs[1], rss=rss, expected=expected, guessed=guessed)
    assert len(of_expected(job, UNICODE)) <= 13


def test_what_was_asked_of_a_job_is_shown_before_it_is_so() -> None:
    acts: dict[int, Act] = {1: "freeze", 3: "thaw", 4: "alone", 2: "kill"}
    m = replace(at(builds.governed(4, 0).state), pending=Pending(acts=acts))
    words = [text(line).split()[-6] for line in table(m, 80, 9, JobView(), UNICODE)[1:]]
    assert words == ["freezing", "killing", "alone", "thawing"]


@pytest.mark.parametrize("width", [80, 100, 200])
def test_every_sign_of_the_memory_bar_has_its_word(width: int) -> None:
    m = at(builds.governed().state)
    bar, legend = (text_of(line) for line in meters.meters(m, width, UNICODE, 6)[:2])
    drawn = {sign for sign in bar[: 8 + meters.bar_width(width)].removeprefix("memory") if not sign.isspace()}
    assert drawn <= {UNICODE.full, UNICODE.other, UNICODE.promised, UNICODE.reserve, UNICODE.empty}
    named = bar[8 + meters.bar_width(width) :] + legend
    assert all(f"{sign} " in named for sign in drawn), named
    assert len(legend.rstrip()) <= width


def test_a_memory_chart_is_as_high_as_what_it_shows() -> None:
    story = builds.started()
    for i in range(20):
        small = replace(builds.MACHINE, memory_used=int((1.1 + i / 20) * builds.GIB))
        story.add(10 + i, replace(builds.sampled(0, small), build_rss=builds.GIB // 2))
    lines = [text_of(line) for line in timeline_page.timeline(at(story.state), 80, 24, UNICODE)]
    assert any(line.startswith(" 3.0 GiB │") for line in lines), lines
    assert any("budget 55.0 GiB" in line for line in lines), "what does not fit the chart is still told"


def test_the_end_says_how_many_jobs_memory_has_held_back() -> None:
    story = builds.governed()
    story.add(3660, ev.JobsWaiting((14, 15), "memory", "needs ~9.1 GiB"), ev.JobsWaiting((16,), "place", "16 run"))
    story.add(3661, ev.JobsWaiting((14,), "room", "kept for 15"), ev.JobMoved(5, "frozen", by="word"))
    story.add(3662, *(ev.JobMoved(jid, "running") for jid in (13, 14, 15)))
    story.add(
        3663, ev.JobFinished(17, 1, "never_ran.o", "cxx", 0.0, "dropped"), ev.JobsWaiting((18,), "unknown", "a guess")
    )
    lines = ended_lines(story)
    words = "governed 4 jobs waited for memory, 1 for the first of an unknown kind, 1 freeze"
    assert any(line.startswith(words) for line in lines), "as the report says"


def test_the_end_says_which_jobs_waited_longest_for_memory() -> None:
    story = builds.governed(2, 6)
    for wait, jid in enumerate((4, 5, 6, 7, 8), 1):
        story.add(3660, ev.JobStarted(jid, 1, 4000 + jid, f"obj/k_{jid}.o", "cxx", 3660.0, "on_deck"))
        story.add(3700, ev.JobsWaiting((jid,), "memory", "needs ~9.1 GiB"), ev.JobsWaiting((jid,), "place", "2 run"))
        story.add(3700 + 60 * wait, ev.JobMoved(jid, "running"))
    text = " ".join(" ".join(ended_lines(story)).split())
    assert "longest on deck: obj/k_8.o for 5:52, obj/k_7.o for 4:53, obj/k_6.o for 3:54" in text


def test_the_end_tells_freezes_from_the_jobs_that_were_frozen() -> None:
    story = builds.governed()
    frozen = [ev.JobMoved(jid, state) for jid in (5, 6, 5) for state in ("running", "frozen")]
    lines = ended_lines(story.add(3661, *frozen))
    number = len({5, 6, builds.FROZEN_JID})
    assert any(f"freezes of {number} jobs" in line for line in lines), lines


def ended_lines(story: builds.Story) -> list[str]:
    """The summary of a build that ends now."""
    state = story.add(3670, ev.BuildEnded("done", 0, "")).state
    return [text(line) for line in end_page.summary(at(state), 80, 24, UNICODE)]


@pytest.mark.parametrize(("size", "ended"), [((120, 52), 2), ((200, 60), 12)])
def test_the_queue_gets_the_rows_before_what_ended_lately(size: tuple[int, int], ended: int) -> None:
    state = builds.governed(2, 13, level=ev.LevelSet("auto", 3)).state
    page = [text(line) for line in dashboard_page.dashboard(at(state), *size, UNICODE, JobView(), [])]
    waiting = [line for line in page if line.startswith("○ ")]
    lately = page[next(n for n, line in enumerate(page) if line.startswith("finished recently")) :]
    assert len(waiting) == 12
    assert not any("more on deck" in line for line in page)
    assert len([line for line in lately if "✓" in line]) >= ended


@pytest.mark.parametrize("outcome", ["done", "failed"])
def test_an_end_says_nothing_of_jobs_that_nothing_has_counted(outcome: ev.Outcome) -> None:
    """Setuptools compiles extensions by itself, below no ninja or make."""
    ended = builds.started().add(30, ev.BuildEnded(outcome, int(outcome != "done"), "")).state
    page = [text_of(line).rstrip() for line in end_page.summary(at(ended), 80, 24, UNICODE)]
    assert "jobs     not counted, not governed: no ninja or make ran" in page
    assert not [line for line in (*page, *PlainRenderer().update(Update(ended, "ended"), NOW)) if "0 jobs" in line]
    watched = replace(ended, compiled_alone=37)
    page = [text_of(line).rstrip() for line in end_page.summary(at(watched), 80, 24, UNICODE)]
    assert "jobs     37 compilations seen, not governed: no ninja or make ran" in page


@pytest.mark.parametrize(("gone", "said"), [(False, "between jobs"), (True, "no build tool runs now")])
def test_a_page_without_jobs_says_whether_a_build_tool_still_runs(*, gone: bool, said: str) -> None:
    """While the cause of a failure was looked for, a build whose ninja had been killed was "between jobs"."""
    story = builds.started().add(5, ev.SchedulerStarted(1, "ninja", 100, "/src", "1.13.2", 8), builds.sampled(0))
    state = story.add(6, *([ev.SchedulerEnded(1)] if gone else [])).state
    page = [text(line) for line in dashboard_page.dashboard(at(state), 80, 24, UNICODE, JobView(), [])]
    assert said in page


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
def test_while_the_cause_is_looked_for_nothing_is_said_to_run(size: tuple[int, int]) -> None:
    """For 2.5 s after a killed ninja the page said "running", "build 134 MiB", "168 MiB to come"."""
    story = builds.governed().add(NOW + 1, ev.SchedulerEnded(1), ev.StepEnded(1, 137))
    page = "\n".join(text(line) for line in dashboard_page.dashboard(at(story.state), *size, UNICODE, JobView(), []))
    assert "ending" in page
    assert "the command has ended" in page
    assert not [words for words in ("running", "to come", "expected of", "between jobs") if words in page]
    assert "memory  at most 44.0 GiB by the build" in page


def test_an_end_counts_the_jobs_of_a_build_tool_that_had_nothing_to_do() -> None:
    story = builds.started().add(5, ev.SchedulerStarted(1, "ninja", 100, "/src", "1.13.2", 8), ev.SchedulerEnded(1))
    ended = story.add(30, ev.BuildEnded("done", 0, "")).state
    assert "jobs     0 done" in [text_of(line).rstrip() for line in end_page.summary(at(ended), 80, 24, UNICODE)]


@pytest.mark.parametrize(("outcome", "said"), [("failed", True), ("stopped", False)])
def test_the_end_of_a_stopped_build_has_no_exit_code(outcome: ev.Outcome, said: bool) -> None:
    """A ninja that is stopped ends by the signal or by itself, as it happens."""
    ended = builds.failed().add(4000, ev.BuildEnded(outcome, 143, "stopped by ann")).state
    page = "\n".join(text(line) for line in end_page.summary(at(ended), 80, 24, UNICODE))
    assert ("exit code 143" in page) is said
