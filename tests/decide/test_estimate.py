"""The time left: a rule of three over expected seconds, bounded by who waits for whom; and a band around it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.decide.time_left.durations import Class, ExpectedJob
from stoker.decide.time_left.estimate import Left, counted, longest_path, time_left, ways_to_end
from stoker.model import events as ev
from stoker.model.reduce import reduce
from stoker.model.state import BuildState

KNOWN, UNKNOWN = ExpectedJob(1.0, Class("history")), ExpectedJob(1.0, Class("size", "cxx", "d"))


def left_of(*groups: list[float], held: float = 0.0, job: ExpectedJob = KNOWN) -> Left:
    """Jobs of so many seconds, by group."""
    left = Left()
    for number, jobs in enumerate(groups):
        for seconds in jobs:
            left.add(job, number, seconds, held)
    return left


def seconds(left: Left, deps: list[tuple[int, ...]], width: float, memory: float = float("inf")) -> float:
    return time_left(left, deps, width=width, done=0.0, ended=99, memory=memory).seconds


def test_nothing_left_takes_no_time() -> None:
    assert time_left(Left(), [()], width=4, done=10.0, ended=9) == ev.Estimated(0.0, 0.0, 0.0)


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


def test_one_job_that_is_expected_to_hold_more_than_there_is_takes_no_longer_for_that() -> None:
    left = Left(most=8.0)
    left.add(KNOWN, 0, 10.0, 24.0)
    assert seconds(left, [()], 4, memory=8.0) == pytest.approx(10.0)


@given(
    st.lists(st.lists(st.floats(0.01, 100), min_size=1, max_size=20), min_size=1, max_size=6),
    st.floats(1, 64),
    st.floats(0, 1e5),
    st.sampled_from((KNOWN, UNKNOWN)),
)
def test_the_band_holds_the_middle_and_is_narrow_from_a_quarter_on(
    groups: list[list[float]], width: float, done: float, job: ExpectedJob
) -> None:
    left = left_of(*groups, job=job)
    deps = [tuple(range(n)) for n in range(len(groups))]
    found = time_left(left, deps, width=width, done=done, ended=99)
    assert 0.0 <= found.low <= found.seconds <= found.high
    assert found.high >= found.seconds + 1.0
    assert found.seconds >= longest_path(left, deps) * 0.999
    assert found.seconds >= left.seconds / width * 0.999
    if done >= left.seconds / 3 and found.seconds >= 4.0:
        assert found.high <= 2.001 * found.low


def test_the_band_narrows_up_to_a_quarter_and_is_narrower_for_what_is_remembered() -> None:
    known, unknown = (
        [
            (e.high / e.low)
            for done in (0.0, 100.0, 300.0, 900.0)
            for e in [time_left(left, [()], width=1, done=done, ended=99)]
        ]
        for left in (left_of([1.0] * 900, job=job) for job in (KNOWN, UNKNOWN))
    )
    for widths in (known, unknown):
        assert widths == sorted(widths, reverse=True)
        assert widths[0] > 1.5 * widths[2]
        assert widths[2] == pytest.approx(widths[3])
    assert all(a < b for a, b in zip(known, unknown, strict=True))


def test_one_job_that_has_ended_says_little_of_others_unless_they_are_remembered() -> None:
    def spread(ended: int, job: ExpectedJob) -> float:
        found = time_left(left_of([100.0] * 3, job=job), [()], width=1, done=100.0, ended=ended)
        return found.high / found.low

    assert spread(1, UNKNOWN) > 1000.0
    assert spread(2, UNKNOWN) == pytest.approx(16.0)
    assert spread(3, UNKNOWN) > spread(4, UNKNOWN) == pytest.approx(2.0)
    assert spread(1, KNOWN) == pytest.approx(spread(4, KNOWN))


def test_a_build_of_which_everything_is_remembered_has_a_band_before_anything_has_ended() -> None:
    """Two minutes after the same build it was still "learning": 98 s, from half a second to five hours."""
    found = time_left(left_of([10.0] * 20), [()], width=2.0, done=0.0, ended=0)
    assert found.high < 8.0 * found.low, "shown"
    assert found.high > 2.0 * found.seconds, "nobody knows yet what else the machine has to do"


def ruled(done: float, rule: float, job: ExpectedJob = UNKNOWN) -> float:
    """The middle of a build of 1,000 s of which so many are done, where the rule of three says `rule` times as much."""
    left = 1000.0 - done
    return (
        time_left(left_of([1.0] * int(left), job=job), [()], width=1, done=done, ended=99, rule=rule * left).seconds
        / left
    )


def test_at_first_the_rule_of_three_counts_too_and_later_it_does_not() -> None:
    assert ruled(100.0, 1.5) == pytest.approx(1.5)
    assert 1.1 < ruled(250.0, 1.5) < 1.4
    assert ruled(400.0, 1.5) == pytest.approx(1.0)
    assert 0.8 < ruled(900.0, 1.5) < 1.0, "what is learnt is drawn towards what all jobs have in common, so undo that"


def test_a_rule_of_three_that_is_far_off_counts_no_more_than_one_that_is_near() -> None:
    assert ruled(100.0, 30.0) == ruled(100.0, 3.0) == pytest.approx(2.0)


def test_of_jobs_that_are_remembered_nothing_is_counted() -> None:
    assert ruled(100.0, 1.5, KNOWN) == ruled(900.0, 0.5, KNOWN) == pytest.approx(1.0)


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


def test_what_is_counted_is_said_with_a_wide_band_at_first() -> None:
    def spread(percent: float) -> float:
        started = ev.SchedulerStarted(1, "make", 1, "/b", "4.3", 4)
        found = counted(state_of(started, ev.SchedulerPlanned(1, None, "percent", percent=percent)), 100.0)
        assert found is not None
        return found.high / found.low

    assert spread(1.0) > 1000.0
    assert spread(10.0) == pytest.approx(1.8**4, rel=0.01)
    assert spread(25.0) == pytest.approx(1.8**2, rel=0.01), "percent are a guess at the number of jobs"


def making(percent: float, ended: int, live: int) -> BuildState:
    """A make at so many percent, after so many jobs, with others that wait on deck."""
    return state_of(
        ev.SchedulerStarted(1, "make", 1, "/b", "4.3", 64),
        *(ev.JobFinished(None, 1, f"{n}.o", "cxx", 1.0, "unknown") for n in range(ended)),
        *(ev.JobStarted(n, 1, n, f"l{n}.o", "cxx", 0.0, "on_deck") for n in range(1, live + 1)),
        ev.SchedulerPlanned(1, None, "percent", percent=percent),
    )


def test_what_make_has_on_deck_takes_as_long_as_what_has_ended() -> None:
    """Beside 3 jobs that ran and 27 on deck it said 4 s (2-7 s); it took 16 s more."""
    found = counted(making(76.0, 43, 30), 20.6)
    assert found is not None
    assert found.seconds == pytest.approx(20.6 * 30 / 43, abs=0.1)
    assert found.low < 16.0 < found.high


def test_targets_that_are_up_to_date_say_nothing_about_jobs() -> None:
    """Make was at 39 percent before its first job had ended."""
    assert counted(making(39.0, 0, 38), 4.7) is None
    first = counted(making(39.0, 1, 38), 4.7)
    assert first is not None
    assert first.high > 20.0 * first.low


def test_percent_that_stand_still_are_not_about_to_be_100() -> None:
    """It said 0-1 s for 13 seconds."""
    found = counted(making(97.0, 100, 1), 54.0)
    assert found is not None
    assert found.high >= 54.0, "they have stood there since the start"
    assert found.seconds > 10.0


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
