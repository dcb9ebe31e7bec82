"""What a job remembers of itself."""

from __future__ import annotations

import pytest

from stoker.engine.jobs.managed_job import Life, ManagedJob
from stoker.engine.jobs.table import JobTable
from stoker.model.state import BuildState
from support.jobs import FixedExpectations, managed_job, use_of

MIB = 2**20


@pytest.fixture
def table() -> JobTable:
    return JobTable(FixedExpectations(), BuildState())


def grow(job: ManagedJob, cpu_seconds: float, mib: int) -> None:
    job.measure(use_of(job.job, rss=mib * MIB, cpu_seconds=cpu_seconds))


def test_a_job_counts_as_early_until_it_is_stopped_by_whomever(table: JobTable) -> None:
    job = managed_job(1, Life.ON_DECK)
    table.add(job)
    job.early = True
    table.move(job, Life.RUNNING, 1.0)
    assert job.early
    table.move(job, Life.FROZEN, 2.0)
    table.move(job, Life.RUNNING, 3.0)
    assert not job.early


def test_how_fast_it_grew_before_a_stop_is_stale_until_it_is_measured_after_it(table: JobTable) -> None:
    job = managed_job(1)
    table.add(job)

    def after(cpu_seconds: float, mib: int) -> tuple[float, bool]:
        """MiB a second and whether that is stale, once it is seen to have used and to hold so much."""
        grow(job, cpu_seconds, mib)
        return round(job.growth.rise / MIB), job.growth.stale

    assert after(0.5, 100) == (200, False)
    table.move(job, Life.FROZEN, 1.0)
    assert after(0.8, 300) == (200, True), "it went on for a moment before it stopped"
    table.move(job, Life.RUNNING, 9.0)
    assert after(1.0, 300) == (200, True), "too little work to tell"
    assert after(1.3, 310) == (20, False), "what it grew by before its stop is not counted"


def test_a_leap_counts_before_a_whole_span_has_been_measured() -> None:
    job = managed_job(1)
    grow(job, 0.1, 20)
    grow(job, 0.2, 200)
    assert job.growth.rise / MIB == pytest.approx(500)


def test_a_job_on_deck_does_not_run_and_a_frozen_one_has_run(table: JobTable) -> None:
    job = managed_job(1, Life.ON_DECK)
    born = job.arrived
    table.add(job)
    assert job.ran_for(born + 9.0) == 0
    table.move(job, Life.RUNNING, born + 10.0)
    assert job.ran_for(born + 12.0) == pytest.approx(2.0)
    table.move(job, Life.FROZEN, born + 13.0)
    assert job.ran_for(born + 20.0) == pytest.approx(3.0)


def test_what_is_learned_of_a_job_on_deck_is_no_sample_of_its_run() -> None:
    expected = FixedExpectations()
    table = JobTable(expected, BuildState())
    waiting, running = managed_job(1, Life.ON_DECK), managed_job(2)
    for job in (waiting, running):
        job.arrived -= 5.0
        table.add(job)
        table.measure(job, use_of(job.job, rss=MIB))
    ran = dict(expected.sampled)
    assert ran[1] == 0
    assert ran[2] >= 5.0
