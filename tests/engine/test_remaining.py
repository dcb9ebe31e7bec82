"""What is left of a plan, summed up: the sums are those of the edges that wait, whatever came and went before."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stoker.engine.remaining import Kind, Remaining
from stoker.sense.plan_graph import PlanGraph, PlannedEdge, write_graph

SECONDS = st.sampled_from([1.0, 2.0, 2.0004, 3.0, 8.0])
"""Few, so that equal ones meet, and two that are less than a millisecond apart."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "graph"


def _remaining(path: Path, seconds: list[float]) -> Remaining:
    edges = [PlannedEdge((f"o{n}",), "cxx", s, 0) for n, s in enumerate(seconds)]
    path.unlink(missing_ok=True)
    with path.open("wb") as file:
        write_graph(file, edges, [()], [""], exact=True)
    graph = PlanGraph.load(path)
    assert graph is not None
    return Remaining(graph)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data(), st.lists(SECONDS, min_size=2, max_size=12))
def test_the_longest_is_that_of_those_that_wait(path: Path, data: st.DataObject, seconds: list[float]) -> None:
    """Edges start in any order, and what is expected of those that wait changes in between."""
    remaining = _remaining(path, seconds)
    waiting = dict(enumerate(seconds))
    sources = dict.fromkeys(waiting, "log")
    for edge in data.draw(st.permutations(range(len(seconds)))):
        for _ in range(data.draw(st.integers(0, 4))):
            other, expected = data.draw(st.sampled_from(sorted(waiting))), data.draw(SECONDS)
            remaining.expect(other, "history", expected, 1.0)
            waiting[other], sources[other] = expected, "history"
        remaining.begin(edge)
        del waiting[edge]
        for source in ("log", "history"):
            left = [waiting[e] for e in waiting if sources[e] == source]
            told = remaining._sums[0].get(Kind(source, "cxx", 0))
            assert (told.jobs if told else 0) == len(left)
            if told is not None:
                assert told.longest == pytest.approx(max(left), abs=0.001)
                assert told.seconds == pytest.approx(sum(left), rel=1e-4)
