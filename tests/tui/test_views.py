from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from stoker.model import events as ev
from stoker.model.diagnosis import Diagnosis
from stoker.model.progress import progress_of
from stoker.model.samples import MachineSample, Pressure
from stoker.model.state import BuildState, Estimate
from stoker.model.status import status_of
from stoker.model.update import Update
from stoker.show.ascii import to_ascii
from stoker.show.closing_text import closing_lines
from stoker.show.level_text import share_text
from stoker.show.plain import PlainRenderer
from stoker.show.tui.pages import dashboard_page, decision_lines, end_page, failure_page, header, meters, timeline_page
from stoker.show.tui.pages.chart import sample
from stoker.show.tui.pages.job_details import details
from stoker.show.tui.pages.job_list import JobView, moved, ordered
from stoker.show.tui.pages.lines import (
    Line,
    Part,
    crop,
    elide_end,
    elide_middle,
    elide_path,
    fit,
    text_of,
    width_of,
    wrap,
)
from stoker.show.tui.pages.moment import Clock, Moment
from stoker.show.tui.screens.failures_screen import killed_details
from stoker.show.tui.terminal.glyphs import ASCII, UNICODE

from . import builds
from .apps import shown
from .builds import GIB, MACHINE, START
from .pictures import page_of

STATES = (
    BuildState(),
    builds.started().state,
    builds.configuring().state,
    builds.running(30).state,
    builds.governed().state,
    builds.governed(ramdisk=builds.RAMDISK).state,
    builds.governed(level=ev.LevelSet("manual", 12, "hard", guarded=False)).state,
    builds.failed().state,
    builds.done().state,
)
texts = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z", "M")), max_size=60)


def at(state: BuildState, now: float = 3723, **options: object) -> Moment:
    return Moment(Update(state, "live"), START + now, **options)  # type: ignore[arg-type]


@settings(max_examples=120)
@given(st.integers(0, len(STATES) - 1), st.integers(1, 250), st.integers(1, 80), st.booleans())
def test_no_page_is_larger_than_its_screen(which: int, width: int, height: int, ascii_only: bool) -> None:
    m, g = at(STATES[which]), ASCII if ascii_only else UNICODE
    tail: list[Line] = [(Part("output " * 50),)] * 10
    assert len(dashboard_page.dashboard(m, width, height, g, JobView(3), tail)) <= max(height, 9)
    for line in dashboard_page.dashboard(m, width, height, g, JobView(3), tail):
        assert width_of(fit(line, width)) == width
    for make in (timeline_page.timeline, end_page.summary):
        for line in make(m, width, height, g):
            assert width_of(fit(line, width)) == width


@pytest.mark.parametrize("paused", ["soft", "hard"])
def test_no_time_left_is_named_while_a_build_is_paused(paused: ev.Paused) -> None:
    estimate = Estimate(400.0, 300.0, 900.0, START + 100)
    for level, still in ((ev.LevelSet("manual", 12, paused), True), (ev.LevelSet("manual", 12), False)):
        state = replace(builds.governed(level=level).state, estimate=estimate)
        page = [text_of(header.progress(at(state, now), 80, UNICODE)) for now in (100, 340)]
        told = [status_of(state, START + now)["eta"] for now in (100, 340)]
        plain = " ".join(PlainRenderer(interval=0).update(Update(state, "live", ""), START + 340))
        assert (page[0] == page[1], told[0] == told[1], "ETA" not in plain) == (still, still, still)
        assert page[0].rstrip().endswith("no ETA while paused") == still
        assert told[0] == {"seconds": 400.0, "low": 300.0, "high": 900.0}


@pytest.mark.parametrize("story", [builds.done, builds.failed, builds.done_cached, builds.killed])
def test_an_ended_build_has_no_meters_of_now(story: Callable[[], builds.Story]) -> None:
    state = story().state
    assert state.machine is not None
    assert state.over
    state = replace(state, memory=replace(state.memory, promised=GIB, reserve=GIB))
    m = at(state)
    for page in (meters.meters(m, 120, UNICODE, 12), timeline_page.timeline(m, 120, 40, UNICODE)):
        text = "\n".join(map(text_of, page))
        assert "at most" in text
        assert not any(word in text for word in ("promised", "reserve", " cores", "now ", " free", "running of"))
    memory = status_of(state, START)["memory"]
    assert (memory["build"], memory["promised"], memory["reserve"]) == (0, 0, 0)
    assert memory["build_peak"] > 0
    assert status_of(state, START)["disk"]["write_rate"] is None


