"""A first build: priors, drawn towards what finishes."""

from __future__ import annotations

import pytest

from stoker.decide.curves import Curve, Point
from stoker.decide.learn import PRIORS, Learner

GIB = 2**30


def measured(peak: float, seconds: float) -> tuple[Point, ...]:
    return (Point(0, peak / 2), Point(seconds * 0.7, peak), Point(seconds, peak / 3))


def test_before_anything_finished_the_prior_of_the_tool_speaks() -> None:
    learner = Learner()
    assert learner.expect("a/flash_fwd.cu.o", "nvcc").peak == pytest.approx(PRIORS["nvcc"].curve.peak)
    assert learner.expect("x", "no such tool").peak == pytest.approx(PRIORS["other"].curve.peak)


def test_finished_jobs_move_the_expectation_and_narrow_it() -> None:
    learner = Learner()
    before = learner.expect("unit_9.cpp.o", "cxx")
    for number in range(30):
        learner.observe(f"unit_{number}.cpp.o", "cxx", measured(3 * GIB, 60))
    after = learner.expect("unit_99.cpp.o", "cxx")
    assert after.peak == pytest.approx(3 * GIB, rel=0.15)
    assert after.duration == pytest.approx(60, rel=0.15)
    assert after.spread < before.spread
    assert after.bias < before.bias
    assert "30 like it" in after.source


def test_a_family_knows_its_own_and_strangers_stay_with_the_tool() -> None:
    learner = Learner()
    for number in range(10):
        learner.observe(f"flash_bwd_hdim{number}.o", "nvcc", measured(6 * GIB, 250))
        learner.observe(f"tiny_{number}.o", "nvcc", measured(0.5 * GIB, 10))
    large, small = learner.expect("flash_bwd_hdim999.o", "nvcc"), learner.expect("tiny_999.o", "nvcc")
    between = learner.expect("unheard_of.o", "nvcc")
    assert small.peak < between.peak < large.peak


def test_other_tools_learn_nothing_from_it() -> None:
    learner = Learner()
    before = learner.expect("a.o", "cxx")
    learner.observe("lib.so", "link", measured(30 * GIB, 100))
    assert learner.expect("a.o", "cxx") == before


def test_a_job_of_its_own_history_is_expected_to_do_the_same_again() -> None:
    own = Curve(measured(7 * GIB, 80), spread=0.1, source="history")
    learner = Learner(history={"src/a.o": own})
    assert learner.expect("src/a.o", "cxx") is own
    assert learner.expect("src/b.o", "cxx").source == "prior cxx"
