"""Stages on cores and memory: never faster than possible, never slower with more."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.decide.path import Schedule, Span, Stage

SECONDS = st.floats(0.0, 1e5)


@st.composite
def graphs(draw: st.DrawFn) -> list[Stage]:
    stages: list[Stage] = []
    for number in range(draw(st.integers(0, 12))):
        jobs = draw(st.lists(SECONDS, max_size=5))
        deps = draw(st.sets(st.integers(0, number - 1), max_size=3)) if number else set()
        memory = draw(st.floats(0.0, 1e12)) if any(jobs) else 0.0
        stages.append(Stage(sum(jobs), max(jobs, default=0.0), memory, tuple(sorted(deps))))
    return stages


WIDTHS = st.floats(0.25, 128.0)


def stage(*jobs: float, deps: tuple[int, ...] = (), memory: float = 0.0) -> Stage:
    return Stage(sum(jobs), max(jobs), memory, deps)


def test_nothing_takes_no_time() -> None:
    assert Schedule([]).span(4.0) == Span(0.0, 0.0)


def test_jobs_that_wait_for_nothing_share_the_cores() -> None:
    assert Schedule([stage(*[10.0] * 8)]).span(4.0).best == 20.0


def test_a_chain_takes_its_length_on_any_number_of_cores() -> None:
    chain = [stage(5.0), stage(7.0, deps=(0,)), stage(1.0, deps=(1,))]
    for width in (1.0, 2.0, 64.0):
        assert Schedule(chain).span(width) == Span(13.0, 13.0)


def test_one_core_does_one_job_after_the_other() -> None:
    stages = [stage(5.0, 3.0), stage(7.0, 1.0), stage(2.0, deps=(0,))]
    assert Schedule(stages).span(1.0) == Span(18.0, 18.0)


def test_a_bottleneck_between_two_wide_phases_is_counted_whole() -> None:
    """Work over width and the longest path are both 60 and 40 s short of what no scheduler can beat."""
    wide = [10.0] * 40
    stages = [stage(*wide), stage(60.0, deps=(0,)), stage(*wide, deps=(1,))]
    assert Schedule(stages).span(4.0).best == pytest.approx(100.0 + 60.0 + 100.0)


def test_work_that_nobody_waits_for_fills_the_gaps() -> None:
    """A long job beside many short ones: the short ones run all along, not before it."""
    assert Schedule([stage(600.0), stage(*[10.0] * 1000)]).span(10.0).best == pytest.approx(1060.0)


def test_memory_stretches_time_as_cores_do() -> None:
    stages = [stage(*[10.0] * 8, memory=8 * 10.0 * 4.0)]
    assert Schedule(stages).span(8.0, memory=32.0).best == pytest.approx(10.0)
    assert Schedule(stages).span(8.0, memory=8.0).best == pytest.approx(40.0)


def test_the_chain_names_the_stages_on_the_longest_path() -> None:
    stages = [stage(1.0), stage(5.0), stage(2.0, deps=(0,)), stage(2.0, deps=(0, 1)), stage(9.0, deps=(2,))]
    assert Schedule(stages).chain() == [0, 2, 4]
    assert Schedule(stages).path == 12.0


@given(graphs(), WIDTHS, st.floats(1.0, 1e12))
def test_never_faster_than_possible(stages: list[Stage], width: float, memory: float) -> None:
    schedule = Schedule(stages)
    span = schedule.span(width, memory)
    work = sum(s.work for s in stages)
    assert 0.0 <= span.best <= span.likely <= span.worst < math.inf
    assert span.best >= schedule.path
    assert span.best >= work / width
    assert span.best >= sum(s.memory for s in stages) / memory


@given(graphs(), WIDTHS, WIDTHS)
def test_never_slower_with_more_cores(stages: list[Stage], one: float, other: float) -> None:
    few, many = (Schedule(stages).span(width) for width in sorted((one, other)))
    slack = 1.0 + 1e-9
    assert many.best <= few.best * slack
    assert many.worst <= few.worst * slack
    assert many.likely <= few.likely * slack


@given(graphs(), WIDTHS, st.floats(1.0, 1e12), st.floats(1.0, 1e12))
def test_never_slower_with_more_memory(stages: list[Stage], width: float, one: float, other: float) -> None:
    little, much = (Schedule(stages).span(width, memory) for memory in sorted((one, other)))
    assert much.likely <= little.likely * (1.0 + 1e-9)


@given(graphs(), st.floats(1.0, 128.0))
def test_limits_cost_no_more_than_doing_one_after_the_other(stages: list[Stage], width: float) -> None:
    """Graham's bound holds for the best case too."""
    schedule = Schedule(stages)
    work = sum(s.work for s in stages)
    assert schedule.span(width).best <= (work / width + schedule.path) * (1.0 + 1e-9)


@given(graphs())
def test_the_chain_is_a_path_as_long_as_the_longest(stages: list[Stage]) -> None:
    schedule = Schedule(stages)
    chain = schedule.chain()
    assert sum(stages[number].longest for number in chain) == pytest.approx(schedule.path)
    assert all(a in stages[b].deps for a, b in pairwise(chain))
