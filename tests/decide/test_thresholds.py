"""Reserve and floor: stoker's own measure, a person's share or size, and what keeps a small machine building."""

from __future__ import annotations

import pytest

from stoker.decide.policy.thresholds import Amount, Thresholds

MIB, GIB = 2**20, 2**30


@pytest.mark.parametrize(
    ("budget", "reserve", "floor"),
    [(64 * GIB, 0.06 * 64 * GIB, 0.02 * 64 * GIB), (2 * GIB, 192 * MIB, 0.04 * 2 * GIB), (GIB, 0.1 * GIB, 0.04 * GIB)],
)
def test_stokers_own_measure_grows_with_the_machine(budget: float, reserve: float, floor: float) -> None:
    assert Thresholds().reserve_of(budget) == pytest.approx(reserve)
    assert Thresholds().floor_of(budget) == pytest.approx(floor)


def test_a_share_is_of_the_budget_and_a_size_is_itself() -> None:
    found = Thresholds(reserve=Amount(share=0.25), floor=Amount(size=GIB))
    assert (found.reserve_of(16 * GIB), found.floor_of(16 * GIB)) == (4 * GIB, GIB)
    assert (str(found.reserve), str(found.floor)) == ("25 %", "1.0 GiB")


def test_sizes_for_a_large_machine_leave_something_to_build_with_on_a_small_one() -> None:
    found = Thresholds(reserve=Amount(size=64 * GIB), floor=Amount(size=64 * GIB))
    assert found.reserve_of(8 * GIB) == pytest.approx(0.9 * 8 * GIB)
    assert found.floor_of(8 * GIB) == 4 * GIB


def test_promises_never_reach_below_the_floor() -> None:
    assert Thresholds(floor=Amount(share=0.2)).reserve_of(10 * GIB) == 2 * GIB
