"""Whole jobs stop and go on, strays included, and nobody else does."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from stoker.act import gate
from stoker.act.gate import Target
from stoker.act.tree import descendants
from stoker.contract.process import start_ticks, stat_fields
from stoker.supervisor import standby
from support.program import until

STRAY = "import os, time; os.setsid(); time.sleep(60)"
JOB = f'sleep 60 & "{sys.executable}" -c "{STRAY}" & wait'


@pytest.fixture
def job() -> Iterator[Target]:
    """A shell with a child in its group and one that left for a session of its own, as ninja would start it."""
    process = subprocess.Popen(["sh", "-c", JOB], process_group=0)
    until(lambda: any(fields_of(pid)[3] == str(pid).encode() for pid in descendants(process.pid)), "the stray")
    yield Target(process.pid, start_ticks(process.pid) or 0, leads=True)
    for pid in [*descendants(process.pid), process.pid]:
        os.kill(pid, signal.SIGKILL)
    process.wait()


def fields_of(pid: int) -> list[bytes]:
    return stat_fields(pid) or [b""] * 20


def states(target: Target) -> set[bytes]:
    return {fields_of(pid)[0] for pid in [target.pid, *descendants(target.pid)]}


def test_a_frozen_job_is_stopped_with_all_its_processes_and_goes_on_whole(job: Target) -> None:
    assert len(descendants(job.pid)) == 2
    assert all(gate.freeze([job]))
    until(lambda: states(job) == {b"T"}, "the freeze")
    assert all(gate.thaw([job]))
    until(lambda: b"T" not in states(job), "the thaw")


def test_what_talks_to_another_machine_goes_on_while_the_rest_of_its_job_is_frozen(job: Target) -> None:
    launcher = min(descendants(job.pid))
    spared = replace(job, spared=((launcher, start_ticks(launcher) or 0),))
    assert all(gate.freeze([spared]))
    rest = [job.pid, *(pid for pid in descendants(job.pid) if pid != launcher)]
    until(lambda: {fields_of(pid)[0] for pid in rest} == {b"T"}, "the freeze")
    assert fields_of(launcher)[0] == b"S"
    assert all(gate.thaw([spared]))
    until(lambda: b"T" not in states(job), "the thaw")


def test_a_held_newborn_goes_on(job: Target) -> None:
    assert gate.hold(job)
    until(lambda: fields_of(job.pid)[0] == b"T", "the hold")
    assert gate.release(job)
    until(lambda: fields_of(job.pid)[0] != b"T", "the release")


def test_a_killed_job_leaves_nothing_behind() -> None:
    process = subprocess.Popen(["sh", "-c", JOB], process_group=0)
    until(lambda: len(descendants(process.pid)) == 2, "children")
    below = descendants(process.pid)
    assert gate.kill(Target(process.pid, start_ticks(process.pid) or 0, leads=True))
    assert process.wait() == -signal.SIGKILL
    until(lambda: all(start_ticks(pid) is None for pid in below), "the end of its children")


def test_a_process_with_a_reused_pid_is_left_alone(job: Target) -> None:
    other = Target(job.pid, job.start_ticks - 1, leads=True)
    assert not any(
        (gate.hold(other), gate.release(other), gate.kill(other), *gate.freeze([other]), *gate.thaw([other]))
    )
    time.sleep(0.05)
    assert b"T" not in states(job)


def test_a_job_of_make_is_stopped_without_the_rest_of_its_group() -> None:
    """Make's jobs share its group: a signal to the group would stop make."""
    beside = subprocess.Popen(["sleep", "60"], process_group=0)
    process = subprocess.Popen(["sh", "-c", "sleep 60; true"], process_group=beside.pid)
    try:
        # Stopped between its birth and its program, a child would leave the shell in D, as vfork does.
        until(lambda: [Path(f"/proc/{pid}/comm").read_text() for pid in descendants(process.pid)] == ["sleep\n"])
        target = Target(process.pid, start_ticks(process.pid) or 0, leads=False)
        assert all(gate.freeze([target]))
        until(lambda: states(target) == {b"T"}, "the freeze")
        assert fields_of(beside.pid)[0] != b"T"
        assert all(gate.thaw([target]))
        until(lambda: b"T" not in states(target), "the thaw")
    finally:
        for pid in [*descendants(process.pid), process.pid, beside.pid]:
            os.kill(pid, signal.SIGKILL)
        process.wait()
        beside.wait()


def test_the_kernel_would_take_a_job_first_and_its_children_too(job: Target) -> None:
    gate.raise_oom_score([job.pid])
    score = Path(f"/proc/{job.pid}/oom_score_adj")
    assert int(score.read_text()) == gate.SCORE
    score.write_text("900")
    gate.raise_oom_score([job.pid])
    assert int(score.read_text()) == 900


@pytest.fixture
def reaper(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Orphans come to this process, as to a supervisor, which takes itself for the engine below it."""
    prctl = ctypes.CDLL(None).prctl
    prctl(standby.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    monkeypatch.setattr(os, "getppid", os.getpid)
    yield
    prctl(standby.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def killed(process: subprocess.Popen[str]) -> Target:
    """A job as make starts it, that has just been killed and that nobody has waited for yet."""
    target = Target(process.pid, start_ticks(process.pid) or 0, leads=False)
    process.kill()
    until(lambda: fields_of(process.pid)[0] == b"Z", "the end")
    return target


@pytest.mark.usefixtures("reaper")
def test_what_a_killed_job_leaves_behind_is_killed_with_all_below_it() -> None:
    script = "sh -c 'sleep 60 & echo $!; wait' & echo $!; wait"
    process = subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    rest = [int(process.stdout.readline()) for _ in range(2)]
    gate.leave(killed(process), rest)
    until(lambda: not any(map(start_ticks, rest)), "the end of the rest")
    process.stdout.close()
    process.wait()
    for pid in rest:
        with suppress(ChildProcessError):  # the inner shell may have waited for its own before it was killed too
            os.waitpid(pid, 0)


def test_a_process_that_has_got_the_pid_of_a_killed_jobs_is_left_alone() -> None:
    process = subprocess.Popen(["sleep", "60"], text=True)
    other = subprocess.Popen(["sleep", "60"])
    gate.leave(killed(process), [process.pid, other.pid])
    with pytest.raises(subprocess.TimeoutExpired):
        other.wait(0.5)
    for each in (process, other):
        each.kill()
        each.wait()
