"""What rows, banners and boxes say of waiting, pausing and processes, in words that a newcomer can follow."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from stoker.model import events as ev
from stoker.model.job_tree import ProcessRow, ProcessTree
from stoker.model.killed import failed_steps, killed_beside_failures
from stoker.model.progress import not_run
from stoker.model.state import BuildState, Estimate
from stoker.model.status import status_of
from stoker.model.to_come import still_to_come
from stoker.model.update import Update
from stoker.show.governing_text import GoverningReporter
from stoker.show.killed_text import drain_text, fate_text, mark_text, not_started_text, outlook_text
from stoker.show.left_text import LEARNING, left_text
from stoker.show.tui.pages import dashboard_page, end_page, header, meters, timeline_page
from stoker.show.tui.pages.job_details import details
from stoker.show.tui.pages.job_list import JobView
from stoker.show.tui.pages.job_table import table
from stoker.show.tui.pages.lines import text_of
from stoker.show.tui.pages.moment import Moment
from stoker.show.tui.screens.failures_screen import killed_details
from stoker.show.tui.terminal.glyphs import UNICODE

from . import builds, pictures
from .apps import shown
from .builds import FakeSource

GUESS = "its size is a guess: ~434 MiB; after obj/kernel_00.o, as such jobs start one by one"


def at(state: BuildState, *, read_only: bool = False) -> Moment:
    return Moment(Update(state, "live"), builds.START + builds.NOW, read_only)


def rows(state: BuildState, width: int) -> list[str]:
    return [text_of(line) for line in table(at(state), width, 9, JobView(), UNICODE)]


def loose(state: BuildState) -> BuildState:
    """Return the build in a step whose compilers run without a scheduler."""
    assert state.step is not None
    return replace(state, jobs={}, schedulers={}, step=replace(state.step, ungoverned=True))


def waiting(cause: ev.WaitCause, why: str) -> BuildState:
    return builds.governed(2, 2).add(builds.NOW, ev.JobsWaiting((3, 4), cause, why)).state


@pytest.mark.parametrize(
    ("width", "words"),
    [(80, "waits after kernel_00.o"), (120, "waits after obj/kernel_00.o"), (40, "")],
)
def test_a_guessed_size_is_called_a_guess_with_who_goes_first(width: int, words: str) -> None:
    row = rows(waiting("unknown", GUESS), width)[-1]
    assert words in row
    assert words or "…" not in row.split()[-1]


@pytest.mark.parametrize(("failures", "drains"), [(1, True), (None, False), (3, False)])
def test_while_the_build_tool_starts_nothing_more_after_a_kill_the_banner_says_so(
    failures: int | None, *, drains: bool
) -> None:
    """Without a word of it the deck ran empty for minutes, with memory to spare."""
    story = builds.Story().add(5, ev.SchedulerStarted(1, "ninja", 100, "/src", "1.13.2", 8, failures=failures))
    story.add(6, ev.SchedulerPlanned(1, 20, "dry-run", {"cxx": 20}))
    story.add(7, *(ev.JobStarted(n, 1, 5000 + n, f"{n}.o", "cxx", builds.START + 7) for n in range(14)))
    story.add(builds.NOW, ev.JobKilled("0.o", "shed", 1 << 30, 0, "", "0.9 GiB left"))
    story.add(builds.NOW, ev.JobFinished(0, 1, "0.o", "cxx", 71, "failed", 1 << 30))
    whole = "1 stopped to free memory; the step runs again once ninja's 13 jobs have ended"
    shown = [text_of(line) for line in dashboard_page.banner(at(story.state), 80, 24, UNICODE)]
    assert (whole in shown[0]) == drains
    short = text_of(dashboard_page.banner(at(story.state), 60, 24, UNICODE)[0])
    assert "1 stopped to free memory, will run again" in short
    assert drain_text(story.add(builds.NOW + 1, ev.SchedulerEnded(1)).state) == ""


def test_a_killed_job_is_not_promised_to_run_again_once_another_has_failed() -> None:
    story = builds.Story().add(5, ev.SchedulerStarted(1, "ninja", 100, "/src", "1.13.2", 8))
    story.add(7, ev.JobKilled("0.o", "unknown", 1 << 30))
    assert outlook_text(story.state) == "1 killed from outside, will run again"
    nested = ev.FailureFound("sub", "make -C sub", 2, (), 100, 200)  # for what failed in it
    assert outlook_text(story.add(8, nested).state) == "1 killed from outside, will run again"
    story.add(9, ev.FailureFound("obj/bridge.cpp.o", "c++ ...", 1, (), 200, 300))
    assert outlook_text(story.state) == "1 killed from outside, will not run again: bridge.cpp.o failed"
    ended = story.add(9, ev.JobFinished(0, 1, "0.o", "cxx", 5, "failed")).state
    line = text_of(header.progress(at(ended), 100, UNICODE))
    assert "will not run again" in line
    assert "to run again" not in line
    assert fate_text(story.state) == "will not run again: bridge.cpp.o failed"
    story.add(10, ev.FailureFound("obj/reef.cpp.o", "c++ ...", 1, (), 300, 400))
    assert fate_text(story.state) == "will not run again: bridge.cpp.o and 1 more failed"
    assert [killed["will_run_again"] for killed in status_of(story.state, builds.START + 9)["killed"]] == [False]


def test_a_killed_job_is_not_promised_to_run_again_once_the_build_is_being_stopped() -> None:
    story = builds.Story().add(5, ev.SchedulerStarted(1, "ninja", 100, "/src", "1.13.2", 8))
    story.add(7, ev.JobKilled("0.o", "shed", 1 << 30), ev.StopRequested("ann", force=False))
    assert fate_text(story.state) == "will not run again: the build is being stopped"
    assert [killed["will_run_again"] for killed in status_of(story.state, builds.START + 9)["killed"]] == [False]


def test_at_the_end_a_job_that_was_killed_beside_failures_counts_once_and_is_not_blamed() -> None:
    """It counted as failed and as killed, and the build was said to have failed because of it."""
    story = builds.Story().add(5, ev.SchedulerStarted(1, "ninja", 100, "/src", "1.13.2", 8))
    story.add(6, ev.SchedulerPlanned(1, 9, "dry-run", {"cxx": 9}))
    story.add(7, ev.JobKilled("k.o", "unknown", 1 << 30), ev.FailureFound("k.o", "c++ k", 1, (), 0, 50))
    story.add(8, *(ev.FailureFound(o, f"c++ {o}", 1, (), n, n + 50) for n, o in ((50, "a.o"), (100, "b.o"))))
    story.add(9, *(ev.JobFinished(n, 1, o, "cxx", 5, "failed") for n, o in enumerate(("k.o", "a.o", "b.o"))))
    state = story.add(10, ev.JobFinished(3, 1, "c.o", "cxx", 5, "ok"), ev.BuildEnded("failed", 1, "x")).state
    assert [f.output for f in failed_steps(state)] == ["a.o", "b.o"]
    page = [text_of(line).rstrip() for line in end_page.summary(at(state), 80, 24, UNICODE)]
    assert "jobs     1 done, 2 failed, 1 killed, 5 not run" in page
    assert killed_beside_failures(state) == [*state.killed]
    told = " ".join(text_of(line) for line in killed_details(state.killed[0], state, 80, 9, UNICODE))
    assert "It has not failed: not built: a.o and 1 more failed." in told


def test_at_the_end_of_a_stop_what_ran_was_interrupted_and_what_failed_has_the_sign_of_a_failure() -> None:
    """The job that the stop ended was among those not run, and one that had failed before looked like it."""
    story = builds.Story().add(5, ev.SchedulerStarted(1, "ninja", 100, "/src", "1.13.2", 8))
    story.add(6, ev.SchedulerPlanned(1, 9, "dry-run", {"cxx": 9}))
    states: tuple[ev.JobState, ...] = ("running", "running", "on_deck")
    for jid, (output, state) in enumerate(zip(("bad.o", "ran.o", "deck.o"), states, strict=True)):
        story.add(7, ev.JobStarted(jid, 1, 500 + jid, output, "cxx", builds.START + 7, state))
    story.add(
        8, ev.FailureFound("bad.o", "c++", 1, (), 0, 9), ev.JobFinished(0, 1, "bad.o", "cxx", 1, "failed", 1 << 20)
    )
    story.add(9, ev.StopRequested("ann", force=False))
    for jid, output in ((1, "ran.o"), (2, "deck.o")):
        story.add(10, ev.JobFinished(jid, 1, output, "cxx", 57, "interrupted", 1 << 20))
    ended = story.add(11, ev.SchedulerEnded(1), ev.BuildEnded("stopped", 130, "stopped by ann")).state
    page = [text_of(line).rstrip() for line in end_page.summary(at(ended), 80, 30, UNICODE)]
    assert "jobs     0 done, 1 failed, 1 interrupted, 7 not run" in page
    assert not_run(ended) == 7
    marks = {line.split()[1]: line.split()[0] for line in page if " c++ " in line}
    assert (marks["bad.o"], marks["ran.o"]) == (UNICODE.fail, UNICODE.warn)


async def test_a_job_whose_death_alone_made_the_build_fail_is_listed_once_and_as_killed() -> None:
    story = builds.Story().add(5, ev.SchedulerStarted(1, "ninja", 100, "/src", "1.13.2", 8))
    story.add(7, ev.JobKilled("k.o", "unknown", 1 << 30), ev.FailureFound("k.o", "c++ k", 1, (), 0, 50))
    story.add(9, ev.JobFinished(0, 1, "k.o", "cxx", 5, "failed"), ev.BuildEnded("failed", 1, "x"))
    async with shown(FakeSource(story.state, "ended"), "f") as (app, _):
        text = pictures.text_of(app)
    assert [line.split() for line in text.splitlines() if "k.o" in line and "†" in line]
    assert text.count("k.o") == 1
    assert "killed from outside (held 1.0 GiB)." in text


@pytest.mark.parametrize("width", range(40, 201, 8))
def test_no_reason_ends_in_the_middle_of_a_word(width: int) -> None:
    known = {"waits"} | set(GUESS.replace("obj/", "").replace(",", "").replace(";", "").split())
    for row in rows(waiting("unknown", GUESS), width)[1:]:
        for word in row.split():
            assert not word.endswith("…") or word[:-1].rstrip(",;") in known


@pytest.mark.parametrize(
    ("paused", "words"),
    [
        ("soft", "paused: nothing new starts; 11 running and 1 frozen will finish; p unpauses"),
        ("hard", "frozen: 12 jobs keep 31.6 GiB; p unpauses"),
    ],
)
def test_a_pause_says_what_it_does_to_how_many_and_how_it_ends(paused: ev.Paused, words: str) -> None:
    state = builds.governed(level=ev.LevelSet("auto", 16, paused)).state
    held = sum(job.rss for job in state.jobs.values())
    assert held < state.memory.build  # ninja and what waits on deck hold some of it, and are not frozen

    def shown(width: int, *, read_only: bool = False) -> str:
        m = at(state, read_only=read_only)
        return "\n".join(map(text_of, dashboard_page.banner(m, width, 24, UNICODE)))

    assert words in shown(80)
    assert words.rpartition(";")[0] in shown(80, read_only=True)
    assert "unpauses" not in shown(80, read_only=True)
    assert words.startswith(shown(40).removeprefix("! ").rstrip())


def test_frozen_jobs_take_nothing_more_from_the_first_frame_on() -> None:
    state = builds.governed().state
    assert still_to_come(state)
    assert not still_to_come(replace(state, level=replace(state.level, paused="hard")))


def test_what_is_to_come_is_what_each_job_is_expected_to_take_until_the_engine_sums_it_up() -> None:
    state = builds.governed(1, 0).state
    jobs = {1: replace(state.jobs[1], rss=30, expected=412)}
    assert still_to_come(replace(state, jobs=jobs, memory=replace(state.memory, promised=0))) == 382


def test_compilers_without_a_scheduler_have_one_line_also_between_two_of_them() -> None:
    state = loose(builds.governed(0, 0).state)

    def shown(compilers: dict[str, int]) -> str:
        now = replace(state, level=replace(state.level, ungoverned=compilers))
        return text_of(meters.meters(at(now), 100, UNICODE, 6)[-1]).rstrip()

    assert shown({}).endswith("not governed: no ninja or make")
    assert shown({"cc1plus": 1}).endswith("not governed: no ninja or make  1 cc1plus runs")
    lines = map(text_of, dashboard_page.dashboard(at(state), 120, 40, UNICODE, JobView(), []))
    assert any(line.startswith("       0 │") for line in lines)


def test_a_failure_is_named_while_the_build_goes_on() -> None:
    story = builds.running()
    for name in ("obj/linkValidate.cpp.o", "obj/other.cpp.o"):
        story.add(builds.NOW, ev.FailureFound(name, "c++ -c", 1, ("error",), 0, 10))

    def shown(state: BuildState) -> str:
        return "\n".join(map(text_of, dashboard_page.banner(at(state), 80, 24, UNICODE)))

    assert "obj/linkValidate.cpp.o and 1 more failed; f shows why" in shown(story.state)
    over = story.add(builds.NOW + 1, ev.BuildEnded("failed", 1, "")).state
    assert "linkValidate" not in shown(over)


def test_after_a_failure_with_which_ninja_stops_the_page_says_what_will_not_run() -> None:
    story = builds.governed(3, 8)
    started = next(r for r in story.records if isinstance(r.event, ev.SchedulerStarted))
    index = story.records.index(started)
    assert isinstance(started.event, ev.SchedulerStarted)
    story.records[index] = replace(started, event=replace(started.event, failures=1))
    story.add(builds.NOW, ev.FailureFound("obj/linkValidate.cpp.o", "c++ -c", 1, ("error",), 0, 10))
    story.add(builds.NOW, ev.JobFinished(1, 1, "obj/linkValidate.cpp.o", "cxx", 4.0, "failed"))
    state = replace(story.state, estimate=None)

    def shown(width: int) -> str:
        return "\n".join(map(text_of, dashboard_page.banner(at(state), width, 24, UNICODE)))

    assert "✗ obj/linkValidate.cpp.o failed; ninja finishes what runs and stops; f shows why" in shown(100)
    assert "failed; ninja stops; f shows why" in shown(60)
    assert "link…p.o failed; ninja stops" in shown(40)
    line = text_of(header.progress(at(state), 100, UNICODE))
    assert "1 failed  5372 will not run" in line
    assert not_started_text(state) == "5372 will not run"
    assert "ETA" not in line


def test_after_a_kill_with_which_ninja_stops_the_rest_waits_for_the_next_attempt() -> None:
    story = builds.Story().add(5, ev.StepStarted(1, 1, "", ("ninja",), 99))
    story.add(5, ev.SchedulerStarted(1, "ninja", 100, "/src", "1.13.2", 8, failures=1))
    story.add(6, ev.SchedulerPlanned(1, 20, "dry-run"), ev.Estimated(60.0, 30.0, 90.0))
    story.add(7, *(ev.JobStarted(n, 1, 5000 + n, f"{n}.o", "cxx", builds.START + 7) for n in (1, 2, 3)))
    story.add(8, ev.JobKilled("1.o", "shed", 1 << 30, 1), ev.JobFinished(1, 1, "1.o", "cxx", 1, "failed", 1 << 30))
    assert not_started_text(story.state) == "17 wait for the next attempt", "as soon as ninja starts nothing more"
    state = story.add(9, ev.JobFinished(3, 1, "3.o", "cxx", 0.0, "dropped")).state
    line = text_of(header.progress(at(state), 100, UNICODE))
    assert "1 to run again  18 wait for that" in line
    assert "ETA once it runs again" in line
    assert "18 wait  " in text_of(header.progress(at(state), 60, UNICODE))
    counted = status_of(state, builds.START + 9)["progress"]
    assert (counted["will_not_run"], counted["next_attempt"]) == (0, 18)
    error = ev.FailureFound("2.o", "c++ -c", 1, ("error",), 0, 10)
    state = story.add(10, error, ev.JobFinished(2, 1, "2.o", "cxx", 4.0, "failed")).state
    line = text_of(header.progress(at(state), 100, UNICODE))
    assert "18 will not run" in line
    assert "wait" not in line
    assert "ETA" not in line
    assert not_started_text(state) == "18 will not run"


def test_nothing_that_runs_cannot_be_frozen() -> None:
    state = builds.governed(0, 3, level=ev.LevelSet("auto", 16, "hard")).state
    state = replace(state, jobs={jid: job for jid, job in state.jobs.items() if job.state == "on_deck"})
    page = dashboard_page.banner(at(state), 80, 24, UNICODE)
    assert text_of(page[0]).startswith("! frozen: nothing runs and nothing starts; p unpauses")


def test_a_killed_job_is_not_said_to_have_failed_and_not_failed_in_one_line() -> None:
    state = builds.stopped_some().state
    marks = {mark_text(state, death.output) for death in state.killed}
    assert marks == {
        "stopped to free memory; the build tool calls that a failure",
        "killed by ann; the build tool calls that a failure",
    }


@pytest.mark.parametrize(
    ("rows_of_tree", "words"),
    [
        ([(0, "sh"), (1, "g++"), (2, "cc1plus")], "12 (cc1plus), below its shell 10"),
        ([(0, "sh"), (1, "g++")], "11 (g++), below its shell 10"),
        ([(0, "g++"), (1, "cc1plus")], "11 (cc1plus)"),
        ([(0, "sh")], "10 (sh)"),
        ([], "10, the job's first process"),
    ],
)
def test_the_pid_is_that_of_the_compiler(rows_of_tree: list[tuple[int, str]], words: str) -> None:
    job = replace(builds.governed(1, 0).state.jobs[1], pid=10, phase="cc1plus")
    tree = ProcessTree(0.0, tuple(ProcessRow(10 + n, depth, name) for n, (depth, name) in enumerate(rows_of_tree)))
    lines = [text_of(line) for line in details(job, builds.governed().state, builds.START, 70, UNICODE, tree)]
    assert next(line for line in lines if line.startswith("pid")).split(maxsplit=1)[1] == words


def test_the_first_seconds_claim_no_time_left() -> None:
    def left(low: float, high: float) -> str:
        return left_text(replace(builds.governed().state, estimate=Estimate(7, low, high, builds.NOW)), builds.NOW)

    assert left(2.1, 25.1) == LEARNING
    assert left(5.0, 25.1) != LEARNING
    assert left(60, 900) != LEARNING


def test_the_signs_of_the_timeline_are_explained_where_there_is_room() -> None:
    def page(height: int) -> str:
        return "\n".join(map(text_of, timeline_page.timeline(at(builds.governed().state), 80, height, UNICODE)))

    signs = "· job started or held  ‖ frozen  † stopped for memory  ▸ a person"
    assert signs in page(23)
    assert signs not in page(15)


@pytest.mark.parametrize("width", range(40, 201, 10))
def test_the_sizes_of_the_memory_stand_whole(width: int) -> None:
    legend = text_of(meters.meters(at(builds.governed().state), width, UNICODE, 6)[1]).rstrip()
    assert legend.endswith((" free", "budget"))


def test_stoker_itself_goes_by_one_name() -> None:
    state = builds.governed().state
    said = [line for _, line in GoverningReporter().decisions(state, builds.NOW)]
    assert not any("governor" in line for line in said)
    assert any(line.startswith("freeze ") for line in said)


@pytest.mark.parametrize(
    ("why", "shown"),
    [
        ("needs up to 4.6 GiB within 2:10, 614 MiB unpromised above the reserve", "too little memory"),
        (
            "too little memory; it holds 1.2 GiB and needs up to 4.6 GiB, 614 MiB left above the reserve",
            "too little memory ",
        ),
        (
            "running jobs go first; it holds 1 GiB and needs up to 4 GiB, 614 MiB left above the reserve for them",
            "running jobs go first ",
        ),
        (
            "614 MiB left, too little for one more second: 9 MiB must remain and 2 jobs can add up to 1 GiB per second",
            "too little memory",
        ),
        ("614 MiB left, below the floor of 1.3 GiB; nothing starts until there is more", "too little memory"),
        ("7.2 MiB too little for the oldest job to reach its peak", "too little memory"),
        ("would have to be stopped at once: 7.2 MiB too little for the oldest job", "would have to be stopped at once"),
        (
            "memory is kept for what runs, and for those before it; 614 MiB above the reserve",
            "memory kept for what runs",
        ),
    ],
)
def test_a_row_has_no_sizes_of_an_earlier_moment_beside_those_of_now(why: str, shown: str) -> None:
    row = rows(waiting("memory", why), 120)[-1]
    assert shown in row
    assert "614" not in row
    assert "7.2" not in row


def test_a_short_row_says_that_a_job_would_stop_at_once() -> None:
    row = rows(waiting("memory", "would have to be stopped at once: 7.2 MiB too little for the oldest job"), 80)[-1]
    assert "would stop at once" in row


def test_jobs_of_one_name_in_two_folders_are_told_apart_in_reasons() -> None:
    story = builds.governed(2, 2)
    jobs = {**story.state.jobs, 1: replace(story.state.jobs[1], output="a/x.o")}
    why = "memory is kept for a/x.o, and for what runs; 614 MiB left above the reserve"
    jobs[4] = replace(jobs[4], waits=why, waits_for="room")
    assert "kept for x.o" in rows(replace(story.state, jobs=jobs), 80)[-1]
    both = {**jobs, 2: replace(jobs[2], output="b/x.o")}
    assert "kept for a/x.o" in rows(replace(story.state, jobs=both), 80)[-1]


@pytest.mark.parametrize(
    ("waits", "shown"),
    [
        ("memory is kept for src/kernel_42_big.cpp.o, and for what runs; 0 B unused", "kept for kernel_42_big "),
        ("memory is kept for src/kernel_43_of_a_long_name.cpp.o, and for what runs", "kept for kernel_43_of_a… "),
        (
            "its size is a guess: ~434 MiB; after SPIRV/SpvPostProcessing.cpp.o, as such jobs",
            "after SpvPostProcessing ",
        ),
        ("its size is a guess: ~434 MiB; after glslangIntermediateLink.cpp.o, as such jobs", "after glslang"),
        ("src/kernel_07_big.cpp.o runs alone once 2 jobs have ended", "alone: waits for 2 "),
        ("src/kernel_42_big.cpp.o runs alone once 1 job has ended", "kernel_42_big runs alone "),
        ("everything is frozen until somebody unpauses the build", "everything is frozen "),
    ],
)
def test_a_short_reason_tells_whom_a_job_waits_for(waits: str, shown: str) -> None:
    jobs = dict(builds.governed(2, 2).state.jobs)
    outputs = ("kernel_42_big.cpp.o", "kernel_43_of_a_long_name.cpp.o", "kernel_44_big.cpp.o", "kernel_07_big.cpp.o")
    for jid, output in enumerate(outputs, 1):
        jobs[jid] = replace(jobs[jid], output=f"src/{output}")
    jobs[4] = replace(jobs[4], waits=waits, waits_for="room")
    state = replace(builds.governed(2, 2).state, jobs=jobs)
    row = next(row for row in rows(state, 80) if "kernel_07" in row)
    assert shown in row


def test_a_reason_with_figures_says_how_old_it_is() -> None:
    state = builds.governed(3, 30).state
    waiting = state.jobs[4]
    lines = [text_of(line) for line in table(at(state), 120, 20, JobView(cursor=waiting.jid), UNICODE)]
    assert any(" waits: " in line and "614 MiB unpromised above the reserve (as of 1:08 ago)" in line for line in lines)
    box = "\n".join(map(text_of, details(waiting, state, builds.START + builds.NOW, 120, UNICODE)))
    assert "(as of 1:08 ago)" in box
    box = "\n".join(map(text_of, details(waiting, state, builds.START + 3657, 120, UNICODE)))
    assert "ago)" not in box


@pytest.mark.parametrize("why", ["all 3 places are taken", "obj/k7.cpp.o runs alone once 2 jobs have ended"])
def test_a_reason_without_a_figure_that_changes_has_no_age(why: str) -> None:
    """Beside one that is still true, an age asks whether it is."""
    state = builds.governed(3, 30).state
    job = replace(state.jobs[4], waits=why, waits_for="place")
    box = "\n".join(map(text_of, details(job, state, builds.START + builds.NOW + 60, 120, UNICODE)))
    assert why in box
    assert "ago)" not in box


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_the_remaining_time_is_whole_in_every_width(width: int) -> None:
    line = text_of(header.progress(at(builds.stopped_some().state), width, UNICODE))
    assert len(line.rstrip()) <= width
    assert re.search(r"ETA \d+ min", line), line
    assert ("to run again" in line) == (width > 40)