def test_a_small_end_screen_says_each_thing_once_and_has_rows_for_the_heaviest_jobs() -> None:
    """The error stood there three times, the keys twice, and of the heaviest jobs there were two."""
    page = [text_of(line) for line in end_page.summary(at(builds.failed().state), 80, 22, UNICODE)]
    assert sum("aten/src/Foo.cpp.o" in line for line in page) == 1
    assert sum("exit" in line for line in page) == 3, "the build's, and that of each of the two steps"
    assert not any("decisions" in line for line in page), "the footer has the keys"
    heavy = next(n for n, line in enumerate(page) if line.startswith("heaviest jobs"))
    assert sum(line.startswith("  obj/") for line in page[heavy:]) >= 8
    several = [replace(f, output=f"{n}.o") for n in range(9) for f in builds.failed().state.failures[:1]]
    page = [
        text_of(line)
        for line in end_page.summary(at(replace(builds.failed().state, failures=tuple(several))), 80, 22, UNICODE)
    ]
    assert any(line.endswith("and 7 more") for line in page)


def test_the_end_keeps_a_reason_that_says_more_than_the_exit_status() -> None:
    def second(reason: str) -> str:
        story = builds.failed().add(3731, ev.BuildEnded("failed", 1, reason))
        return text_of(end_page.summary(at(story.state), 80, 22, UNICODE)[1])

    assert second("exit status 1") == ""
    assert second("step build: exit status 1: aten/src/Foo.cpp.o failed and 1 more") == "in step build"
    assert (
        second("exit status 1: memory was short in all 3 attempts")
        == "exit status 1: memory was short in all 3 attempts"
    )
    assert second("killed by signal 9 (Killed)") == "killed by signal 9 (Killed)"


ENDED = "no job failed: somebody else ended"


@pytest.mark.parametrize(
    ("code", "used", "words"),
    [
        (137, 54, f"{ENDED} the command by SIGKILL, perhaps the kernel for memory: see dmesg"),
        (137, 22, f"{ENDED} the command by SIGKILL, and memory was not short"),
        (143, 54, f"{ENDED} the command by SIGTERM"),
        (139, 22, "the cause is not known; look at: stoker log b1"),
        (2, 22, "the cause is not known; look at: stoker log b1"),
    ],
)
async def test_a_command_that_somebody_else_killed_has_no_unknown_cause(code: int, used: int, words: str) -> None:
    machine = replace(MACHINE, memory_used=used * GIB)
    interrupted = ev.JobFinished(1, 1, "obj/long.o", "cxx", 4000.0, "interrupted", 50 * GIB)
    story = builds.running(3, machine).add(3726, interrupted)
    story.add(3727, ev.BuildEnded("failed", code, ""))
    first, *_, last = closing_lines(story.state)
    assert first == words
    assert last.startswith("to resume" if code > 139 or code == 137 else "when that is fixed")
    signalled = "by SIG" in words
    async with shown(builds.FakeSource(story.state, "ended"), "f") as (app, _):
        text = " ".join(page_of(app).split())
        assert ("by SIG" in text) is signalled, text
    story.add(3727, ev.Diagnosed(Diagnosis()))
    async with shown(builds.FakeSource(story.state, "ended")) as (app, _):
        page = page_of(app)
        assert ("No job failed: somebody else ended the command by SIG" in page) is signalled, page
        assert ("No known cause was found" in page) is not signalled, page


def test_what_a_stop_has_ended_is_not_shown_as_failed() -> None:
    story = builds.running(3).add(3725, ev.StopRequested("ann", force=False))
    story.add(3726, ev.JobFinished(1, 1, "obj/long.o", "cxx", 4000.0, "interrupted", 50 * GIB))
    page = end_page.summary(at(story.add(3727, ev.BuildEnded("stopped", 143, "")).state), 80, 24, UNICODE)
    [*rows] = [text_of(line) for line in page if "obj/long.o" in text_of(line)]
    assert rows
    assert all(row.startswith(UNICODE.warn) for row in rows)


