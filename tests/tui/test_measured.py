"""Figures that nobody measured are not shown: peaks of short jobs, expectations that follow the present."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from stoker.model import events as ev
from stoker.model.samples import JobSample
from stoker.model.state import BuildState, FinishedJob
from stoker.show.tui.pages import end_page, meters
from stoker.show.tui.pages.job_details import details, last_details
from stoker.show.tui.pages.job_list import JobView
from stoker.show.tui.pages.job_table import lately, of_expected, peak_text, table
from stoker.show.tui.pages.lines import text_of
from stoker.show.tui.terminal.glyphs import UNICODE

from . import builds
from .builds import GIB, MIB, START, Story
from .test_views import at

EARLY, NAME = START + builds.NOW - 100, "obj/a.cpp.o"


def story(expected: int = 5 * GIB) -> Story:
    """A governed build with one job, of which `expected` is what was predicted before it ran."""
    one = builds.governed(0, 0)
    return one.add(builds.NOW - 100, ev.JobStarted(70, 1, 7000, NAME, "cxx", EARLY, expected=expected, lasts=2.0))


def sampled(rss: int, state: str = "running") -> ev.Sampled:
    job = JobSample(70, rss, 90.0, "cc1plus", state)  # type: ignore[arg-type]
    return replace(builds.sampled(0), jobs=(job,))


def test_the_pid_is_that_of_the_process_in_the_column_before_it() -> None:
    """Whoever took it to strace had the shell beside the word cc1plus."""
    sample = sampled(GIB)
    working = replace(sample, jobs=(replace(sample.jobs[0], phase_pid=7004),))
    for event, pid in ((sample, "7000"), (working, "7004")):
        rows = table(at(story().add(builds.NOW, event).state), 120, 4, JobView(), UNICODE)
        assert f" cc1plus {pid} " in " ".join(" ".join(map(text_of, rows)).split())


@pytest.mark.parametrize(
    ("seconds", "text", "unseen"),
    [(0.9, "too short", "too short"), (1.9, "too short", "too short"), (2.0, "13.1 MiB+", "")],
)
def test_a_job_that_ran_for_less_than_two_looks_was_too_short_to_measure(
    seconds: float, text: str, unseen: str
) -> None:
    job = FinishedJob(NAME, "cxx", seconds, START, "ok", int(13.1 * MIB))
    assert peak_text(job) == text
    assert peak_text(replace(job, peak_rss=None)) == unseen


def ended(jobs: Sequence[FinishedJob], build_peak: int = 0) -> BuildState:
    """A build that is over, with these jobs as its heaviest and its slowest."""
    state = story().add(builds.NOW, ev.BuildEnded("done", 0, "")).state
    history = replace(state.history, heaviest=tuple(jobs), slowest=tuple(jobs))
    return replace(state, history=history, memory=replace(state.memory, build_peak=build_peak))


@pytest.mark.parametrize("width", [80, 120])
def test_a_job_that_was_seen_to_be_heavy_is_listed_however_short_it_was(width: int) -> None:
    """archive_ppmd7.c.o: 37.6 MiB in its row, `too short` among the heaviest jobs, 50.0 MiB in the report."""
    seen = [(1.5, 50, None), (9.0, 40, None), (0.8, 2, 30), (0.8, 2, None)]
    limits = [None if limit is None else limit * MIB for _, _, limit in seen]
    jobs = [
        FinishedJob(f"{n}.o", "cxx", took, START, "ok", mib * MIB, limit=limits[n])
        for n, (took, mib, _) in enumerate(seen)
    ]
    lines = [text_of(line) for line in end_page.summary(at(ended(jobs)), width, 24, UNICODE)]
    first = next(n for n, line in enumerate(lines) if line.startswith("heaviest jobs")) + 1
    listed = lines[first : first + 4]
    assert [line.split()[0] for line in listed] == ["0.o", "1.o", "2.o", "3.o"]
    for line, figure in zip(listed, ["50.0 MiB+", "40.0 MiB", "< 30 MiB", "too short"], strict=True):
        assert figure in line


@pytest.mark.parametrize("width", [40, 80, 120])
def test_heaviest_jobs_of_which_nothing_is_known_are_one_line_and_not_ten(width: int) -> None:
    """All of Mbed TLS: ten rows under `heaviest jobs`, each `too short`."""
    jobs = [FinishedJob(f"{n}.o", "cxx", 0.8, START, "ok", 2 * MIB) for n in range(10)]
    lines = [text_of(line) for line in end_page.summary(at(ended(jobs, 190 * MIB)), width, 24, UNICODE)]
    page = "\n".join(lines)
    assert page.count("too short") <= 1
    assert not any(line.startswith("heaviest jobs") for line in lines)
    assert any(line.startswith("slowest jobs") for line in lines)
    if width >= 80:
        assert "no job ran for over 1 s" in page
        assert "the build held 190 MiB at most" in page


def test_what_a_build_of_two_seconds_held_is_the_least_that_it_can_have_held() -> None:
    """nvcc on two small files: `at most 8.7 MiB by the build`, and one of its processes held 185 MiB."""
    state = ended([], 9 * MIB)
    state = replace(state, memory=replace(state.memory, used_peak=GIB))
    assert "at most 9.0 MiB by the build" in meters.most_memory(state)
    assert "9.0 MiB or more by the build" in meters.most_memory(replace(state, ended=state.started + 2.5))


def test_what_ended_lately_and_its_box_do_not_show_a_peak_that_nobody_measured() -> None:
    told = story().add(builds.NOW - 50, ev.JobFinished(70, 1, NAME, "cxx", 1.1, "ok", 3 * MIB))
    state = told.state
    assert "too short" in text_of(lately(state, 100, 2, UNICODE)[1])
    assert "too short" in text_of(lately(replace(state, level=replace(state.level, target=None)), 100, 2, UNICODE)[1])
    job = story().state.jobs[70]
    box = "\n".join(map(text_of, last_details(job, state, 80)))
    assert "3.0 MiB or more: too short to be measured" in box


@pytest.mark.parametrize(
    ("took", "peak", "box"), [(3.0, "46.7 MiB+", "or more: its memory"), (9.0, "46.7 MiB", "at most 46.7")]
)
def test_a_peak_says_whether_more_may_have_been_held_between_two_readings(took: float, peak: str, box: str) -> None:
    """A C file of libuv: 20 MiB were read in one build and 47 in the next."""
    told = story().add(builds.NOW - 50, ev.JobFinished(70, 1, NAME, "cxx", took, "ok", round(46.7 * MIB))).state
    (job,) = (job for job in told.history.recent if job.jid == 70)
    assert peak_text(job) == peak
    assert box in "\n".join(map(text_of, last_details(story().state.jobs[70], told, 80)))


def test_an_expectation_that_a_job_has_gone_beyond_is_raised_to_what_it_held() -> None:
    told = story(80 * MIB).add(builds.NOW, sampled(87 * MIB))
    job = told.state.jobs[70]
    assert of_expected(job, UNICODE) == "87.0/87+ MiB"
    box = "\n".join(map(text_of, details(job, told.state, START + builds.NOW, 80, UNICODE)))
    assert "87.0 MiB or more (87+ in the table): it holds more than was expected" in " ".join(box.split())
    assert "for about" not in box, "it has run for longer than that"
    job = told.add(builds.NOW + 1, sampled(40 * MIB)).state.jobs[70]
    assert of_expected(job, UNICODE) == "40.0/87+ MiB"
    job = story(200 * MIB).add(builds.NOW, sampled(87 * MIB)).state.jobs[70]
    assert of_expected(job, UNICODE) == "87.0/200 MiB"


def test_time_is_without_the_time_frozen_and_says_so() -> None:
    told = story().add(builds.NOW - 60, ev.JobMoved(70, "frozen")).add(builds.NOW - 20, ev.JobMoved(70, "running"))
    told.add(builds.NOW, sampled(GIB))
    state = told.state
    row = next(line for line in map(text_of, table(at(state), 120, 5, JobView(), UNICODE)) if NAME in line)
    assert " 1:00 " in row
    box = "\n".join(map(text_of, details(state.jobs[70], state, START + builds.NOW, 80, UNICODE)))
    assert "running for  1:00, and 0:40 frozen" in box
    over = told.add(builds.NOW, ev.JobFinished(70, 1, NAME, "cxx", 60.0, "ok", GIB)).state
    box = "\n".join(map(text_of, last_details(state.jobs[70], over, 80)))
    assert "took         1:00, and 0:40 frozen" in box
    ended = told.add(builds.NOW + 1, ev.BuildEnded("done", 0, "")).state
    (heavy,) = (replace(job, peak_rss=99 * GIB) for job in ended.history.slowest if job.output == NAME)
    ended = replace(ended, history=replace(ended.history, heaviest=(heavy,)))
    page = "\n".join(map(text_of, end_page.summary(at(ended), 120, 40, UNICODE)))
    assert "slowest jobs, minus time frozen" in page
    assert "heaviest jobs, minus time frozen" in page
    assert page.count(" peak") == 2, "the heads of both columns are whole"


@pytest.mark.parametrize(
    ("phase", "output", "word"), [("cc1", "a.o", "cc"), ("as", "a.c.o", "cc"), ("cc1plus", "a.o", "c++")]
)
def test_what_compiles_c_is_not_called_a_cxx_compiler(phase: str, output: str, word: str) -> None:
    """All files of a C library were shown as compiled by c++, in the table, the job's box and at the end."""
    one = builds.governed(0, 0)
    one.add(builds.NOW - 100, ev.JobStarted(70, 1, 7000, output, "cxx", EARLY))
    one.add(builds.NOW, replace(builds.sampled(0), jobs=(JobSample(70, GIB, 90.0, phase),)))
    assert word in text_of(table(at(one.state), 80, 4, JobView(70), UNICODE)[1]).split()
    box = [text_of(line).split() for line in details(one.state.jobs[70], one.state, START + builds.NOW, 60, UNICODE)]
    assert ["tool", word, phase] in [line[:3] for line in box]
    one.add(builds.NOW, ev.JobFinished(70, 1, output, "cxx", 100.0, "ok", GIB))
    assert word in text_of(lately(one.state, 80, 2, UNICODE)[1]).split()
    one.add(builds.NOW, ev.BuildEnded("done", 0, ""))
    assert any(word in text_of(line).split() for line in end_page.summary(at(one.state), 80, 24, UNICODE))
