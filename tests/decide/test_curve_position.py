"""Where a running job stands: judged by its memory and its pass, not by its age alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from decide.builds import GIB, curve, kernel, live
from stoker.decide.memory.curves import Curve, Point
from stoker.decide.policy.curve_position import locate


def test_a_job_that_does_what_is_expected_stands_at_its_age() -> None:
    for age in (15, 30, 55, 100, 170):
        assert locate(live(1, kernel(), age)).position == pytest.approx(age, rel=0.05)


def test_a_slow_job_has_its_climb_still_before_it() -> None:
    job = live(1, kernel(), 50, rss=2.0)
    standing = locate(job)
    assert standing.position == pytest.approx(10 + 50 * (2.0 - 0.8) / 5.2, rel=0.01)
    assert standing.pace < 1


def test_a_job_larger_than_expected_is_expected_to_grow_on() -> None:
    unsure = curve((0, 0.1), (10, 0.8), (60, 6.0), (62, 2.0), (180, 2.0), spread=0.2)
    standing = locate(live(1, unsure, 60, rss=7.0))
    assert standing.scale * unsure.still(standing.position) > 7.0 * GIB


def test_a_fall_shows_that_the_peak_is_past_whatever_the_age_says() -> None:
    early = replace(live(1, kernel(), 30, rss=1.5), peak_rss=4.5 * GIB, peak_age=28.0)
    standing = locate(early)
    assert standing.position >= 62
    assert standing.scale == pytest.approx(0.75)
    assert standing.curve.still(standing.position) * standing.scale < 2 * GIB


def test_the_small_fall_before_the_climb_is_not_taken_for_the_peak() -> None:
    job = replace(live(1, kernel(), 11, rss=0.1), peak_rss=0.85 * GIB, peak_age=9.0)
    assert locate(job).position < 60


def test_the_shell_that_is_left_after_its_compiler_needs_nothing_more() -> None:
    rises = curve((0, 0.01), (10, 0.16), spread=0.3)
    compiling = replace(live(1, rises, 9), peak_rss=0.16 * GIB, peak_age=9.0)
    left = replace(compiling, rss=64 * 1024.0, phase="sh")
    assert locate(left).curve.peak == left.rss
    for other in ({"phase": "nvcc"}, {"peak_rss": 0.05 * GIB}, {"rss": 0.01 * GIB}):  # another pass may follow
        assert locate(replace(left, **other)).curve == rises


def test_the_pass_says_more_than_the_age() -> None:
    passes = ((0, 0.3, "cudafe++"), (20, 0.3, "cicc"), (60, 4, "cicc"), (80, 0.5, "ptxas"), (120, 0.5, "ptxas"))
    shape = Curve(tuple(Point(age, size * GIB, phase) for age, size, phase in passes))
    assert locate(replace(live(1, shape, 25, rss=0.3), phase="cudafe++")).position <= 20
    assert locate(replace(live(1, shape, 70, rss=0.5), phase="ptxas")).position >= 80


def test_a_job_that_outlives_its_curve_stays_as_it_is_for_a_while() -> None:
    standing = locate(live(1, kernel(), 500, rss=2.5))
    assert standing.curve.still(0) == 2.5 * GIB
    assert standing.curve.duration == pytest.approx(25)


def test_a_job_without_any_memory_yet_stands_at_its_beginning() -> None:
    assert locate(live(1, kernel(), 0.5, rss=0.0)).position <= 2.5