@pytest.mark.parametrize("rows", range(9, 30))
def test_on_a_small_screen_the_remedy_outlives_the_why(rows: int) -> None:
    found = builds.killed().state.diagnosis
    assert found is not None
    assert found.cause is not None
    page = [text_of(line) for line in failure_page.details(found, found.cause, ("r", "c"), 60, rows, UNICODE)]
    assert len(page) <= rows
    assert any("31414" in line for line in page)
    assert [line.split(" ")[0] for line in page if line.startswith(("r ", "c "))] == ["r", "c"]
    assert any(line.startswith("remedy") for line in page)


@given(texts, st.integers(0, 70))
def test_elided_text_fits(text: str, width: int) -> None:
    for elide in (elide_end, elide_middle, elide_path):
        assert cell_len(elide(text, width)) <= width
        if cell_len(text) <= width:
            assert elide(text, width) == text


@given(texts, st.integers(2, 70), st.integers(1, 5))
def test_wrapped_text_fits(text: str, width: int, limit: int) -> None:
    pieces = wrap(text, width, limit)
    assert len(pieces) <= limit
    assert all(cell_len(piece) <= width for piece in pieces)


@given(st.lists(texts, max_size=4), st.integers(0, 40), st.integers(1, 40))
def test_a_window_over_a_line_has_its_width(parts: list[str], start: int, width: int) -> None:
    assert width_of(crop([Part(text) for text in parts], start, width)) == width


def test_a_compilers_quotes_stay_quotes_in_ascii() -> None:
    for name in (
        "empty",
        "promised",
        "reserve",
        "block",
        "fail",
        "ok",
        "person",
        "frozen",
        "on_deck",
        "killed",
        "axis",
    ):
        assert to_ascii(getattr(UNICODE, name)) == getattr(ASCII, name).replace(".", "-"), name
    assert to_ascii("error: ‘x’ has no member “y” — 3 × ünder") == "error: 'x' has no member \"y\" - 3 x ?nder"
    assert to_ascii("漢字/e\u0301.o") == "????/e.o"  # as many cells, so that columns line up


def test_a_path_keeps_its_file_name() -> None:
    path = "caffe2/CMakeFiles/torch_cuda.dir/__/aten/src/ATen/native/cuda/ReduceSumProdKernel.cu.o"
    assert elide_path(path, 40).endswith("…/ReduceSumProdKernel.cu.o")
    assert elide_path(path, 12) == "Reduce….cu.o"
    assert elide_path("/src/f/flash/build/temp.linux/csrc/flash_api.o", 25) == "…/csrc/flash_api.o"
    assert elide_path("/src/f/flash/build/temp.linux/csrc/flash_api.o", 29) == "…/temp.linux/csrc/flash_api.o"
    assert elide_path("/src/f/flash_api.o", 14) == "…/flash_api.o"


def text(line: object) -> str:
    return text_of(line).strip()  # type: ignore[arg-type]


def test_progress_with_a_known_total() -> None:
    line = text(header.progress(at(builds.running(3).state), 80, UNICODE))
    assert line.endswith("1204/6579  18 %  ETA 27 min (24–31 min)")


def test_in_a_narrow_terminal_the_middle_of_the_remaining_time_stays_and_its_band_goes() -> None:
    line = text(header.progress(at(builds.stopped_some().state), 60, UNICODE))
    assert line.endswith("† 3 to run again  ETA 27 min")
    assert line.startswith("━")


def test_progress_without_a_total_shows_no_percent_and_no_total() -> None:
    story = builds.started().add(5, ev.SchedulerStarted(1, "ninja", 9, "/b", "1.11.1", 8))
    story.add(6, ev.JobFinished(None, 1, "a.o", "cxx", 1, "ok"))
    line = text(header.progress(at(story.state), 80, UNICODE))
    assert line.endswith("1 done")
    assert "%" not in line
    assert "━" not in line


def test_the_progress_bar_keeps_its_length_while_the_remaining_time_changes() -> None:
    """It jumped each second: 43 to 90 s, then 45 s to 2 min."""

    def bar(seconds: float, low: float, high: float) -> int:
        state = replace(builds.running(3).state, estimate=Estimate(seconds, low, high, START + 3723))
        line = header.progress(at(state), 80, UNICODE)
        return width_of(line[:2])

    times = ((65, 43, 85), (64, 45, 130), (1620, 1440, 1860), (300, 60, 540), (4, 3, 6))
    assert len({bar(*time) for time in times}) == 1


