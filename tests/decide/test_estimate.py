"""The time left: a rule of three over expected seconds, bounded by who waits for whom; and a band around it."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.decide.time_left.durations import Class, Durations, ExpectedJob, weight
from stoker.decide.time_left.estimate import (
    Left,
    PastEstimates,
    counted,
    longest_path,
    remainder,
    time_left,
    ways_to_end,
)
from stoker.model import events as ev
from stoker.model.lessons import Stated
from stoker.model.reduce import reduce
from stoker.model.state import BuildState

KNOWN = Class("history")


def left_of(*groups: list[float], held: float = 0.0) -> Left:
    """Jobs of so many seconds, by group."""
    left = Left()
    for number, jobs in enumerate(groups):
        for seconds in jobs:
            left.add(KNOWN, number, seconds, held)
    return left


def seconds(left: Left, deps: list[tuple[int, ...]], width: float, memory: float = float("inf")) -> float:
    return time_left(left, deps, Durations(), width=width, done=0.0, memory=memory).seconds


def test_nothing_left_takes_no_time() -> None:
    assert time_left(Left(), [()], Durations(), width=4, done=10.0) == ev.Estimated(0.0, 0.0, 0.0)


def test_many_jobs_share_the_places() -> None:
    assert seconds(left_of([1.0] * 400), [()], 4) == pytest.approx(100.0, rel=0.02)


def test_one_job_takes_as_long_as_it_takes() -> None:
    assert seconds(left_of([60.0]), [()], 64) == pytest.approx(60.0)


def test_a_link_comes_behind_all_that_it_links() -> None:
    assert seconds(left_of([10.0] * 40, [300.0]), [(), (0,)], 4) >= 400.0


def test_groups_that_do_not_wait_for_each_other_run_side_by_side() -> None:
    assert longest_path(left_of([10.0, 3.0], [20.0], [5.0]), [(), (), (0,)]) == 20.0


def test_the_way_to_the_end_is_that_of_the_longest_chain_behind() -> None:
    assert ways_to_end(left_of([10.0, 3.0], [20.0], [5.0], [1.0]), [(), (), (0,), (1, 2)]) == [6.0, 1.0, 1.0, 0.0]


def test_memory_may_be_what_binds() -> None:
    assert seconds(left_of([10.0] * 40, held=8.0), [()], 4, memory=8.0) == pytest.approx(400.0, rel=0.1)


@given(
    st.lists(st.lists(st.floats(0.01, 100), min_size=1, max_size=20), min_size=1, max_size=6),
    st.floats(1, 64),
    st.floats(0, 1e5),
)
def test_the_band_holds_the_middle_and_is_narrow_from_a_quarter_on(
    groups: list[list[float]], width: float, done: float
) -> None:
    left = left_of(*groups)
    deps = [tuple(range(n)) for n in range(len(groups))]
    found = time_left(left, deps, Durations(), width=width, done=done)
    assert 0.0 <= found.low <= found.seconds <= found.high
    assert found.high >= found.seconds + 1.0
    assert found.seconds >= longest_path(left, deps) * 0.999
    assert found.seconds >= left.seconds / width * 0.999
    if done >= left.seconds / 3 and found.seconds >= 4.0:
        assert found.high <= 2.001 * found.low


def test_the_band_narrows_as_jobs_of_the_class_end() -> None:
    widths = []
    durations = Durations()
    for _ in range(3):
        left = Left()
        for _ in range(100):
            left.add(Class("size", "cxx", "d"), 0, 1.0, 0.0)
        found = time_left(left, [()], durations, width=1, done=0.0)
        widths.append(found.high / found.low)
        for _ in range(20):
            durations.add(weight("cxx", "d/a.o"), "cxx", "d/a.o", 1.0)
    assert widths == sorted(widths, reverse=True)
    assert widths[0] > 1.5 * widths[-1]


def test_the_band_is_wider_where_earlier_estimates_were_off() -> None:
    left, right, wrong = left_of([1.0] * 100), PastEstimates(), PastEstimates()
    for clock in range(0, 100, 5):
        right.add(clock, 200.0 - clock)  # so it was, if 100 s are left now
        wrong.add(clock, 30.0)
    good, bad = (
        time_left(left, [()], Durations(), width=1, done=100.0, off=partial(past.off, 100.0)) for past in (right, wrong)
    )
    assert good.high <= 2.001 * good.low
    assert good.seconds == bad.seconds
    assert 3.0 * bad.low < bad.high <= 4.001 * bad.low


def test_past_estimates_are_thinned_out() -> None:
    few, many = PastEstimates(), PastEstimates()
    for clock in range(0, 1000, 40):
        few.add(clock, 500.0)
    for clock in range(1000):
        many.add(clock, 500.0)
    assert many.off(1000.0, 100.0) == pytest.approx(few.off(1000.0, 100.0), rel=0.1)
    assert PastEstimates().off(10.0, 10.0) == 0.0


def test_a_job_that_has_outlived_its_expectation_goes_on_for_a_while() -> None:
    job = ExpectedJob(10.0, KNOWN)
    assert remainder(job, 4.0, Durations()) == pytest.approx(6.0)
    assert 0.0 < remainder(job, 30.0, Durations()) < 30.0


# -- without a graph ---------------------------------------------------------------------------------------------------


def state_of(*events: ev.Event) -> BuildState:
    state = BuildState()
    for seq, event in enumerate(events, start=1):
        state = reduce(state, ev.Record(seq, 0.0, event))
    return state


def test_percent_go_on_as_they_did() -> None:
    state = state_of(
        ev.SchedulerStarted(1, "make", 1, "/b", "4.3", 4), ev.SchedulerPlanned(1, None, "percent", percent=25.0)
    )
    found = counted(state, 100.0)
    assert found is not None
    assert found.seconds == 300.0
    assert found.low < 300.0 < found.high


def test_jobs_are_counted_where_only_their_number_is_known() -> None:
    state = state_of(
        ev.SchedulerStarted(1, "samurai", 1, "/b", "1", 4),
        ev.SchedulerPlanned(1, 10, "status"),
        *(ev.JobFinished(None, 1, f"{n}.o", "cxx", 1.0, "ok") for n in range(4)),
    )
    found = counted(state, 20.0)
    assert found is not None
    assert found.seconds == pytest.approx(30.0)


@pytest.mark.parametrize("total", [None, 10])
def test_nothing_is_told_before_anything_is_done(total: int | None) -> None:
    state = state_of(ev.SchedulerStarted(1, "samurai", 1, "/b", "1", 4), ev.SchedulerPlanned(1, total, "status"))
    assert counted(state, 20.0) is None
    assert counted(BuildState(), 20.0) is None


def test_a_scheduler_inside_a_job_of_another_is_a_part_of_that() -> None:
    state = state_of(
        ev.SchedulerStarted(1, "samurai", 1, "/b", "1", 4),
        ev.SchedulerPlanned(1, 2, "status"),
        ev.JobFinished(None, 1, "a.o", "cxx", 1.0, "ok"),
        ev.SchedulerStarted(2, "make", 2, "/b/sub", "4.3", 4, parent=1),
    )
    found = counted(state, 20.0)
    assert found is not None
    assert found.seconds == pytest.approx(20.0)


def test_stated_seconds_are_taken_as_they_are_until_jobs_say_otherwise() -> None:
    durations = Durations()
    assert durations.seconds(ExpectedJob(10.0, KNOWN)) == 10.0
    for _ in range(10):
        durations.add(Stated("history", 10.0), "cxx", "a.o", 30.0)
    durations.update(())
    assert durations.seconds(ExpectedJob(10.0, KNOWN)) == pytest.approx(30.0, rel=0.1)
