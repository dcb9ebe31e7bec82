"""A demo never plans with more than half of the memory, on any machine."""

from hypothesis import given
from hypothesis import strategies as st

from stoker.demo.sizing import CXX_LEAST_BUDGET, MEDIUM_MIB, MIB, PYTHON_MIB, cxx_plan, heavy_memory, python_plan

seconds = st.floats(1, 3600)
cores = st.integers(1, 512)


@given(seconds, cores, st.integers(CXX_LEAST_BUDGET, 2**42))
def test_cxx_takes_no_more_than_half(seconds: float, cores: int, budget: int) -> None:
    plan = cxx_plan(seconds, cores, budget)
    worst = plan.heavy_depth * heavy_memory(max(plan.heavy)) + plan.other_depth * MEDIUM_MIB * MIB
    assert worst <= budget / 2
    assert plan.heavy_depth >= 1
    assert plan.other_depth >= 1
    assert plan.light + plan.medium + 2 * len(plan.heavy) < 300


@given(seconds, st.integers(1, 64), st.integers(2**30, 2**40))
def test_python_takes_no_more_than_half(seconds: float, cores: int, budget: int) -> None:
    plan = python_plan(seconds, cores, budget)
    slots = cores + 2  # ninja's own -j
    worst = plan.heavy_depth * (max(plan.heavy) + PYTHON_MIB) + (slots - plan.heavy_depth) * PYTHON_MIB
    assert worst * MIB <= budget / 2 or max(plan.heavy) == 16
    assert plan.light + plan.medium + len(plan.heavy) <= 120


def test_a_minute_on_a_small_machine() -> None:
    plan = cxx_plan(60, 2, 8 * 2**30)
    assert 40 <= plan.light + plan.medium + 2 * len(plan.heavy) + 8 <= 60
    assert heavy_memory(max(plan.heavy)) >= 500 * MIB
    assert len(cxx_plan(60, 16, 64 * 2**30).heavy) > len(plan.heavy)
