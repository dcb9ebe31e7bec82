"""The chart of memory: what was, what is expected, and where the budget lies."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stoker.model import events as ev
from stoker.model.samples import JobSample
from stoker.show.tui.pages import dashboard_page, gantt, memory_chart
from stoker.show.tui.pages.chart import AXIS_WIDTH, Area, chart, memory_top
from stoker.show.tui.pages.job_details import details
from stoker.show.tui.pages.job_list import JobView
from stoker.show.tui.pages.lines import text_of, width_of
from stoker.show.tui.terminal.glyphs import UNICODE

from . import builds
from .builds import GIB, MACHINE
from .test_views import at

PAST, COMING = "▁▂▃▄▅▆▇█", "░"


def story(*outlook: int, seconds: int = 30) -> builds.Story:
    """Half a minute of a governed build that holds 10 of 20 GiB."""
    machine = replace(MACHINE, memory_budget=20 * GIB, memory_used=10 * GIB, memory_available=10 * GIB)
    made = builds.started().add(0, ev.LevelSet("auto", 4))
    for second in range(seconds):
        made.add(1 + second, replace(builds.sampled(0, machine), build_rss=10 * GIB, outlook=outlook))
    return made


def growing(*outlook: int) -> builds.Story:
    """The same, with a job that has just started and needs as much again."""
    made = story(*outlook).add(30, ev.SchedulerStarted(1, "ninja", 100, "/src/build", "", 8))
    return made.add(30, ev.JobStarted(1, 1, 200, "big.o", "cxx", builds.START + 30, expected=10 * GIB))


def drawn(made: builds.Story, width: int = 80) -> list[str]:
    return [text_of(line) for line in memory_chart.memory_chart(at(made.state), width, 11, UNICODE)]


def test_past_lies_left_of_now_and_what_is_expected_right_of_it_as_high_as_it_is() -> None:
    lines = drawn(growing(5 * GIB, 10 * GIB, 0, 0, 0, 0, 0, 0))
    now = lines[-1].index("now")
    bottom = lines[-2]
    assert bottom[now - 1] in PAST
    assert bottom[now] == bottom[now + 19] == COMING
    heights = [sum(line[at] == COMING for line in lines) for at in (now, now + 15)]
    assert heights[0] < heights[1]  # 15 GiB until ten seconds from now, 20 until twenty
    assert not any(COMING in line[: now - 1] for line in lines[:-1])


def test_no_more_is_drawn_than_the_figures_beside_it_say_is_to_come() -> None:
    much = drawn(growing(*[90 * GIB] * 8))
    assert much == drawn(growing(*[10 * GIB] * 8)), "what its only job lacks"
    assert "20.0 GiB" in much[0]


def test_nothing_is_expected_of_a_job_that_has_just_ended() -> None:
    made = growing(*[10 * GIB] * 8)
    assert any(COMING in line for line in drawn(made))
    made.add(31, ev.JobsExited((1,)))
    assert not any(COMING in line for line in drawn(made))


def test_what_is_not_known_is_left_empty() -> None:
    assert not any(COMING in line for line in drawn(story()))


def test_the_budget_has_its_line_and_every_line_fits() -> None:
    for width in (40, 80, 120, 200):
        made = story(1 * GIB, *[0] * 7)
        lines = memory_chart.memory_chart(at(made.state), width, 6, UNICODE)
        assert all(width_of(line) <= width for line in lines)
        assert "20.0 GiB" in text_of(lines[0])
        assert UNICODE.dash * 5 in text_of(lines[0])


def test_the_axis_reaches_no_further_back_than_the_build() -> None:
    """A build of 14 seconds does not say 42 s ago: the axis says where it started."""
    for seconds in (14, 139):
        state = story(GIB, *[0] * 7, seconds=seconds).state
        axis = text_of(memory_chart.memory_chart(at(state), 110, 8, UNICODE)[-1])
        assert axis.lstrip().startswith(f"{UNICODE.corner}start"), "no blank columns before it"
        assert " ago" not in axis


def test_a_young_chart_grows_and_what_is_to_come_has_the_rest_of_the_width() -> None:
    axes = [memory_chart.axis_of(story(GIB, *[0] * 7, seconds=seconds).state, 100) for seconds in (5, 30, 59)]
    assert [axis.past for axis in axes] == [6, 31, 60]
    assert {axis.columns for axis in axes} == {100}
    bottom = drawn(story(GIB, *[0] * 7, seconds=20))[-2]
    assert all(cell in PAST for cell in bottom[AXIS_WIDTH + 1 : AXIS_WIDTH + 21])


def test_an_old_chart_fills_a_wide_screen() -> None:
    for columns in (110, 190):
        assert memory_chart.axis_of(story(GIB, *[0] * 7, seconds=400).state, columns).columns == columns


def test_columns_move_by_whole_steps_only() -> None:
    """Less than a step later nothing on the screen is another: bytes are dear on a slow link."""
    made = story(5 * GIB, *[0] * 7, seconds=300)
    state = made.state
    soon, later = replace(state, time=state.time + 4.9), replace(state, time=state.time + 5)
    now, then, at_last = (memory_chart.axis_of(s, 70) for s in (state, soon, later))
    assert now.step == 5
    assert now.column(builds.START + 100) == then.column(builds.START + 100)
    assert at_last.column(builds.START + 100) == now.column(builds.START + 100) - 1


def test_a_small_screen_keeps_its_jobs_and_24_lines_have_the_chart() -> None:
    def text(height: int) -> str:
        lines = dashboard_page.dashboard(at(builds.governed().state), 80, height, UNICODE, JobView(), [])
        assert len(lines) <= height
        return "\n".join(text_of(line) for line in lines)

    assert " ago" in text(23)
    assert " ago" not in text(19)


def test_without_room_for_columns_there_is_no_chart() -> None:
    assert not memory_chart.is_worth_drawing(story().state, AXIS_WIDTH + 5)


def test_jobs_are_bars_from_when_they_began_to_when_they_are_expected_to_end() -> None:
    made = story(5 * GIB, *[0] * 7, seconds=10)
    made.add(10, ev.SchedulerStarted(1, "ninja", 2, "/b", "1.13", 16))
    made.add(10, ev.JobStarted(1, 1, 11, "a.o", "cxx", builds.START + 10, expected=GIB, lasts=25.0))
    made.add(10, ev.JobStarted(2, 1, 12, "b.o", "cxx", builds.START + 10, "on_deck", GIB, lasts=9.0))
    made.add(15, ev.JobMoved(2, "running"), ev.Estimated(100, 90, 110, critical=2))
    made.add(20, replace(builds.sampled(0), outlook=(GIB,)))
    first, second = (text_of(line).rstrip() for line in gantt.gantt(at(made.state), 134, 2, UNICODE))
    now = gantt.MARGIN + memory_chart.axis_of(made.state, 100).past
    assert first.lstrip().startswith("a.o")
    assert first[now - 11 : now + 15] == UNICODE.full * 11 + UNICODE.promised * 15
    assert second[now - 6 : now + 4] == UNICODE.full * 6 + UNICODE.promised * 4
    assert second.endswith(gantt.CRITICAL)
    assert not first.endswith(gantt.CRITICAL)


def test_a_wide_screen_has_bars_where_the_table_does_not_need_the_lines() -> None:
    def bars(jobs: int, height: int) -> int:
        made = builds.governed(jobs, 0, level=ev.LevelSet("auto", 4))
        lines = dashboard_page.dashboard(at(made.state), 120, height, UNICODE, JobView(), [])
        axis = next(n for n, line in enumerate(lines) if " ago" in text_of(line))
        rows = [text_of(line)[gantt.MARGIN - 1 : gantt.MARGIN] for line in lines[axis + 1 :]]
        return sum(cell == UNICODE.axis for cell in rows)

    assert bars(4, 39) == 4
    assert bars(4, 24) == 0


def test_a_jobs_box_shows_its_course_and_whether_it_is_on_the_critical_path() -> None:
    made = story().add(30, ev.SchedulerStarted(1, "ninja", 2, "/b", "1.13", 16))
    made.add(30, ev.JobStarted(1, 1, 11, "a.o", "cxx", builds.START + 30, expected=8 * GIB, lasts=100.0))
    made.add(30, ev.Estimated(100, 90, 110, critical=1))
    for second in range(9):
        rising = (JobSample(1, second * GIB, 50.0, "cc1plus"),)
        made.add(31 + second, replace(builds.sampled(0), jobs=rising))
    lines = [text_of(line).strip() for line in details(made.state.jobs[1], made.state, builds.START + 40, 70, UNICODE)]
    assert "over time     ▁▂▃▄▅▆▇█" in lines
    assert any(line.startswith("critical") for line in lines)
    assert "it takes about 2 min on a core of its own" in " ".join(lines)


def test_a_job_that_is_expected_to_be_short_is_not_said_to_take_no_time() -> None:
    made = story().add(30, ev.SchedulerStarted(1, "ninja", 2, "/b", "1.13", 16))
    made.add(30, ev.JobStarted(1, 1, 11, "a.o", "cxx", builds.START + 30, "on_deck", expected=8 * GIB, lasts=0.3))
    lines = details(made.state.jobs[1], made.state, builds.START + 30, 90, UNICODE)
    text = " ".join(text_of(line).strip() for line in lines)
    assert "8.0 GiB at its peak, for less than a second on a core of its own" in text


def test_a_budget_that_is_exceeded_stands_beside_its_own_line_below_a_round_top() -> None:
    mib = 2**20
    top, label = memory_top(429 * mib, 300 * mib)
    assert label == "600 MiB"
    areas = [Area([429.0 * mib] * 5 + [0.0] * 5, "memory")]
    lines = chart(areas, top, 6, UNICODE, label, limit=300 * mib, limit_label="300 MiB")
    assert [text_of(line)[:8].strip() for line in lines] == ["600 MiB", "", "", "300 MiB", "", "0"]
    assert UNICODE.dash in text_of(lines[3])


def test_a_limit_just_below_the_upper_edge_is_labelled_once() -> None:
    top, label = memory_top(50.0 * GIB, 55.0 * GIB)
    lines = chart([Area([50.0 * GIB], "memory")], top, 30, UNICODE, label, limit=55.0 * GIB, limit_label="55.0 GiB")
    assert [text_of(line)[:8].strip() for line in lines[:3]] == ["", "55.0 GiB", ""]


@pytest.mark.parametrize("rows", range(2, 40))
def test_a_line_at_the_upper_edge_or_between_two_rows_has_a_cell_in_one_row(rows: int) -> None:
    values = [100.0, 100.4, *(100 * part / rows for part in range(1, rows))]
    lines = chart([Area(values, "text", line=True)], 100, rows, UNICODE, "100 %")
    cells = [text_of(line)[AXIS_WIDTH:].ljust(len(values)) for line in lines]
    assert cells[0][:2] == UNICODE.edges[-1] * 2
    assert all(sum(row[column] in UNICODE.edges for row in cells) == 1 for column in range(len(values)))
