"""Whole random builds on small machines, every decision watched."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker.decide.memory.curves import Point
from stoker.decide.policy.decide import spare_places
from stoker.decide.policy.snapshot import Decision
from stoker.simulate.drivers import Stoker
from stoker.simulate.oracle import Prediction, oracle
from stoker.simulate.simulated_machine import Machine
from stoker.simulate.trace import TraceJob

GIB = 2**30
RAM = 16 * GIB
LARGEST = 10.0
"""GiB of the largest job: it fits the machine, reserve and all, so no job is beyond it."""


class Watched(Stoker):
    """The driver under test, with a look at each of its acts."""

    def tick(self, machine: Machine) -> float:
        following = super().tick(machine)
        left = machine.deck or machine.frozen
        assert machine.running or not left, "nothing runs though jobs wait"
        assert len(machine.running) <= (self._level or machine.cores + spare_places(machine.cores))
        return following

    def _act(self, machine: Machine, decision: Decision) -> None:
        assert re.search(r"\d", decision.why), decision.why
        if decision.action == "freeze":
            oldest = min(machine.running.values(), key=lambda j: (j.started, j.jid))
            assert decision.jid != oldest.jid, "the oldest was frozen"
        super()._act(machine, decision)


@st.composite
def jobs(draw: st.DrawFn, most: int = 12) -> list[TraceJob]:
    """Up to that many jobs: a climb, a peak and a tail of any height, some of them waiting for others."""
    made: list[TraceJob] = []
    for number in range(draw(st.integers(1, most))):
        seconds = draw(st.floats(0.5, 60))
        rise, fall = sorted(draw(st.tuples(st.floats(0.05, 0.9), st.floats(0.05, 0.9))))
        peak = draw(st.sampled_from([0.2, 0.5, 1.0, 4.0, LARGEST])) * draw(st.floats(0.3, 1.0))
        tail = peak * draw(st.floats(0.05, 1.0))
        sizes = ((0.0, 0.1 * peak), (rise * seconds, peak), (fall * seconds + 0.01, tail), (seconds + 0.02, tail))
        deps: tuple[str, ...] = ()
        if made and draw(st.integers(0, 4)) == 0:
            deps = (draw(st.sampled_from(made)).output,)
        tool = draw(st.sampled_from(["nvcc", "cxx", "link", "other"]))
        made.append(TraceJob(f"o{number}.o", tool, tuple(Point(a, s * GIB) for a, s in sizes), 1.0, deps))
    return made


def run(build: list[TraceJob], prediction: Prediction, seed: int, level: int | None = None, cores: int = 4) -> Machine:
    machine = Machine(build, cores, RAM)
    driver = Watched(oracle(prediction, seed), level)
    while not machine.over:
        machine.advance(driver.tick(machine))
    assert machine.tally.finished == len(build), "a job starved or was given up"
    return machine


@settings(max_examples=100)
@given(jobs(), st.sampled_from([None, 1, 3, 8]), st.sampled_from([2, 4, 16]))
def test_with_true_predictions_the_budget_is_kept(build: list[TraceJob], level: int | None, cores: int) -> None:
    machine = run(build, "exact", 1, level, cores)
    assert machine.tally.kills == 0
    assert machine.tally.peak < RAM


@pytest.mark.soak
@settings(max_examples=2000)
@given(jobs(25), st.sampled_from(["noisy", "absent"]), st.integers(0, 5))
def test_whatever_is_predicted_every_one_of_thousands_ends(
    build: list[TraceJob], prediction: Prediction, seed: int
) -> None:
    run(build, prediction, seed, cores=8)


@pytest.mark.long
@settings(max_examples=40)
@given(jobs(), st.sampled_from(["noisy", "absent"]), st.integers(0, 5))
def test_whatever_is_predicted_every_job_ends(build: list[TraceJob], prediction: Prediction, seed: int) -> None:
    run(build, prediction, seed, cores=8)
