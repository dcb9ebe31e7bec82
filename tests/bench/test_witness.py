"""The best known schedules: they are kept as they can be followed, and no bound says that they cannot be."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from stoker.decide.memory.curves import Point
from stoker.simulate.drivers import reserve_of
from stoker.simulate.simulated_machine import lower_bound
from stoker.simulate.synthetic import BUILDS
from stoker.simulate.trace import TraceJob

BENCH = Path(__file__).parents[2] / "bench"
GIB = 2**30
KEPT: list[dict[str, Any]] = json.loads((BENCH / "witnesses.json").read_text())
FOLLOWED = [w for w in KEPT if w["starts"] and w["gib"] == 2 * w["cores"]]
FULL = 10.0


def _load(name: str) -> ModuleType:
    """A module of bench/ by its file: this folder has the same name as that package."""
    spec = importlib.util.spec_from_file_location(name, BENCH / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


found, graph = _load("witness_search"), _load("witness_graph")


def _job(name: str, *points: tuple[float, float], deps: tuple[str, ...] = ()) -> TraceJob:
    return TraceJob(name, "cxx", tuple(Point(age, size) for age, size in points), deps=deps)


@pytest.mark.parametrize(
    "witness",
    [w for w in KEPT if w["starts"] and w["gib"] == 2 * w["cores"]],
    ids=lambda w: f"{w['build']}-{w['cores']}",
)
def test_a_kept_schedule_builds_everything_within_memory_and_cores_in_its_time(witness: dict[str, Any]) -> None:
    jobs, ram = BUILDS[witness["build"]](order="row", seed=1), witness["gib"] * GIB
    starts = [witness["slot"] * start for start in witness["starts"]]
    seconds = found.followed(jobs, witness["cores"], ram - reserve_of(ram), starts)
    assert seconds == pytest.approx(witness["best"], abs=0.01)


def test_no_kept_schedule_beats_a_bound() -> None:
    assert {witness["build"] for witness in KEPT} == {"flash-attn", "vllm", "pytorch"}
    for witness in KEPT:
        assert witness["bound"] <= witness["curves"] <= witness["best"]


def test_the_search_lets_peaks_miss_each_other() -> None:
    """Two peaks do not fit at once; one that comes while the other job is small does."""
    jobs = [_job(name, (0, 2), (1.2, 2), (1.2, 8), (1.8, 8), (1.8, 2), (4, 2)) for name in "ab"]
    starts = found.search(jobs, 2, FULL, 1.0, rounds=20)
    assert found.followed(jobs, 2, FULL, starts) == pytest.approx(5)


def test_a_schedule_that_needs_more_than_there_is_is_refused() -> None:
    jobs = [_job(name, (0, 8), (2, 8)) for name in "ab"]
    with pytest.raises(ValueError, match="holds more than"):
        found.followed(jobs, 2, FULL, [0.0, 1.0])
    with pytest.raises(ValueError, match="2 jobs on 1 cores"):
        found.followed(jobs, 1, 3 * FULL, [0.0, 1.0])


def test_a_slot_counts_with_the_most_that_a_job_holds_in_it() -> None:
    job = _job("a", (0, 0), (1.5, 6), (1.5, 1), (3, 1))
    assert found.held(job, 1.0) == [4, 6, 1]


def test_the_best_order_of_a_graph_keeps_its_longest_chain_going() -> None:
    chain = [_job(f"c{n}", (0, 1), (3, 1), deps=(f"c{n - 1}",) if n else ()) for n in range(4)]
    single = [_job(f"s{n}", (0, 1), (2, 1)) for n in range(6)]
    assert graph.shortest([*single, *chain], 2, rounds=3) == pytest.approx(12)


def test_the_bound_that_knows_curves_lies_between_the_simple_one_and_the_best_schedule() -> None:
    """Four jobs that are large at their end on four cores: while all are small, most of the memory cannot be used."""
    pytest.importorskip("scipy", reason="the bound wants the extra `bench`")
    jobs = [_job(f"j{n}", (0, 1), (8, 1), (8, 9), (10, 9)) for n in range(4)]
    simple = lower_bound(jobs, 4, FULL)
    best = found.followed(jobs, 4, FULL, found.search(jobs, 4, FULL, 1.0, rounds=20))
    bound = _load("witness_bound").curve_bound(jobs, 4, FULL, best)
    assert simple == pytest.approx(10.4)
    assert simple + 2 < bound <= best
