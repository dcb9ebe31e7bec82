"""A build on paper with others that compile for it: laws that hold for any build, and the figures of small ones."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker.cli.main import main
from stoker.cli.remote_table import far_of
from stoker.decide.memory.curves import Point
from stoker.simulate.remote_build import GIGABIT, Costs, Far, simulate_remote
from stoker.simulate.trace import TraceJob

FREE = Costs(here=0.1, there=0.9, sent=0.0, received=0.0, waits=0.0)


def job(name: str, seconds: float, tool: str = "cxx", deps: tuple[str, ...] = ()) -> TraceJob:
    return TraceJob(name, tool, (Point(0.0, 1.0), Point(seconds, 1.0)), deps=deps)


def makespan(jobs: list[TraceJob], cores: int, slots: int, costs: Costs = FREE, bandwidth: float = GIGABIT) -> float:
    return simulate_remote(jobs, cores, Far(slots, bandwidth, costs)).makespan


def test_a_fleet_takes_all_but_the_preprocessing() -> None:
    jobs = [job(f"{n}.o", 10.0) for n in range(100)]
    assert makespan(jobs, 1, 0) == pytest.approx(1000.0)
    # One core preprocesses a second at a time; the last one's nine seconds are done elsewhere.
    assert makespan(jobs, 1, 1000) == pytest.approx(109.0)


def test_links_and_kernels_stay() -> None:
    jobs = [job("k.cu.o", 50.0, "nvcc"), job("a.o", 10.0), job("lib", 5.0, "link", ("k.cu.o", "a.o"))]
    result = simulate_remote(jobs, 4, Far(100, GIGABIT, FREE))
    assert result.makespan == pytest.approx(55.0)
    assert result.went == 1
    assert result.bound_by == "longest chain"


def test_a_narrow_wire_is_shared_and_sets_the_time() -> None:
    jobs = [job(f"{n}.o", 1.0) for n in range(50)]
    costs = Costs(here=0.0, there=1.0, sent=1e6, received=0.0, waits=0.0)
    result = simulate_remote(jobs, 50, Far(50, 1e6, costs))
    assert result.makespan == pytest.approx(51.0)
    assert result.sent == pytest.approx(50e6)
    assert result.bound_by == "wire"


def test_where_all_slots_are_taken_this_machine_compiles_too() -> None:
    result = simulate_remote([job(f"{n}.o", 10.0) for n in range(8)], 4, Far(4, GIGABIT, FREE))
    assert (result.went, result.most) == (4, 4)
    assert result.makespan < 20.0


@st.composite
def builds(draw: st.DrawFn) -> list[TraceJob]:
    jobs: list[TraceJob] = []
    for number in range(draw(st.integers(1, 25))):
        deps = draw(st.sets(st.sampled_from([j.output for j in jobs]), max_size=3)) if jobs else set()
        tool = draw(st.sampled_from(["cxx", "cxx", "nvcc", "link"]))
        jobs.append(job(f"o{number}", draw(st.floats(0.01, 50.0)), tool, tuple(sorted(deps))))
    return jobs


@given(builds(), st.integers(1, 8), st.integers(0, 40), st.floats(1e3, 1e9))
@settings(max_examples=60)
def test_every_job_is_done_and_no_bound_is_beaten(
    jobs: list[TraceJob], cores: int, slots: int, bandwidth: float
) -> None:
    costs = Costs(here=0.2, there=0.9, sent=1e5, received=5e4, waits=0.01)
    result = simulate_remote(jobs, cores, Far(slots, bandwidth, costs))
    assert result.most <= slots
    assert math.isfinite(result.makespan)
    for name in ("all cores", "longest chain"):
        assert result.makespan >= result.bounds[name] * (1 - 1e-9)
    alone = simulate_remote(jobs, cores, Far(0, bandwidth, costs))
    assert alone.went == 0


def test_words_of_the_option() -> None:
    assert far_of("100") == Far(100, GIGABIT)
    assert far_of("30,10G").bandwidth == pytest.approx(10 * GIGABIT)
    assert far_of("30,100M").bandwidth == pytest.approx(GIGABIT / 10)


@pytest.mark.parametrize("words", ["", "0", "10001", "10,", "10,0", "ten", "10,1K", "-5"])
def test_other_words_are_refused_with_an_example(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--synthetic", "uniform", "--cores", "4", f"--remote={words}"]) == 2
    assert "as in 100 or 100,10G" in capsys.readouterr().err


def test_the_table_and_its_json(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["simulate", "--synthetic", "uniform", "--jobs", "50", "--cores", "2", "--remote", "40,10G"]
    assert main(command) == 0
    out = capsys.readouterr().out
    assert [line.split()[0] for line in out.splitlines()[:5]] == ["slots", "0", "10", "30", "40"]
    assert "docs/fleet.md" in out
    assert main([*command, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [row["slots"] for row in data["compared"]] == [0, 10, 30, 40]
    assert data["compared"][0]["makespan"] > data["compared"][3]["makespan"]


def test_the_cores_here_must_be_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--synthetic", "uniform", "--remote", "10"]) == 2
    assert "add --cores" in capsys.readouterr().err
