"""What a build's own jobs teach about those to come."""

from __future__ import annotations

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.decide.durations import MAX_FOLDERS, Typical, residual
from stoker.decide.pace import Pace, Source, Young


def taught(seconds: float, number: int = 50, folder: str = "a", tool: str = "cxx", pace: Pace | None = None) -> Pace:
    pace = pace or Pace()
    for _ in range(number):
        pace.add(tool, folder, seconds)
    return pace


def test_something_is_known_once_a_job_has_ended_or_every_tool_has_a_prior() -> None:
    pace = Pace()
    assert not pace.knows(["cxx", "link"])
    pace.suppose("cxx", 12.0)
    assert not pace.knows(["cxx", "link"])
    assert pace.knows(["cxx"])
    assert taught(1.0, 1).knows(["cxx", "link"])


def test_jobs_are_expected_to_take_what_others_like_them_took() -> None:
    assert taught(10.0).typical("cxx", "a").seconds == pytest.approx(10.0, rel=0.05)


def test_a_folder_counts_more_than_the_rest_of_the_tool() -> None:
    pace = taught(40.0, 5, "heavy", pace=taught(1.0, 50, "light"))
    assert pace.typical("cxx", "heavy").seconds > 30.0
    assert pace.typical("cxx", "light").seconds < 1.5
    assert 1.5 < pace.typical("cxx", "unseen").seconds < 40.0


def test_a_folder_that_nobody_has_seen_is_a_mean_of_folders_not_of_jobs() -> None:
    pace = taught(40.0, 10, "heavy", pace=taught(1.0, 1000, "light"))
    assert pace.typical("cxx", "unseen").seconds > 10.0


def test_a_prior_gives_way_to_what_was_seen() -> None:
    pace = Pace()
    pace.suppose("nvcc", 150.0)
    assert pace.typical("nvcc", "a").seconds == 150.0
    assert taught(20.0, 30, tool="nvcc", pace=pace).typical("nvcc", "a").seconds < 30.0


def test_a_tool_that_nobody_has_seen_is_judged_by_others() -> None:
    pace = taught(10.0)
    assert pace.typical("nvcc", "k").seconds > 30.0
    assert pace.typical("archive", "").seconds < 3.0


def test_running_jobs_count_before_they_end() -> None:
    """On a wide machine the first to end are the short ones."""
    pace = taught(2.0, 4)
    before = pace.typical("cxx", "a").seconds
    for _ in range(5):
        pace.watch([Young("cxx", "a", 60.0)] * 12)
    assert pace.typical("cxx", "a").seconds > 10 * before
    pace.watch([])
    assert pace.typical("cxx", "a").seconds == pytest.approx(before)


def test_jobs_that_have_just_begun_change_nothing() -> None:
    pace = taught(10.0)
    before = pace.typical("cxx", "a").seconds
    pace.watch([Young("cxx", "a", 0.0)] * 16)
    assert pace.typical("cxx", "a").seconds == pytest.approx(before)


def test_a_source_is_corrected_by_what_jobs_really_took() -> None:
    pace = Pace()
    for _ in range(40):
        pace.compare("log", "cxx", 30.0, 10.0)
    assert pace.corrected("log", "cxx").seconds == pytest.approx(1 / 3, rel=0.1)
    assert pace.corrected("log", "link").seconds < 0.5
    assert pace.corrected("history", "cxx").seconds == 1.0


def test_a_log_counts_the_clock_so_it_is_taken_to_be_of_times_like_these() -> None:
    pace = Pace()
    pace.speed = 0.25
    assert pace.corrected("log", "cxx").seconds == 0.25
    assert pace.corrected("history", "cxx").seconds == 1.0
    for _ in range(40):
        pace.compare("log", "cxx", 10.0, 10.0)
    assert pace.corrected("log", "cxx").seconds > 0.9


def test_a_correction_follows_a_machine_that_becomes_slower() -> None:
    pace = Pace()
    for ratio in (1.0, 3.0):
        for _ in range(200):
            pace.compare("log", "cxx", 10.0, 10.0 * ratio)
    assert pace.corrected("log", "cxx").seconds == pytest.approx(3.0, rel=0.1)


@pytest.mark.parametrize("source", ["log", "history", "class"])
def test_doubts_shrink_as_jobs_end_but_never_vanish(source: Source) -> None:
    pace = Pace()
    seen = [math.hypot(*pace.doubts(source, "cxx", "a").values())]
    for _ in range(3):
        for _ in range(20):
            pace.add("cxx", "a", 10.0)
            pace.compare("log", "cxx", 10.0, 10.0)
            pace.compare("history", "cxx", 10.0, 10.0)
        seen.append(math.hypot(*pace.doubts(source, "cxx", "a").values()))
    assert seen == sorted(seen, reverse=True)
    assert seen[-1] > 0.01


def test_a_log_that_has_proved_worthless_is_not_believed() -> None:
    """Such as one of a build whose jobs were stopped for most of the time that it counts."""
    dice = random.Random(1)
    pace = Pace()
    for _ in range(40):
        pace.add("cxx", "a", 10.0)
        pace.compare("log", "cxx", 10.0 * dice.lognormvariate(0.0, 2.0), 10.0)
        pace.compare("log", "nvcc", 100.0, 100.0)
    assert pace.distrusts("log", "cxx")
    assert not pace.distrusts("log", "nvcc")
    assert not pace.distrusts("log", "link")


def test_a_job_that_has_outlived_its_expectation_goes_on() -> None:
    whole = Typical(10.0, 0.5)
    left = [residual(whole, age).seconds for age in (0.0, 5.0, 20.0, 100.0, 1000.0)]
    assert left[0] == 10.0
    assert left[1] < 10.0
    assert left[2] < left[3] < left[4]


def test_what_is_left_of_a_certain_job_is_the_rest() -> None:
    assert residual(Typical(10.0, 0.0), 4.0) == Typical(6.0, 0.0)
    assert 0.0 < residual(Typical(10.0, 0.0), 10.5).seconds < 2.0


def test_what_is_left_is_the_mean_of_those_that_still_run() -> None:
    dice = random.Random(2)
    width = math.sqrt(math.log1p(0.8**2))
    durations = [dice.lognormvariate(math.log(10.0) - width**2 / 2, width) for _ in range(200_000)]
    for age in (2.0, 10.0, 30.0):
        rest = [d - age for d in durations if d > age]
        found = residual(Typical(10.0, 0.8), age)
        assert found.seconds == pytest.approx(statistics.mean(rest), rel=0.05)
        assert found.spread == pytest.approx(statistics.stdev(rest) / statistics.mean(rest), rel=0.15)


@given(st.floats(0.0, 1e6), st.floats(0.0, 1.5), st.floats(0.0, 1e7))
def test_what_is_left_is_never_negative(seconds: float, spread: float, age: float) -> None:
    found = residual(Typical(seconds, spread), age)
    assert 0.0 <= found.seconds < math.inf
    assert 0.0 <= found.spread < math.inf


def test_of_too_many_folders_those_are_forgotten_where_nothing_runs_any_more() -> None:
    pace = taught(10.0)
    for number in range(MAX_FOLDERS):
        pace.add("cxx", f"lib{number}", 1.0)
        pace.add("cxx", "large", 30.0)
    assert pace.has_run("cxx", "large")
    assert pace.has_run("cxx", f"lib{MAX_FOLDERS - 1}")
    assert not pace.has_run("cxx", "a")
    assert not pace.has_run("cxx", "lib0")
