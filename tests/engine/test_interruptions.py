"""Which jobs could not end because their scheduler was killed or the build is being stopped: real processes."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace

import pytest

from stoker.contract.process import Key, key_of
from stoker.contract.supervisor_files import LeftOver
from stoker.engine.jobs.interruptions import Interruptions
from stoker.engine.jobs.managed_job import Life, ManagedJob
from support.jobs import managed_job
from support.program import until

GONE: Key = (2**22 + 1, 1)
"""No process has this pid (proc(5), pid_max)."""


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


def job(key: Key, life: Life = Life.RUNNING) -> ManagedJob:
    known = managed_job(1, life)
    return replace(known, job=replace(known.job, pid=key[0], start_ticks=key[1]))


def told(left: LeftOver | None = None, *, stopping: bool = False) -> Interruptions:
    return Interruptions(lambda: stopping, lambda: left)


def test_a_scheduler_that_ended_by_itself_has_waited_for_its_jobs() -> None:
    assert not told().cut_off(GONE, [job((2**22 + 2, 1))])


def test_one_of_which_a_job_lives_was_killed(sleeper: subprocess.Popen[bytes]) -> None:
    assert told().cut_off(GONE, [job(key_of(sleeper.pid))])
    assert not told().cut_off(GONE, [job((sleeper.pid, 1))]), "another process that has its pid now"


def test_one_that_a_signal_has_ended_was_killed_before_anybody_announces_it(sleeper: subprocess.Popen[bytes]) -> None:
    key = key_of(sleeper.pid)
    os.kill(sleeper.pid, signal.SIGKILL)
    until(lambda: key_of(sleeper.pid)[1] == 0, "its end")
    assert told().cut_off(key, [])
    assert not told().cut_off((sleeper.pid, 1), [])


def test_what_the_supervisor_announces_outlasts_the_processes() -> None:
    scheduler, key = (2**22 + 2, 5), (2**22 + 3, 6)
    assert told(LeftOver(scheduler, signal.SIGKILL)).cut_off(scheduler, [job(key)])
    assert told(LeftOver(GONE, None, (key,))).cut_off(scheduler, [job(key)])
    assert not told(LeftOver(scheduler, None)).cut_off(scheduler, [job(key)])
    assert not told(LeftOver(GONE, signal.SIGKILL, ((key[0], 7),))).cut_off(scheduler, [job(key)])


def test_a_stop_interrupts_everything() -> None:
    assert told(stopping=True).cut_off(GONE, [])


@pytest.mark.parametrize("life", [Life.ON_DECK, Life.FROZEN])
def test_a_job_that_was_stopped_cannot_have_ended_unless_stoker_ended_it(life: Life) -> None:
    """The kernel hangs up on what a killed scheduler leaves stopped."""
    stopped, dropped = job((2**22 + 2, 1), life), job((2**22 + 2, 1), life)
    dropped.doom = "dropped"
    assert told().cut_off(GONE, [stopped])
    assert not told().cut_off(GONE, [dropped])
