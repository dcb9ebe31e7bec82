"""What a new engine makes of jobs that an earlier one knew: how long they have run, and where."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stoker.engine.jobs.managed_job import Life, ManagedJob
from stoker.engine.jobs.newborn import Birth, Clocks, left_behind, managed
from stoker.engine.jobs.table import JobTable
from stoker.model import events as ev
from stoker.model.remote import NO_HOST
from stoker.model.state import BuildState, Job
from stoker.sense.proc.jobs import JobProcess
from stoker.sense.proc.processes import CLK_TCK, Process
from stoker.sense.proc.schedulers import SchedulerProcess
from support.jobs import FixedExpectations, use_of

NINJA = SchedulerProcess(7, 70, "ninja", "/b", "ninja", ("ninja",), 8, "build.ninja", ())
NOW = 5000.0
"""When the new engine begins: a minute after the jobs' birth."""

ON_DECK = Job(1, 1, 4000, "a.o", "cxx", NOW - 60, state="on_deck")
RUNNING = Job(1, 1, 4000, "a.o", "cxx", NOW - 60, running_since=NOW - 20, stood=5.0)
FROZEN = Job(1, 1, 4000, "a.o", "cxx", NOW - 60, state="frozen", running_since=NOW - 50, frozen_at=NOW - 10)


def adopted(before: Job) -> ManagedJob:
    """The job as the new engine has it."""
    clocks = Clocks.now()
    born = round((clocks.boottime - 60) * CLK_TCK)
    state = {"on_deck": "T", "frozen": "T", "running": "S"}[before.state]
    process = Process(before.pid, NINJA.pid, before.pid, before.pid, state, "sh", born, 0, 0, 0, 1)
    job = JobProcess(before.pid, born, NINJA.key, before.started, ("g++",), "a.o", "cxx")
    return managed(Birth(1, 1, use_of(job), process, NINJA, before), NOW, clocks, held=True)


@pytest.mark.parametrize(("before", "seconds"), [(ON_DECK, 0.0), (RUNNING, 15.0), (FROZEN, 40.0)])
def test_the_time_for_which_a_job_stood_before_the_engine_was_replaced_is_no_work(before: Job, seconds: float) -> None:
    """Half a hundred jobs on deck seemed to have run for as long as they had waited by then."""
    job = adopted(before)
    assert job.stopped_for(job.since) == pytest.approx(60.0 - seconds, abs=0.02)


def test_it_ends_with_the_seconds_for_which_it_ran() -> None:
    table, job = JobTable(FixedExpectations(), BuildState()), adopted(ON_DECK)
    table.add(job)
    table.move(job, Life.RUNNING, job.since)
    table.exit(job.job.key, NOW, NOW)
    end = table.end(job, ev.JobFinished(1, 1, "a.o", "cxx", 63.0, "ok"))
    assert end.seconds == pytest.approx(3.0, abs=0.02)


def test_one_that_ended_while_no_engine_ran_has_not_run_while_it_stood() -> None:
    table, job = JobTable(FixedExpectations(), BuildState()), left_behind(RUNNING, NINJA, NOW)
    table.add(job)
    table.exit(job.job.key, NOW, NOW + 5)
    assert table.end(job, ev.JobFinished(1, 1, "a.o", "cxx", 62.0, "ok")).seconds == pytest.approx(17.0)


def test_what_another_machine_compiles_is_there_for_the_next_engine_too_until_it_looks() -> None:
    job = adopted(replace(RUNNING, host="far"))
    assert (job.host, job.was_away, job.counts) == ("far", "far", False)
    assert adopted(replace(RUNNING, host=NO_HOST)).was_away == ""


def test_what_another_machine_finished_while_no_engine_ran_is_counted_there() -> None:
    table, job = JobTable(FixedExpectations(), BuildState()), left_behind(replace(RUNNING, host="far"), NINJA, NOW)
    table.add(job)
    table.exit(job.job.key, NOW, NOW + 5)
    assert table.end(job, ev.JobFinished(1, 1, "a.o", "cxx", 62.0, "ok")).host == "far"
