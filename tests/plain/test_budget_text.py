"""What the end says of a budget that was exceeded."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stoker.model.events import JobState
from stoker.model.state import Job, MemoryUse
from stoker.model.update import Update
from stoker.show.budget_text import promised_of
from stoker.show.plain import PlainRenderer

from .fakes import GIB, START, done, machine, state


def test_the_end_says_for_how_long_the_budget_was_exceeded() -> None:
    over = MemoryUse(build_peak=5 * GIB, used_peak=6 * GIB, over_seconds=65)
    lines = PlainRenderer().update(Update(replace(done(), memory=over, machine=machine(2, 4)), "ended"), START)
    assert "stoker: memory: over the budget for 1:05, at most 6.0 GiB of 4.0 GiB" in lines


def test_it_says_nothing_of_one_that_was_kept() -> None:
    lines = PlainRenderer().update(Update(done(), "ended"), START)
    assert not any("over the budget" in line for line in lines)


@pytest.mark.parametrize(
    ("states", "said"),
    [
        (("running", "frozen"), "expected of running jobs"),
        (("frozen", "on_deck"), "held by frozen jobs"),
    ],
)
def test_what_is_promised_is_of_running_jobs_only_while_some_run(states: tuple[JobState, ...], said: str) -> None:
    jobs = {n: Job(n, 1, n, f"{n}.o", "cxx", START, state=each) for n, each in enumerate(states)}
    assert promised_of(state(jobs=jobs)) == said
