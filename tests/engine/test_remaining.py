"""What is left of a plan, summed up: the sums are those of the edges that wait, whatever came and went before."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stoker.decide.forecast import Batch
from stoker.decide.pace import Pace
from stoker.engine.remaining import ANY, Kind, Remaining, View
from stoker.sense.plan_graph import UNKNOWN, PlanGraph, PlannedEdge, write_graph

SECONDS = st.sampled_from([1.0, 2.0, 2.0004, 3.0, 8.0])
"""Few, so that equal ones meet, and two that are less than a millisecond apart."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "graph"


def _remaining(path: Path, seconds: list[float]) -> Remaining:
    return Remaining(_graph(path, [PlannedEdge((f"o{n}",), "cxx", s, 0) for n, s in enumerate(seconds)]))


def _graph(path: Path, edges: list[PlannedEdge]) -> PlanGraph:
    path.unlink(missing_ok=True)
    with path.open("wb") as file:
        write_graph(file, edges, [()], [""], exact=True)
    graph = PlanGraph.load(path)
    assert graph is not None
    return graph


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
            told = remaining._sums[0].get(Kind(source, "cxx", ANY))
            assert (told.jobs if told else 0) == len(left)
            if told is not None:
                assert told.longest == pytest.approx(max(left), abs=0.001)
                assert told.seconds == pytest.approx(sum(left), rel=1e-4)


FOLDERS = st.lists(st.sampled_from(["a", "b", "c/d"]), min_size=2, max_size=12)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data(), FOLDERS, st.sets(st.sampled_from(["a", "b"])))
def test_folders_are_told_apart_once_something_runs_in_them(
    path: Path, data: st.DataObject, folders: list[str], ran: set[str]
) -> None:
    """Whatever ran there under an earlier plan or this one, and whatever was learnt of single jobs meanwhile."""
    remaining = _in_folders(path, folders, ran)
    waiting, ran = set(range(len(folders))), set(ran)
    for edge in data.draw(st.permutations(range(len(folders)))):
        known = data.draw(st.integers(0, len(folders) - 1))
        remaining.expect(known, "history", 2.0, 1.0)
        remaining.begin(edge)
        waiting -= {known, edge}
        ran.add(folders[edge])
        jobs = {batch.sources: batch.jobs for batch in _batches(remaining) if "history" not in batch.sources}
        fresh = [folders[e] for e in waiting if folders[e] not in ran]
        assert jobs.pop(("cxx", "cxx fresh 0", "cxx unseen"), 0) == len(fresh)
        left = {folder: sum(folders[e] == folder for e in waiting) for folder in ran}
        assert {names[1]: count for names, count in jobs.items()} == {f"cxx {f}": n for f, n in left.items() if n}


def test_folders_of_which_nothing_is_known_are_off_each_by_itself(path: Path) -> None:
    """So all of them together are off by less: else a first build of many libraries would seem unforeseeable."""
    doubts = []
    for count in (1, 4, 100):
        remaining = _in_folders(path, [f"lib{n}" for n in range(count)], set())
        view = View(Pace(), {})
        (group,) = remaining.groups(view, {}, 0)
        assert len(group.batches) == 1
        doubts.append(view.doubts["cxx fresh 0"])
    assert doubts == pytest.approx([doubts[0], doubts[0] / 2, doubts[0] / 10])


def _in_folders(path: Path, folders: list[str], ran: set[str]) -> Remaining:
    edges = [PlannedEdge((f"{folder}/o{n}",), "cxx", UNKNOWN, 0) for n, folder in enumerate(folders)]
    return Remaining(_graph(path, edges), lambda tool, folder: tool == "cxx" and folder in ran)


def _batches(remaining: Remaining) -> list[Batch]:
    return [batch for group in remaining.groups(View(Pace(), {}), {}, 0) for batch in group.batches]
