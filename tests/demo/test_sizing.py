"""A demo's jobs want more than it allows itself, on any machine: they are held, one is frozen, the next goes on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.decide.memory.curves import Point
from stoker.demo.sizing import (
    CXX_BUDGET,
    CXX_SHARE,
    MIB,
    PYTHON_BUDGET,
    PYTHON_LIGHT_SHARE,
    PYTHON_MIB,
    PYTHON_SHARE,
    DemoPlan,
    cxx_plan,
    heavy_memory,
    python_plan,
)
from stoker.simulate.drivers import Stoker
from stoker.simulate.oracle import oracle
from stoker.simulate.simulated_machine import Machine
from stoker.simulate.trace import TraceJob

seconds = st.floats(1, 3600)


@given(seconds)
def test_the_largest_cxx_job_fits_and_two_do_not(length: float) -> None:
    plan = cxx_plan(length, CXX_BUDGET)
    assert plan.budget <= CXX_BUDGET
    assert heavy_memory(max(plan.heavy)) <= CXX_SHARE * plan.budget + 1
    assert 2 * heavy_memory(max(plan.heavy)) > plan.budget
    assert plan.light + plan.medium + 2 * len(plan.heavy) < 300


@given(seconds, st.integers(128 * MIB, PYTHON_BUDGET))
def test_so_it_is_with_python_work(length: float, budget: int) -> None:
    plan = python_plan(length, budget)
    assert plan.budget == budget
    assert (max(plan.heavy) + PYTHON_MIB) * MIB <= PYTHON_SHARE * budget
    assert plan.light + plan.medium + len(plan.heavy) <= 120


def cxx_jobs(plan: DemoPlan) -> list[TraceJob]:
    """As g++ 12 was measured at it: 110 MiB for the headers, 265 soon, the rest as slowly as they take."""

    def kernel(n: int, size: int) -> TraceJob:
        peak = (110 + 7 * size) * MIB
        soon = [Point(age, min(mib * MIB, peak)) for age, mib in ((0.0, 0), (0.5, 122), (1.0, 230), (1.3, 265))]
        return TraceJob(f"obj/kernel_{n:02}.o", "cxx", (*soon, Point(1.4 + 0.16 * size, peak)))

    kernels = [kernel(n, size) for n, size in enumerate(plan.heavy)]
    lights = [
        TraceJob(f"obj/grate_{n:02}.o", "cxx", (Point(0, 5 * MIB), Point(0.3, 45 * MIB))) for n in range(plan.light)
    ]
    return [*kernels, *lights]


def python_jobs(plan: DemoPlan) -> list[TraceJob]:
    def job(name: str, mib: int, share: float) -> TraceJob:
        each, own = plan.seconds_each * share, PYTHON_MIB * MIB
        top = own + mib * MIB
        return TraceJob(
            name, "other", (Point(0, own), Point(0.4 * each, top), Point(0.6 * each, top), Point(each, own))
        )

    heavy = [job(f"obj/kernel_{n:02}.o", mib, 1.0) for n, mib in enumerate(plan.heavy)]
    return [*heavy, *(job(f"obj/grate_{n:02}.o", 8, PYTHON_LIGHT_SHARE) for n in range(plan.light))]


class Watched(Stoker):
    """Notes when what was done first."""

    first: dict[str, float]

    def tick(self, machine: Machine) -> float:
        before = dict(self.counts)
        after = super().tick(machine)
        for action in self.counts:
            if self.counts[action] > before.get(action, 0):
                self.first.setdefault(action, machine.now)
        return after


def watch(jobs: list[TraceJob], cores: int, budget: int) -> tuple[Watched, Machine]:
    """A first build on paper, with nothing but the shipped priors: the demo keeps apart from the history."""
    machine, driver = Machine(jobs, cores, budget), Watched(oracle("absent"))
    driver.first = {}
    while not machine.over:
        machine.advance(driver.tick(machine))
    return driver, machine


@pytest.mark.parametrize("cores", [2, 3, 4, 8, 16, 64])
def test_on_any_machine_jobs_fight_within_ten_seconds_and_none_is_killed(cores: int) -> None:
    plan = cxx_plan(40, CXX_BUDGET)
    driver, machine = watch(cxx_jobs(plan), cores, plan.budget)
    assert driver.first["hold"] < 5
    assert driver.first["freeze"] < 10
    assert driver.first["thaw"] < 10
    assert driver.counts["freeze"] >= 2
    assert machine.tally.kills == 0


@pytest.mark.parametrize("cores", [2, 64])
@pytest.mark.parametrize("budget", [PYTHON_BUDGET, PYTHON_BUDGET // 2])
def test_where_memory_is_small_python_work_fights_as_well(cores: int, budget: int) -> None:
    plan = python_plan(40, budget)
    driver, _ = watch(python_jobs(plan), cores, plan.budget)
    assert driver.first["hold"] < 5
    assert driver.first["freeze"] < 10
    assert driver.first["thaw"] < 20
