"""Curves of running jobs: what is left when they end, and who teaches nothing."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.decide.memory.curve_recorder import BASE, GROWTH, KEPT, CurveRecorder
from stoker.decide.memory.curves import MAX_POINTS, Curve, Point

MIB = 2**20
GIB = 2**30


def recorded(samples: Sequence[tuple[float, float]], seconds: float = 100.0) -> tuple[Point, ...] | None:
    recorder = CurveRecorder()
    for age, size in samples:
        recorder.sample(1, age, size, "cc1plus")
    return recorder.finish(1, seconds)


def kernel(age: float) -> float:
    """nvcc: a climb to 6 GiB at 60 s, a fall, 2 GiB until 200 s."""
    return 0.1 * GIB * age if age <= 60 else 2 * GIB


def test_a_long_job_leaves_its_shape_in_a_few_points() -> None:
    points = recorded([(float(age), kernel(age)) for age in range(201)])
    assert points is not None
    assert len(points) <= MAX_POINTS
    curve = Curve(points)
    assert curve.peak == 6 * GIB
    assert curve.peak_age == 60
    assert curve.duration == pytest.approx(200, abs=1)
    assert max(abs(curve.value(age) - kernel(age)) for age in range(1, 60)) < 0.3 * GIB
    assert all(curve.value(age) == 2 * GIB for age in range(65, 200, 5))


def test_passes_are_kept() -> None:
    recorder = CurveRecorder()
    for age in range(30):
        recorder.sample(
            1, age, (10 - abs(10 - age)) * MIB + GIB, "cudafe++" if age < 5 else "a name of more than fifteen"
        )
    points = recorder.finish(1, 30.0)
    assert points is not None
    assert [points[0].phase, points[-1].phase] == ["cudafe++", "a name of more "]


def test_memory_is_bounded_however_long_a_job_runs() -> None:
    recorder = CurveRecorder()
    for step in range(20_000):
        recorder.sample(1, step * 0.25, (step * 7919) % 1000 * MIB, "ld")
        assert len(recorder._records[1].points) < KEPT
    points = recorder.finish(1, 5000.0)
    assert points is not None
    assert max(p.size for p in points) == 999 * MIB


def test_standing_still_adds_nothing_but_what_was_held() -> None:
    frozen = [(0.0, 1 * MIB), (1.0, 100 * MIB), *[(1.0, 120 * MIB)] * 50, (2.0, 150 * MIB), (3.0, 10 * MIB)]
    assert recorded(frozen) == recorded([(0.0, 1 * MIB), (1.0, 120 * MIB), (2.0, 150 * MIB), (3.0, 10 * MIB)])


@pytest.mark.parametrize(
    "samples",
    [
        pytest.param([(40.0, GIB), (41.0, GIB), (42.0, GIB)], id="no beginning"),
        pytest.param([(0.0, MIB), (1.0, GIB), (30.0, GIB), (31.0, GIB)], id="a gap"),
        pytest.param([], id="never seen, though it ran for long"),
    ],
)
def test_what_was_not_seen_is_not_taught(samples: list[tuple[float, float]]) -> None:
    assert recorded(samples) is None


def test_a_job_met_in_mid_life_teaches_nothing_even_if_its_age_is_small() -> None:
    recorder = CurveRecorder()
    recorder.adopted(1)
    recorder.sample(1, 0.5, MIB, "ld")
    assert recorder.finish(1, 9.0) is None
    recorder.sample(1, 0.5, MIB, "ld")
    assert recorder.finish(1, 0.9) is not None, "the number belongs to another job now"


def test_a_job_between_two_samples_was_small() -> None:
    never_seen = recorded([], seconds=0.5)
    assert never_seen is not None
    assert Curve(never_seen).duration == 0.5
    assert BASE < Curve(never_seen).peak <= BASE + GROWTH
    waited_on_deck = recorded([(0.0, MIB)] * 300, seconds=300.0)
    assert waited_on_deck is not None
    assert Curve(waited_on_deck).duration <= 1.0
    assert Curve(waited_on_deck).peak <= BASE + GROWTH


def test_one_sample_is_not_the_end_of_a_climb() -> None:
    points = recorded([(0.6, 80 * MIB)], seconds=1.1)
    assert points is not None
    assert 80 * MIB < Curve(points).peak < 300 * MIB
    assert 0.6 < Curve(points).duration < 2
    assert points[0].age == 0


def test_a_climb_goes_on_as_it_went_and_no_faster() -> None:
    """g++ at the end of a long job: 10 MiB a second, a sample every fifth of one."""
    points = recorded([(step / 5, (200 + 2 * step) * MIB) for step in range(100)])
    assert points is not None
    assert 398 * MIB < Curve(points).peak < 403 * MIB
    assert 19.8 < Curve(points).duration < 20.1


def test_a_dropped_job_is_forgotten() -> None:
    recorder = CurveRecorder()
    recorder.sample(1, 1.0, GIB, "ld")
    recorder.drop(1)
    recorder.drop(2)
    assert recorder.finish(1, 60.0) is None


@given(
    st.lists(st.tuples(st.floats(-1, 1e5), st.floats(-1, 1e12)), max_size=200),
    st.floats(0, 1e5),
)
def test_any_samples_give_a_curve_or_nothing(samples: list[tuple[float, float]], seconds: float) -> None:
    points = recorded(samples, seconds)
    if points is not None:
        curve = Curve(points)
        assert len(points) <= MAX_POINTS
        assert points[0].age == 0
        assert curve.duration > 0
        assert curve.peak >= max((size for _, size in samples), default=0.0)
