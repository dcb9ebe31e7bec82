"""Which steps and attempts the journal does not tell of yet, and what is expected of each."""

from __future__ import annotations

from typing import Any

import pytest

from stoker.contract import spec_file
from stoker.contract.spec_file import BuildSpec
from stoker.contract.supervisor_files import Run
from stoker.engine.steps import Steps, changes, known_run
from stoker.model.events import Event, Noticed, Record, SchedulerStarted, StepEnded, StepStarted
from stoker.model.reduce import reduce_all
from stoker.model.state import BuildState, Step

RUNS = [Run(1, 1, 10, 1.0, 0), Run(2, 1, 11, 2.0, 9), Run(2, 2, 12, 3.0, 0), Run(3, 1, 13, 4.0)]


STEP = spec_file.StepSpec("heavy", ("ninja", "-j9"), "/src", ("ninja",))


def at(index: int, attempt: int) -> BuildState:
    return BuildState(id="b", step=Step("s", index, 3, 1, attempt))


def steps_of(*steps: spec_file.StepSpec) -> Steps:
    return Steps(BuildSpec("b", "/src", ("ninja",), steps=steps))


def spec(**more: Any) -> Steps:
    return steps_of(STEP._replace(**more))


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (BuildState(id="b"), [(None, 1, False), (1, 2, True), (2, 2, False), (2, 3, True)]),
        (at(1, 1), [(1, 2, True), (2, 2, False), (2, 3, True)]),
        (at(2, 1), [(2, 2, False), (2, 3, True)]),
        (at(3, 1), []),
    ],
)
def test_everything_after_what_the_journal_told_of_is_news(state: BuildState, expected: list[object]) -> None:
    found = [(c.before.step if c.before else None, c.now.step, c.new_step) for c in changes(RUNS, state)]
    assert found == expected


def test_an_engine_that_takes_over_begins_where_the_journal_stands() -> None:
    assert known_run(RUNS, at(2, 1)) == RUNS[1]
    assert known_run(RUNS, BuildState(id="b")) == RUNS[-1]


def test_a_step_is_told_as_its_person_wrote_it_and_run_as_it_was_prepared() -> None:
    run = Run(1, 2, 12, 3.0, log_start=40)
    assert spec().started(run, 4) == StepStarted(1, 1, "heavy", ("ninja",), 12, 2, 4, 40)
    roots = spec().roots(7, run)
    assert (roots.top, roots.build, roots.cwd, roots.command, roots.begun) == (7, 12, "/src", ("ninja", "-j9"), 3.0)


def test_limits_are_those_of_the_profile_or_none() -> None:
    assert (spec().limit(1), spec().retries(1)) == (float("inf"), 5)
    assert (spec(level=2).limit(1), spec(retries=0).retries(1)) == (2.0, 0)


@pytest.mark.parametrize(
    ("wanted", "seen", "told"),
    [
        ("any", ["make"], ""),
        ("ninja", ["ninja", "make"], ""),
        ("ninja", ["samurai"], ""),
        ("ninja", [], ""),
        ("ninja", ["make"], "step heavy ran make; its profile expects ninja"),
        ("make", ["ninja"], "step heavy ran ninja; its profile expects make"),
        ("none", ["make", "ninja"], "step heavy ran make and ninja; its profile expects no scheduler"),
        ("none", [], ""),
    ],
)
def test_a_scheduler_that_nobody_expected_is_told(wanted: str, seen: list[str], told: str) -> None:
    assert spec(scheduler=wanted).surprise(1, seen) == ([Noticed("warning", told)] if told else [])


def test_a_step_is_judged_by_its_own_schedulers_and_not_by_those_of_the_step_before() -> None:
    first: list[Event] = [StepStarted(1, 2, "one", (), 1), SchedulerStarted(1, "ninja", 10, "/b", "", 2, None)]
    second: list[Event] = [StepStarted(2, 2, "two", (), 2), SchedulerStarted(2, "make", 11, "/b", "", 2, None)]
    events = [*first, *second, SchedulerStarted(3, "ninja", 12, "/b", "", 2, parent=2)]
    states = [reduce_all([Record(n, n, e) for n, e in enumerate(events[:k], 1)]) for k in (2, 5)]
    assert spec(scheduler="ninja").ended(states[0], 0) == [StepEnded(1, 0)]
    steps = steps_of(STEP, STEP._replace(name="two", scheduler="ninja"))
    surprise = Noticed("warning", "step two ran make; its profile expects ninja")
    assert steps.ended(states[1], 1) == [surprise, StepEnded(2, 1)]
