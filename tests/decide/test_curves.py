"""Memory curves: what is held when, and what is left of a curve once it is simplified."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.decide.memory.curves import Curve, Point, flat, simplified

CURVE = Curve((Point(0, 100, "cudafe++"), Point(10, 300, "cicc"), Point(10, 50, "cicc"), Point(30, 150, "ptxas")))


@pytest.mark.parametrize(("age", "size"), [(-1, 0), (0, 100), (5, 200), (10, 50), (20, 100), (30, 150), (31, 0)])
def test_value_lies_on_straight_lines_between_points_and_nothing_is_held_outside_the_life(
    age: float, size: float
) -> None:
    assert CURVE.value(age) == size


def test_largest_sees_a_peak_between_its_ends() -> None:
    assert CURVE.largest(0, 5) == 200
    assert CURVE.largest(5, 20) == 300
    assert CURVE.largest(11, 12) == pytest.approx(60)


def test_still_forgets_what_is_past() -> None:
    assert CURVE.still(0) == 300
    assert CURVE.still(11) == 150
    assert CURVE.still(40) == 0


def test_scaling_multiplies_sizes_and_ages_and_keeps_the_passes() -> None:
    scaled = CURVE.scaled(size=2, time=3)
    assert (scaled.peak, scaled.peak_age, scaled.duration) == (600, 30, 90)
    assert [p.phase for p in scaled.points] == [p.phase for p in CURVE.points]


def test_a_pass_is_found_where_it_is_nearest() -> None:
    twice = Curve((Point(0, 1, "cc1plus"), Point(5, 1, "cicc"), Point(50, 1, "cc1plus"), Point(60, 1, "cc1plus")))
    assert twice.phase_span("cc1plus", 3) == (0, 5)
    assert twice.phase_span("cc1plus", 40) == (50, 60)
    assert twice.phase_span("ld", 3) is None


def test_a_life_repeated_has_its_peak_each_time_and_ends_later() -> None:
    twice = CURVE.repeated(2)
    assert (twice.peak, twice.duration) == (300, 60)
    assert [twice.largest(start, start + 29) for start in (0, 31)] == [300, 300]
    assert twice.value(45) == CURVE.value(15)
    assert CURVE.repeated(1) is CURVE
    assert len(CURVE.repeated(16).points) <= 48


@pytest.mark.parametrize("points", [(), (Point(5, 1), Point(3, 1))])
def test_a_curve_without_points_or_out_of_order_is_refused(points: tuple[Point, ...]) -> None:
    with pytest.raises(ValueError, match="order of their ages"):
        Curve(points)


sizes = st.lists(st.floats(0, 1e10), min_size=2, max_size=80)


@given(sizes, st.integers(4, 20))
def test_simplified_keeps_ends_and_peak_and_invents_nothing(measured: list[float], limit: int) -> None:
    points = [Point(float(i), size) for i, size in enumerate(measured)]
    kept = simplified(points, limit)
    assert len(kept) <= max(limit, 3)
    assert set(kept) <= set(points)
    assert (kept[0], kept[-1]) == (points[0], points[-1])
    assert max(p.size for p in kept) == max(measured)


def test_simplified_drops_what_lies_on_a_line_first() -> None:
    points = [Point(float(i), 100.0 * min(i, 20)) for i in range(41)]
    assert simplified(points, 3) == (points[0], points[20], points[40])


def test_flat_holds_the_same_all_along() -> None:
    assert [flat(7, 10).value(age) for age in (0, 5, 10)] == [7, 7, 7]