def test_progress_of_make_shows_its_percent_and_no_total() -> None:
    story = builds.started().add(5, ev.SchedulerStarted(1, "make", 9, "/b", "4.3", 8))
    story.add(6, ev.SchedulerPlanned(1, None, "percent", percent=37.0))
    line = text(header.progress(at(story.state), 80, UNICODE))
    assert line.endswith("0 done  37 %")


def test_progress_of_make_names_the_percentage_of_its_log_as_what_has_begun() -> None:
    """It said 43 % beside the log's [59%], and nothing said which of them was what."""
    story = builds.started().add(5, ev.SchedulerStarted(1, "make", 9, "/b", "4.3", 8))
    story.add(6, ev.SchedulerPlanned(1, None, "percent", percent=43.0, begun=59.0))
    line = text(header.progress(at(story.state), 80, UNICODE))
    assert line.endswith("0 done  43 %, 59 % begun")
    assert share_text(progress_of(story.state)) == "43 %, 59 % begun"
    story.add(7, ev.SchedulerPlanned(1, None, "percent", percent=59.0, begun=59.0))
    assert text(header.progress(at(story.state), 80, UNICODE)).endswith("0 done  59 %")


def test_a_nearly_full_bar_is_not_full_and_100_percent_is_not_rounded_up_to() -> None:
    bar = text(header.progress_bar(0.9999, 40, UNICODE))
    assert bar.endswith("─")


def test_failures_are_counted_with_a_mark() -> None:
    assert "✗ 2 failed" in text(header.progress(at(builds.failed().state), 80, UNICODE))


@pytest.mark.parametrize(
    ("estimate", "now", "words"),
    [
        (None, 3723, "ETA after the first jobs"),
        (Estimate(100, 60, 180, START + 3700), 3700, "ETA 1.5 min (1–3 min)"),
        (Estimate(100, 60, 180, START + 3700), 3760, "ETA 0.5 min (0–2 min)"),
        (Estimate(100, 60, 180, START + 3700), 9999, "ETA any moment"),
    ],
)
def test_the_remaining_time_and_its_band_run_down(estimate: Estimate | None, now: float, words: str) -> None:
    state = replace(builds.running(3).state, estimate=estimate)
    assert words in text(header.progress(at(state, now), 80, UNICODE))


def test_no_remaining_time_once_it_is_over() -> None:
    assert "ETA" not in text(header.progress(at(builds.done().state), 80, UNICODE))


def meter_lines(machine: MachineSample, width: int = 80, rows: int = 6) -> str:
    state = builds.running(3, machine).state
    return "\n".join(text(line) for line in meters.meters(at(state), width, UNICODE, rows))


def test_the_cores_are_those_of_the_percentage_and_the_build_may_use_fewer() -> None:
    """One busy core of two was shown as "50 % of 1 cores" to a build that may use one."""
    half = replace(MACHINE, cpu_percent=50.0, cpu_cores=(100, 0), cpu_available=1.0)
    assert "  50 % of 2 cores " in meter_lines(half, 120)
    assert "(may use 1 core)" in meter_lines(half, 120)
    assert "may use" not in meter_lines(replace(half, cpu_available=2.0), 120)


def test_the_timeline_tells_the_build_from_the_rest_of_the_machine() -> None:
    """A machine that others keep busy was shown as if the build did."""
    busy = replace(MACHINE, cpu_percent=100.0, cpu_cores=(100, 100), cpu_available=2.0)
    story = builds.started()
    for i in range(20):
        story.add(10 + i, replace(builds.sampled(0, busy), build_cpu=68.0))
    lines = [text(line) for line in timeline_page.timeline(at(story.state), 80, 24, UNICODE)]
    top = next(n for n, line in enumerate(lines) if "cpu  █ build 34 %  ─ in all 100 % of 2 cores" in line) + 1
    assert lines[top].count("█") == 0, "the build fills a third of the chart"
    assert any(line.count("█") > 60 for line in lines[top + 1 : top + 4])
    moved = timeline_page.timeline(at(story.state), 100, 30, UNICODE, timeline_page.TimelineView(at=START + 20))
    assert any("cpu 34 of 100 %" in text(line) for line in moved)


