"""How fast a job is taken to grow: one that sleeps by the clock, one that waits for a core by what it could do."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.decide.memory.growth_rate import GrowthRate

MIB = 2**20


def grown(looks: Iterable[tuple[float, float, float]], *, every: float = 0.25, start: float = 50.0) -> GrowthRate:
    """The growth of a job of one thread that, from look to look, adds MiB, computes and waits for a core so long."""
    growth, clock, held, on, waits = GrowthRate(), start, 0.0, 0.0, 0.0
    growth.by_clock.note(clock, 0.0, {7: (0.0, 0.0)})
    for added, computes, waited in looks:
        clock, held, on, waits = clock + every, held + added * MIB, on + computes, waits + waited
        growth.note(on, held)
        growth.by_clock.note(clock, held, {7: (on, waits)})
    return growth


def taken_to_add(growth: GrowthRate) -> float:
    """MiB in the next second, on a core of its own."""
    return growth.rise * min(1.0, growth.cores) / MIB


def test_one_that_sleeps_between_its_steps_adds_what_it_added_by_the_clock() -> None:
    sleeper = grown([(20, 0.02, 0.0), (0, 0.001, 0.0)] * 20)  # 20 MiB each half second: 40 MiB in a second
    assert sleeper.rise / MIB > 500
    assert 40 <= taken_to_add(sleeper) <= 80


def test_one_that_waits_for_a_core_adds_what_it_would_with_one() -> None:
    crowded = grown([(5, 0.025, 0.225)] * 40)  # a tenth of a core: 20 MiB in a second, 200 with one of its own
    assert taken_to_add(crowded) == pytest.approx(200)


def test_one_that_sleeps_and_then_waits_for_a_core_counts_both() -> None:
    both = grown([(10, 0.025, 0.1)] * 40)  # half of the time it sleeps: 40 MiB in a second, 200 if it never waited
    assert taken_to_add(both) == pytest.approx(200)


def test_one_at_its_peak_that_only_sleeps_adds_no_more_than_a_step() -> None:
    at_its_peak = grown([(20, 0.02, 0.0)] * 18 + [(0, 0.0001, 0.0)] * 20)
    assert at_its_peak.rise / MIB > 500, "by CPU time nothing has been measured since"
    assert taken_to_add(at_its_peak) == pytest.approx(20)


def test_one_that_stops_sleeping_counts_in_full_at_the_next_look() -> None:
    woken = grown([(20, 0.02, 0.0), (0, 0.001, 0.0)] * 20 + [(250, 0.25, 0.0)])
    assert taken_to_add(woken) == pytest.approx(woken.rise / MIB)


def test_a_long_sleep_does_not_hide_the_step_that_may_follow() -> None:
    assert taken_to_add(grown([(300, 0.2, 0.0)] + [(0, 0.0001, 0.0)] * 40)) == pytest.approx(300)


@pytest.mark.parametrize("times", [None, {8: (1.0, 0.0)}], ids=["no account", "a thread has ended"])
def test_what_is_not_known_counts_as_if_it_never_slept(times: dict[int, tuple[float, float]] | None) -> None:
    growth = grown([(20, 0.02, 0.0), (0, 0.001, 0.0)] * 20)
    growth.by_clock.note(60.25, 500 * MIB, times)
    assert growth.cores == math.inf


def test_a_first_second_and_one_after_a_gap_or_a_stop_tell_nothing() -> None:
    assert grown([(20, 0.02, 0.0)] * 3).cores == math.inf
    assert grown([(20, 0.02, 0.0)] * 4).cores < 1
    assert grown([(20, 0.02, 0.0)] * 40, every=2.5).cores == math.inf
    stopped = grown([(20, 0.02, 0.0)] * 20)
    stopped.rest(0.5, 400 * MIB)
    assert stopped.by_clock.rate == math.inf


looks = st.tuples(st.floats(0, 500), st.floats(0.001, 0.25), st.floats(0, 0.2))


@given(st.lists(looks, min_size=8, max_size=40))
def test_it_is_never_less_than_what_the_last_seconds_showed(course: list[tuple[float, float, float]]) -> None:
    growth = grown(course)
    kept = [added / 0.25 for added, *_ in course[-12:]]
    assert growth.rise * growth.cores / MIB >= max(kept) * 0.999 or not growth.rise


@given(st.lists(st.tuples(st.floats(1, 50), st.floats(0.01, 0.25)), min_size=8, max_size=40))
def test_one_that_never_sleeps_is_never_taken_to_grow_slower_than_the_last_seconds_by_cpu_time(
    course: list[tuple[float, float]],
) -> None:
    growth = grown([(added, on, 0.25 - on) for added, on in course])
    by_cpu = max(added / on for added, on in course[-12:])
    assert growth.rise * growth.cores / MIB >= by_cpu * 0.999
