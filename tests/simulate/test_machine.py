"""The physics on paper, with figures that can be checked by hand."""

from __future__ import annotations

import pytest

from stoker.decide.memory.curves import Point
from stoker.simulate.drivers import Fixed
from stoker.simulate.runner import simulate
from stoker.simulate.simulated_machine import Machine, lower_bound
from stoker.simulate.trace import TraceJob


def job(name: str, *points: tuple[float, float], width: float = 1.0, deps: tuple[str, ...] = ()) -> TraceJob:
    return TraceJob(name, "cxx", tuple(Point(age, size) for age, size in points), width, deps)


def box(name: str, size: float = 1, seconds: float = 10, deps: tuple[str, ...] = ()) -> TraceJob:
    return job(name, (0, size), (seconds, size), deps=deps)


def finish(machine: Machine, level: int = 99) -> Machine:
    driver = Fixed(level)
    while not machine.over:
        machine.advance(driver.tick(machine))
    return machine


def test_more_jobs_than_cores_share_them() -> None:
    assert finish(Machine([box("a"), box("b"), box("c"), box("d")], 2, 100)).now == pytest.approx(20)


def test_a_job_that_keeps_two_cores_busy_counts_as_two() -> None:
    wide = job("a", (0, 1), (20, 1), width=2.0)
    assert finish(Machine([wide], 4, 100)).now == pytest.approx(10)
    assert finish(Machine([wide, box("b")], 2, 100)).now == pytest.approx(15)


def test_the_level_is_a_window_and_not_a_start_order() -> None:
    machine = finish(Machine([box(str(n)) for n in range(4)], 8, 100), level=2)
    assert machine.now == pytest.approx(20)
    assert machine.tally.peak == pytest.approx(2)


def test_dependencies_are_waited_for() -> None:
    chain = [box("a"), box("b", deps=("a",)), box("c", deps=("b",)), box("d")]
    assert finish(Machine(chain, 8, 100)).now == pytest.approx(30)
    assert lower_bound(chain, 8, 100) == pytest.approx(30)


def test_a_peak_between_two_looks_is_seen() -> None:
    spike = job("a", (0, 0), (4.9, 0), (5, 80), (5.1, 0), (10, 0))
    assert finish(Machine([spike], 1, 100)).tally.peak == pytest.approx(80)


def test_the_kernel_kills_the_biggest_at_the_moment_the_memory_is_full() -> None:
    climb = job("climb", (0, 0), (10, 100))
    machine = Machine([climb, box("small", size=40, seconds=10)], 2, 100)
    finish(machine)
    assert machine.tally.kills == 1
    assert machine.tally.peak == pytest.approx(100)
    assert machine.tally.lost == pytest.approx(6)
    assert machine.now > 10


def test_a_frozen_job_keeps_its_memory_and_does_not_age() -> None:
    machine = Machine([job("a", (0, 0), (10, 100)), box("b", size=5, seconds=20)], 2, 1000)
    machine.offer(2)
    for live in tuple(machine.deck.values()):
        machine.start(live)
    machine.advance(4.0)
    frozen = machine.running[0]
    machine.freeze(frozen)
    machine.advance(12.0)
    assert machine.size(frozen) == pytest.approx(40)
    assert machine.age(frozen) == pytest.approx(4)
    assert machine.used == pytest.approx(45)
    machine.thaw(frozen)
    machine.advance(15.0)
    assert machine.age(frozen) == pytest.approx(7)
    assert machine.used == pytest.approx(75)


def test_candidates_come_only_as_far_as_the_window_goes() -> None:
    machine = Machine([box(str(n)) for n in range(10)], 4, 100)
    assert [live.jid for live in machine.offer(3)] == [0, 1, 2]
    assert machine.offer(3) == []
    machine.start(machine.deck[1])
    assert machine.offer(3) == []
    machine.advance(100.0)
    assert [live.jid for live in machine.offer(3)] == [3]


def test_a_job_larger_than_the_machine_is_given_up_and_the_build_goes_on() -> None:
    result = simulate([box("huge", size=200), box("b")], 2, 100, "stoker", "exact")
    assert result.given_up == 1
    assert result.kills > 0


@pytest.mark.parametrize(("cores", "budget", "bound"), [(1, 1000, 40), (8, 1000, 10), (8, 10, 10), (8, 1, 40)])
def test_the_bound_is_the_tightest_of_three(cores: int, budget: float, bound: float) -> None:
    """40 CPU seconds, 10 in a row, 40 bytes times seconds."""
    assert lower_bound([box(str(n)) for n in range(4)], cores, budget) == pytest.approx(bound)
