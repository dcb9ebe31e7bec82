"""What a job on the deck remembers of itself."""

from __future__ import annotations

import pytest

from stoker.act.gate import Target
from stoker.engine.deck import Member
from stoker.model.events import JobState
from stoker.sense.jobs import Job


@pytest.mark.parametrize(("state", "early"), [("running", True), ("frozen", False)])
def test_a_job_counts_as_early_until_it_is_stopped_by_whomever(state: JobState, early: bool) -> None:
    job = Job(1, 1, (1, 1), 0.0, ("cc",), "a.o", "cxx")
    member = Member(1, 1, job, Target(1, 1, leads=False), "on_deck", 0.0, 0.0, 0.0, early=True)
    member.move(state, 1.0)
    member.move("running", 2.0)
    assert member.early is early