def test_memory_names_the_limit_swap_and_stall() -> None:
    machine = replace(MACHINE, swap_used=3 * GIB, pressure_memory=Pressure(12.0, 4.0))
    shown = meter_lines(machine, 160)
    assert "22.9 of 55.0 GiB" in shown
    assert "budget of /docker/4f9c2a77d01be1" in shown
    assert "swap 3.0 GiB" in shown
    assert "! others stall 12 %" in shown
    own = replace(machine, pressure_memory=Pressure(12.0, 4.0, own=True))
    assert "! stalled 12 %" in meter_lines(own, 160)
    assert "cgroup budget" in meter_lines(MACHINE)
    assert "--memory budget" in meter_lines(replace(MACHINE, memory_limit_source="--memory"))
    assert "limit" not in meter_lines(replace(MACHINE, memory_limit_source="machine"), 160)


def test_the_builds_own_memory_is_drawn_apart_without_colour() -> None:
    line = meter_lines(MACHINE).splitlines()[0]
    assert "━━━━━━┅┅───" in line


def test_gpus_and_their_absence() -> None:
    assert "no NVIDIA driver" in meter_lines(replace(MACHINE, gpus=(), gpu_note="no NVIDIA driver"))
    two = replace(MACHINE, gpus=(*MACHINE.gpus, replace(MACHINE.gpus[0], index=1, utilisation=None, memory_used=None)))
    assert "gpu 0" in meter_lines(two, rows=7)
    assert "use unknown" in meter_lines(two, rows=7)
    many = replace(MACHINE, gpus=tuple(replace(MACHINE.gpus[0], index=i) for i in range(8)))
    shown = meter_lines(many, rows=6)
    assert len(shown.splitlines()) == 6
    assert "running" in shown


def test_a_ram_disk_has_a_line_where_there_is_room_and_else_a_place_beside_the_disk() -> None:
    machine = replace(MACHINE, ramdisk=builds.RAMDISK)
    apart = meter_lines(machine, rows=6).splitlines()
    assert apart[3].startswith("ramdisk ━━━")
    assert "0.7 of 4.0 GiB" in apart[3]
    assert "RAM" not in apart[4]
    beside = meter_lines(machine, rows=5).splitlines()
    assert "381 GiB free  0.7 of 4.0 GiB in RAM  48.0 GiB written" in beside[3]
    assert [line.split()[0] for line in beside] == ["memory", "cpu", "gpu", "disk", "jobs"]
    low = replace(machine, ramdisk=replace(builds.RAMDISK, free=200 * builds.MIB))
    assert "! 200 MiB free" in meter_lines(low, rows=6).splitlines()[3]
    assert "! 200 MiB free" in meter_lines(low, rows=5).splitlines()[3]
    assert "ram" not in meter_lines(MACHINE, rows=6).lower()


def test_the_end_tells_what_went_to_disk_and_what_was_in_memory() -> None:
    story = builds.running(0, replace(MACHINE, ramdisk=builds.RAMDISK))
    story.add(3740, ev.SchedulerEnded(1), ev.BuildEnded("done", 0, "", written=47 * GIB))
    shown = "\n".join(text(line) for line in end_page.summary(at(story.state), 80, 24, UNICODE))
    assert "written  47.0 GiB to disk, at most 717 MiB in the RAM disk" in shown
    assert "written  48.0 GiB\n" in "\n".join(
        text(line) for line in end_page.summary(at(builds.done().state), 80, 24, UNICODE)
    )


def test_a_person_and_stoker_are_told_apart_by_a_mark() -> None:
    lines = [text(line) for line in decision_lines.decisions(at(builds.running(3).state), 80, 3, UNICODE)]
    assert lines[0].startswith("15:14:10 · 12→11 hold")
    assert "▸ ann  level 16" in lines[1]
    assert lines[2].startswith("15:14:50 ! pidfd_open")
    wide = [text(line) for line in decision_lines.decisions(at(builds.running(3).state), 100, 3, UNICODE)]
    assert "· stoker  12→11 hold" in wide[0]


def test_jobs_keep_their_order_when_their_figures_change() -> None:
    state = builds.running(5).state
    changed = {jid: replace(job, rss=10**10 - jid, cpu=jid) for jid, job in reversed([*state.jobs.items()])}
    assert [job.jid for job in ordered(replace(state, jobs=changed), state.time)] == [1, 2, 3, 4, 5]


def test_the_cursor_begins_at_the_top_and_stops_at_both_ends() -> None:
    state = builds.running(5).state
    jobs = ordered(state, state.time)
    assert moved(jobs, None, 1) == 1
    assert moved(jobs, 5, 1) == 5
    assert moved(jobs, 1, -9) == 1
    assert moved([], 3, 1) is None


