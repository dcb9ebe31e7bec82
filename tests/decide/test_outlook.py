"""Sums of expectations over time: who fits beside whom, and when."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decide.builds import GIB, curve, kernel, light
from stoker.decide.memory.outlook import EDGES, SLOTS, PromisedMemory, Standing, from_birth, outlook


def test_the_outlook_of_a_sure_job_is_its_curve() -> None:
    shape = kernel()
    seen = from_birth(shape)
    for slot, size in enumerate(seen.mean):
        assert size == pytest.approx(shape.largest(EDGES[slot], EDGES[slot + 1]))
    assert set(seen.variance) == {0.0}
    assert EDGES[len(seen.mean) - 1] < shape.duration <= EDGES[len(seen.mean)]


def test_a_job_past_its_peak_is_expected_to_hold_only_its_tail() -> None:
    seen = outlook(Standing(kernel(peak=6, tail=2), position=70))
    assert max(seen.mean) == pytest.approx(2 * GIB)


def test_a_slower_pace_moves_the_peak_away() -> None:
    sure = outlook(Standing(kernel(), position=40, pace=1.0)).mean
    slow = outlook(Standing(kernel(), position=40, pace=0.5)).mean
    assert slow.index(max(slow)) > sure.index(max(sure))


def test_a_sleeping_job_reaches_its_peak_no_more_than_four_seconds_later() -> None:
    awake, asleep = Standing(kernel(), position=40), Standing(kernel(), position=40, awake=0.1)
    assert outlook(asleep).mean[3] == pytest.approx(kernel().value(40.4))
    assert outlook(asleep).peak == outlook(awake).peak
    assert outlook(awake).peak_slot < outlook(asleep).peak_slot
    assert EDGES[outlook(asleep).peak_slot] <= EDGES[outlook(awake).peak_slot + 1] + 4


def test_doubt_about_time_flattens_the_peak_and_shows_as_variance() -> None:
    sure, unsure = from_birth(kernel()), from_birth(curve(*SHAPE, time_spread=0.3))
    assert max(unsure.mean) < max(sure.mean)
    assert max(unsure.variance) > GIB**2


SHAPE = ((0.0, 0.1), (10.0, 0.8), (60.0, 6.0), (62.0, 2.0), (180.0, 2.0))


def test_two_kernels_fit_one_after_the_other_where_they_do_not_fit_together() -> None:
    promise = PromisedMemory(9 * GIB, caution=1)
    promise.add(from_birth(kernel(peak=6, tail=2)))
    second = from_birth(kernel(peak=6, tail=2))
    assert not promise.fits(second)
    slot = promise.earliest(second)
    assert slot is not None
    assert 0 < EDGES[slot] < 62
    assert promise.fits(second, slot)


def test_a_job_larger_than_the_capacity_never_fits() -> None:
    promise = PromisedMemory(4 * GIB, caution=1)
    assert promise.earliest(from_birth(kernel(peak=6))) is None


def test_what_is_held_until_a_slot_is_given_back_there() -> None:
    promise = PromisedMemory(10 * GIB, caution=1)
    promise.hold(8 * GIB, until=5)
    assert not promise.fits(from_birth(light(4)))
    assert promise.earliest(from_birth(light(4))) == 5


jobs = st.lists(st.tuples(st.floats(0.1, 8), st.floats(1, 300), st.floats(0, 0.4)), min_size=1, max_size=12)


@given(jobs, st.floats(1, 64))
def test_a_job_that_fits_keeps_every_slot_within_the_capacity(
    shapes: list[tuple[float, float, float]], gib: float
) -> None:
    promise = PromisedMemory(gib * GIB, caution=1.4)
    for peak, seconds, spread in shapes:
        job = from_birth(
            curve((0, peak / 4), (seconds / 2, peak), (seconds, peak / 2), spread=spread, time_spread=spread)
        )
        if promise.fits(job):
            promise.add(job)
    assert max(promise.upper(slot) for slot in range(SLOTS)) <= gib * GIB * (1 + 1e-9)
    assert promise.free() >= -1
