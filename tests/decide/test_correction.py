"""The common ratio of a build to what was expected of it."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from stoker.decide.memory.correction import OUTLIER, Correction


def after(ratios: list[float], doubt: float = 0.15) -> Correction:
    correction = Correction(doubt)
    for ratio in ratios:
        correction.add(math.log(100 * ratio), math.log(100))
    return correction


def test_nothing_seen_is_nothing_corrected() -> None:
    assert (after([]).shift, after([]).left) == (0.0, 0.15)


def test_one_job_says_little_and_many_that_agree_say_all() -> None:
    one, many = after([1.5]), after([1.5] * 60)
    assert 0 < one.shift < 0.4 * math.log(1.5)
    assert abs(many.shift - math.log(1.5)) < 0.03
    assert many.left < 0.5 * one.left


def test_jobs_that_disagree_say_little() -> None:
    quarrel = after([8.0, 0.25, 4.0, 0.125, 16.0, 0.5] * 3)
    assert abs(quarrel.shift) < 0.2
    assert quarrel.scatter > 1.0


def test_one_job_gone_wild_moves_nothing_much() -> None:
    assert abs(after([1.0] * 30 + [1e9]).shift) < 0.1


@given(st.lists(st.floats(-1e6, 1e6), max_size=300), st.floats(0.05, 2))
def test_whatever_was_seen_the_figures_are_sane(ratios: list[float], doubt: float) -> None:
    correction = Correction(doubt)
    for ratio in ratios:
        correction.add(ratio, 0.0)
    assert abs(correction.shift) <= OUTLIER + 0.02
    assert 0 <= correction.left <= doubt + 0.02
    assert 0 <= correction.scatter <= 2 * OUTLIER