def test_details_show_the_whole_path() -> None:
    state = builds.running(1).state
    lines = details(state.jobs[1], state, START + 3723, 40, UNICODE)
    assert "".join(text_of(line) for line in lines[:3]).startswith(builds.OUTPUTS[0][0][:100])
    assert all(width_of(line) <= 40 for line in lines)


def test_a_column_keeps_the_peak_of_its_span() -> None:
    assert sample([0, 1, 2, 3], [1, 9, 2, 3], 2, 0, 4) == [9, 3]
    assert sample([0, 9], [5, 1], 5, 0, 10) == [5, 5, 5, 5, 1]


def test_the_chart_of_an_ended_build_reaches_its_end_and_is_empty_where_nothing_was_measured() -> None:
    """A short build on a busy machine was measured for half of its time only."""
    story = builds.started()
    for second in range(1, 7):
        story.add(second, builds.sampled(0))
    state = story.add(13, ev.BuildEnded("done", 0, "")).state
    lines = [text_of(line) for line in timeline_page.memory_of_life(state, 80, 10, UNICODE)]
    assert lines[-1].split()[-1] == "0:12"
    lowest = lines[-3].ljust(80)
    assert lowest[20] == UNICODE.block
    assert not lowest[70:].strip()
    page = [text_of(line) for line in timeline_page.timeline(at(state, 13), 80, 24, UNICODE)]
    assert page[-1].split()[-1] == "0:12"


def test_the_clock_ticks_between_updates_and_never_back() -> None:
    clock = Clock()
    state = replace(builds.running(1).state, time=1000.0)
    assert clock.now(Update(state, "live"), 50.0) == 1000.0
    assert clock.now(Update(state, "live"), 52.5) == 1002.5
    late = replace(state, time=1002.0)
    assert clock.now(Update(late, "live"), 53.0) == 1003.0
    early = replace(state, time=1006.0)
    assert clock.now(Update(early, "live"), 54.0) == 1006.0
    over = replace(state, time=1010.0, ended=1008.0, outcome="done")
    assert clock.now(Update(over, "ended"), 99.0) == 1008.0
    assert clock.now(Update(replace(state, time=3.0), "replay"), 99.0) == 3.0


def test_in_spare_room_the_jobs_that_ended_last_are_listed_newest_first_at_a_place_that_does_not_jump() -> None:
    def page(running: int) -> list[str]:
        story = builds.started()
        story.add(2, ev.SchedulerStarted(9, "ninja", 77, "/b", "1.13.2", 4))
        for n in range(6):
            outcome: ev.JobOutcome = "failed" if n == 4 else "ok"
            story.add(3 + n, ev.JobFinished(None, 9, f"obj/unit{n}.o", "cxx", 2.0 + n, outcome, peak_rss=n << 20))
        story.add(20, *(ev.JobStarted(50 + n, 9, 500 + n, f"obj/run{n}.o", "cxx", START) for n in range(running)))
        return [text_of(line) for line in dashboard_page.dashboard(at(story.state, 60), 80, 24, UNICODE, JobView(), [])]

    lines = page(2)
    heading = next(i for i, line in enumerate(lines) if line.startswith("finished recently"))
    assert [line.split()[:2] for line in lines[heading + 1 : heading + 4]] == [
        ["✓", "obj/unit5.o"],
        ["✗", "obj/unit4.o"],
        ["✓", "obj/unit3.o"],
    ]
    assert lines[heading + 1].split()[2:] == ["c++", "0:07", "5.0", "MiB"]
    assert next(i for i, line in enumerate(page(4)) if line.startswith("finished recently")) == heading


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ([], "It has not failed: will run again."),
        ([ev.StepStarted(2, 4, "build", ("ninja",), 101, 2)], "It has not failed: the step has run again since."),
        ([ev.BuildEnded("failed", 1, "killed")], "It is not built: the build failed because it was killed."),
    ],
)
def test_what_came_of_a_killed_job_is_told_as_it_is(more: list[ev.Event], told: str) -> None:
    state = builds.running(3).add(3701, ev.JobKilled("z.o", "memory", 5 << 30)).add(3702, *more).state
    lines = [text(line) for line in killed_details(state.killed[-1], state, 80, 12, UNICODE)]
    assert told in lines
