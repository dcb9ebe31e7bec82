"""What a job on the deck remembers of itself."""

from __future__ import annotations

import pytest

from stoker.act.gate import Target
from stoker.engine.jobs.deck import Member
from stoker.model.events import JobState
from stoker.sense.proc.jobs import Job, JobUse

MIB = 2**20


def member_of(state: JobState, *, early: bool = False) -> Member:
    job = Job(1, 1, (1, 1), 0.0, ("cc",), "a.o", "cxx")
    return Member(1, 1, job, Target(1, 1, leads=False), state, 0.0, 0.0, 0.0, early=early)


@pytest.mark.parametrize(("state", "early"), [("running", True), ("frozen", False)])
def test_a_job_counts_as_early_until_it_is_stopped_by_whomever(state: JobState, early: bool) -> None:
    member = member_of("on_deck", early=True)
    member.move(state, 1.0)
    member.move("running", 2.0)
    assert member.early is early


def test_how_fast_it_grew_before_a_stop_is_stale_until_it_is_measured_after_it() -> None:
    member = member_of("running")

    def after(cpu_seconds: float, mib: int) -> tuple[float, bool]:
        """MiB a second and whether that is stale, once it is seen to have used and to hold so much."""
        member.use(JobUse(member.job, mib * MIB, mib * MIB, 0.0, cpu_seconds, "", "running"))
        return round(member.climb.rise / MIB), member.climb.stale

    assert after(0.5, 100) == (200, False)
    member.move("frozen", 1.0)
    assert after(0.8, 300) == (200, True), "it went on for a moment before it stopped"
    member.move("running", 9.0)
    assert after(1.0, 300) == (200, True), "too little work to tell"
    assert after(1.3, 310) == (20, False), "what it grew by before its stop is not counted"


def test_a_leap_counts_before_a_whole_span_has_been_measured() -> None:
    member = member_of("running")
    for cpu_seconds, mib in ((0.1, 20), (0.2, 200)):
        member.use(JobUse(member.job, mib * MIB, mib * MIB, 0.0, cpu_seconds, "", "running"))
    assert member.climb.rise / MIB == pytest.approx(500)
