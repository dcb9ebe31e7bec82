"""The band of a build whose graph is known: ordered, at least what is certain, narrower the more is known."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.decide.forecast import Batch, Group, expected_longest, forecast
from stoker.decide.path import Schedule, Stage
from stoker.model.events import Estimated


def jobs(seconds: float, number: int = 1, spread: float = 0.0, source: str = "", memory: float = 0.0) -> Batch:
    return Batch((source,), number, number * seconds, number * seconds**2, seconds, spread, memory)


def group(*batches: Batch, deps: tuple[int, ...] = ()) -> Group:
    return Group(batches, deps)


BATCHES = st.builds(
    jobs,
    st.floats(0.001, 1e4),
    st.integers(1, 500),
    st.floats(0.0, 1.5),
    st.sampled_from(["a", "b", "unheard of"]),
    st.floats(0.0, 1e12),
)


@st.composite
def builds(draw: st.DrawFn) -> list[Group]:
    found: list[Group] = []
    for number in range(draw(st.integers(0, 10))):
        deps = draw(st.sets(st.integers(0, number - 1), max_size=3)) if number else set()
        found.append(Group(draw(st.lists(BATCHES, max_size=3)), tuple(sorted(deps))))
    return found


DOUBTS = st.fixed_dictionaries({"a": st.floats(0.0, 1.0), "b": st.floats(0.0, 1.0)})


def test_nothing_left_takes_no_time() -> None:
    assert forecast([], {}, 4.0) == Estimated(0.0, 0.0, 0.0)
    assert forecast([group(), group(deps=(0,))], {}, 4.0) == Estimated(0.0, 0.0, 0.0)


def test_a_chain_of_certain_jobs_is_certain() -> None:
    assert forecast([group(jobs(5.0)), group(jobs(7.0), deps=(0,))], {}, 4.0) == Estimated(12.0, 12.0, 12.0)


def test_single_jobs_errors_average_out_but_shared_ones_do_not() -> None:
    def width(found: Estimated) -> float:
        return math.log(found.high / found.low)

    own = [forecast([group(jobs(10.0, n, spread=0.5))], {}, 4.0) for n in (100, 10_000)]
    shared = [forecast([group(jobs(10.0, n, source="a"))], {"a": 0.5}, 4.0) for n in (100, 10_000)]
    assert width(own[1]) < width(own[0])
    assert width(shared[1]) > 2 * math.log(1.5)
    assert width(shared[1]) > 3 * width(own[1])


def test_sources_that_err_independently_err_less_together() -> None:
    one = [group(jobs(10.0, 100, source="a"), jobs(10.0, 100, source="a"))]
    two = [group(jobs(10.0, 100, source="a"), jobs(10.0, 100, source="b"))]
    doubts = {"a": 0.5, "b": 0.5}
    assert forecast(two, doubts, 4.0).high < forecast(one, doubts, 4.0).high


def test_the_longest_of_many_is_longer_than_their_mean() -> None:
    assert expected_longest([(10.0, 0.5, 1)]) == 10.0
    assert expected_longest([(10.0, 0.0, 100)]) == 10.0
    assert 20.0 < expected_longest([(10.0, 0.5, 100)]) < 60.0
    assert expected_longest([(10.0, 0.5, 100), (90.0, 0.1, 1)]) == 90.0
    assert expected_longest([]) == 0.0


def test_memory_that_binds_makes_it_longer() -> None:
    heavy = [group(jobs(100.0, 16, memory=16 * 100.0 * 4.0))]
    assert forecast(heavy, {}, 16.0, memory=8.0).seconds >= 800.0
    assert forecast(heavy, {}, 16.0, memory=64.0).seconds < 200.0


@given(builds(), DOUBTS, st.floats(0.25, 128.0), st.floats(1.0, 1e13))
def test_the_band_is_ordered_and_finite(
    groups: list[Group], doubts: dict[str, float], width: float, memory: float
) -> None:
    found = forecast(groups, doubts, width, memory)
    assert 0.0 <= found.low <= found.seconds <= found.high < math.inf
    assert (found.seconds == 0.0) == (not any(g.batches for g in groups))


@given(builds(), DOUBTS, st.floats(0.25, 128.0), st.floats(0.25, 128.0))
def test_more_cores_never_make_it_longer(
    groups: list[Group], doubts: dict[str, float], one: float, other: float
) -> None:
    few, many = (forecast(groups, doubts, width) for width in sorted((one, other)))
    assert many.seconds <= few.seconds * (1.0 + 1e-9)


@given(builds(), DOUBTS, st.floats(0.25, 128.0))
def test_at_least_the_longest_path_of_what_is_certain(
    groups: list[Group], doubts: dict[str, float], width: float
) -> None:
    certain = [
        Stage(
            0.0,
            max((b.longest for b in g.batches if not b.spread and b.sources == ("unheard of",)), default=0.0),
            0.0,
            g.deps,
        )
        for g in groups
    ]
    assert forecast(groups, doubts, width).low >= Schedule(certain).path * (1.0 - 1e-9)


@given(builds(), DOUBTS, st.floats(1.0, 64.0), st.floats(0.01, 100.0))
def test_all_seconds_scaled_scale_the_forecast(
    groups: list[Group], doubts: dict[str, float], width: float, factor: float
) -> None:
    scaled = [
        Group(
            [
                b._replace(seconds=factor * b.seconds, square=factor**2 * b.square, longest=factor * b.longest)
                for b in g.batches
            ],
            g.deps,
        )
        for g in groups
    ]
    before, after = forecast(groups, doubts, width), forecast(scaled, doubts, width)
    assert after.seconds == pytest.approx(factor * before.seconds)
