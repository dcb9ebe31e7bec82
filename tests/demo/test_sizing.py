"""A demo's jobs want more than it allows itself, on any machine: they are held, one is frozen, the next goes on."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.decide.memory.curves import Point
from stoker.demo.cxx import cxx_project
from stoker.demo.opening import SMALL_SECONDS
from stoker.demo.python import python_project
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


def graph(files: dict[str, str]) -> dict[str, list[str]]:
    """The outputs of a project in ninja's order, and what each waits for."""
    edges = re.findall(r"^build (\S+): \S+(.*)$", files["build.ninja"], re.MULTILINE)
    return {output: needs.split() for output, needs in edges}


def work(output: str, life: float, mib: int) -> TraceJob:
    """A job as work.py takes its memory."""
    rise = [(0.15 + 0.8 * x, 1 - (1 - x) ** 2) for x in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)]
    shares = (0.0, 0.0), *rise, (0.97, 1.0), (0.97, 0.33), (1.0, 0.33)
    return TraceJob(output, "other", tuple(Point(at * life, (PYTHON_MIB + of * mib) * MIB) for at, of in shares))


def opening(plan: DemoPlan, output: str) -> TraceJob:
    if output in ("data/coal_00.txt", "data/coal_01.txt"):
        return work(output, SMALL_SECONDS, 0)
    return work(output, plan.opening_seconds, plan.opening_mib)


def on_paper(jobs: list[TraceJob], plan: DemoPlan, files: dict[str, str]) -> list[TraceJob]:
    """These jobs and the opening's, each behind what it waits for in the project's own graph."""
    edges = graph(files)
    known = {job.output: job for job in jobs} | {o: opening(plan, o) for o in edges if o.startswith("data/")}

    def behind(output: str) -> set[str]:
        needs = edges.get(output, [])
        return set(needs).intersection(known).union(*(behind(need) for need in needs if need not in known))

    return [replace(known[output], deps=tuple(behind(output))) for output in edges if output in known]


def cxx_jobs(plan: DemoPlan, slow: float = 1.0) -> list[TraceJob]:
    """As g++ 12 was measured at it: 110 MiB for the headers, 265 soon, the rest as slowly as they take; a slow machine
    takes a multiple of the time."""

    def kernel(n: int, size: int) -> TraceJob:
        peak = (110 + 7 * size) * MIB
        soon = [Point(slow * age, min(mib * MIB, peak)) for age, mib in ((0.0, 0), (0.5, 122), (1.0, 230), (1.3, 265))]
        return TraceJob(f"obj/kernel_{n:02}.o", "cxx", (*soon, Point(slow * (1.4 + 0.16 * size), peak)))

    kernels = [kernel(n, size) for n, size in enumerate(plan.heavy)]
    lights = [
        TraceJob(f"obj/grate_{n:02}.o", "cxx", (Point(0, 5 * MIB), Point(0.3 * slow, 45 * MIB)))
        for n in range(plan.light)
    ]
    return on_paper([*kernels, *lights], plan, cxx_project(plan, "c++", fail=False))


def python_jobs(plan: DemoPlan) -> list[TraceJob]:
    heavy = [work(f"obj/kernel_{n:02}.o", plan.seconds_each, mib) for n, mib in enumerate(plan.heavy)]
    names = [
        *(f"gen/kernel_{n:02}.txt" for n in range(plan.medium)),
        *(f"obj/grate_{n:02}.o" for n in range(plan.light)),
    ]
    light = [work(name, plan.seconds_each * PYTHON_LIGHT_SHARE, 8) for name in names]
    return on_paper([*heavy, *light], plan, python_project(plan, fail=False))


class Watched(Stoker):
    """Notes when what was done first, and how many jobs had ended by then."""

    def __init__(self, level: int | None) -> None:
        super().__init__(oracle("absent"), level)
        self.first: dict[str, float] = {}
        self.ended: dict[str, int] = {}

    def tick(self, machine: Machine) -> float:
        before = dict(self.counts)
        after = super().tick(machine)
        for action in self.counts:
            if self.counts[action] > before.get(action, 0) and action not in self.first:
                self.first[action], self.ended[action] = machine.now, machine.tally.finished
        return after


def watch(jobs: list[TraceJob], cores: int, budget: int, *, others: float = 0.0) -> tuple[Watched, Machine]:
    """A first build on paper, with nothing but the shipped priors: the demo keeps apart from the history. On one core
    it runs two jobs at once."""
    machine, driver = Machine(jobs, cores, budget, others), Watched(2 if cores == 1 else None)
    while not machine.over:
        machine.advance(driver.tick(machine))
    return driver, machine


OPENING = 4
"""Jobs of the opening."""


@pytest.mark.parametrize(("others", "slow"), [(0.0, 1.0), (0.0, 4.0), (8.0, 1.0)])
@pytest.mark.parametrize("cores", [1, 2, 3, 16, 64])
def test_the_opening_fights_before_anything_else_ends(cores: int, others: float, slow: float) -> None:
    """However slow the compiler is, and whatever else the machine does."""
    plan = cxx_plan(40, CXX_BUDGET)
    driver, machine = watch(cxx_jobs(plan, slow), cores, plan.budget, others=others)
    assert driver.ended["freeze"] < OPENING - 1
    assert driver.ended["hold"] < OPENING
    assert driver.ended["thaw"] < OPENING
    assert driver.counts["freeze"] >= 2
    assert machine.tally.kills == 0
    if not others:
        assert max(driver.first["hold"], driver.first["freeze"], driver.first["thaw"]) < 6


@pytest.mark.parametrize("cores", [1, 2, 64])
@pytest.mark.parametrize("budget", [PYTHON_BUDGET, PYTHON_BUDGET // 2])
def test_where_memory_is_small_python_work_fights_as_well(cores: int, budget: int) -> None:
    plan = python_plan(40, budget)
    driver, _ = watch(python_jobs(plan), cores, plan.budget)
    assert driver.ended["freeze"] < OPENING - 1
    assert max(driver.first["freeze"], driver.first["thaw"]) < 6


@pytest.mark.parametrize("fail", [False, True])
def test_only_the_first_job_of_the_opening_waits_for_nothing(*, fail: bool) -> None:
    for files in (
        cxx_project(cxx_plan(40, CXX_BUDGET), "c++", fail=fail),
        python_project(python_plan(40, PYTHON_BUDGET), fail=fail),
    ):
        edges = graph(files)
        assert [o for o, needs in edges.items() if not edges.keys() & needs] == ["data/coal_00.txt"]
