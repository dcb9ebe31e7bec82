"""What a server runs for jobs stops and goes on with them; one of its places is always left. On real processes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator

import pytest

from stoker.act import gate
from stoker.act.tree import Processes
from stoker.contract.process import stat_fields
from stoker.engine.govern.hosted_gate import HostedGate
from stoker.engine.jobs.managed_job import Life, ManagedJob
from stoker.sense.proc.jobs import JobUse
from support.jobs import managed_job
from support.program import until

Key = tuple[int, int]
Spawn = Callable[[], subprocess.Popen[bytes]]


@pytest.fixture
def spawn() -> Iterator[Spawn]:
    processes: list[subprocess.Popen[bytes]] = []

    def one() -> subprocess.Popen[bytes]:
        processes.append(subprocess.Popen(["sh", "-c", "sleep 60 & wait"]))
        until(lambda: below(processes[-1].pid), "its child")
        return processes[-1]

    yield one
    for process in processes:
        for pid in below(process.pid):
            os.kill(pid, 9)
        process.kill()
        process.wait()


def below(pid: int) -> list[int]:
    return Processes().below(pid)


def key(pid: int) -> Key:
    return pid, int(stat_fields(pid)[19])


def state(pid: int) -> str:
    return stat_fields(pid)[0].decode()


def stopped(process: subprocess.Popen[bytes]) -> bool:
    """The guest and what is below it."""
    return all(state(pid) == "T" for pid in (process.pid, *below(process.pid)))


def goes(process: subprocess.Popen[bytes]) -> bool:
    return all(state(pid) != "T" for pid in (process.pid, *below(process.pid)))


def member(number: int, life: Life = Life.RUNNING) -> ManagedJob:
    """A job whose own process is of no matter here."""
    return managed_job(number, life)


def use(member: ManagedJob, *guests: subprocess.Popen[bytes]) -> JobUse:
    trees = tuple((key(g.pid), *map(key, below(g.pid))) for g in guests)
    return JobUse(member.job, 0, 0, 0.0, 0.0, "cc1plus", "running", trees)


def test_a_guest_stops_and_goes_on_with_its_job(spawn: Spawn) -> None:
    guest, job, holder = spawn(), member(1), HostedGate(places=4)
    holder.see(job, use(job, guest))
    job.life = Life.FROZEN
    holder.settle([job])
    until(lambda: stopped(guest))
    assert holder.held == {key(guest.pid): job.job.key}
    version = holder.version
    holder.settle([job])
    assert holder.version == version, "nothing is new"
    job.life = Life.RUNNING
    holder.settle([job])
    until(lambda: goes(guest))
    assert holder.held == {}
    assert holder.version > version


def test_one_place_of_the_server_is_left_however_many_jobs_are_frozen(spawn: Spawn) -> None:
    guests, jobs = [spawn() for _ in range(3)], [member(n, Life.FROZEN) for n in range(1, 4)]
    holder = HostedGate(places=2)
    for job, guest in zip(jobs, guests, strict=True):
        holder.see(job, use(job, guest))
    holder.settle(jobs)
    until(lambda: [stopped(g) for g in guests] == [True, True, False])
    assert goes(guests[2])
    jobs[0].life = Life.RUNNING
    holder.settle(jobs)
    until(lambda: [stopped(g) for g in guests] == [False, True, True])


def test_the_guest_of_a_job_that_has_gone_does_not_stay_stopped(spawn: Spawn) -> None:
    guest, job, holder = spawn(), member(1, Life.FROZEN), HostedGate(places=1)
    holder.see(job, use(job, guest))
    holder.settle([job])
    until(lambda: stopped(guest))
    holder.settle([])
    until(lambda: goes(guest))


def test_what_an_earlier_engine_had_stopped_goes_on_with_a_running_job(spawn: Spawn) -> None:
    guest, job = spawn(), member(1)
    for pid in (guest.pid, *below(guest.pid)):
        os.kill(pid, 19)
    until(lambda: stopped(guest))
    HostedGate(places=1).see(job, use(job, guest))
    until(lambda: goes(guest))


def test_at_the_builds_end_hosted_are_ended_also_stopped_ones(spawn: Spawn) -> None:
    guest, job, holder = spawn(), member(1, Life.FROZEN), HostedGate(places=1)
    holder.see(job, use(job, guest))
    holder.settle([job])
    gate.end_hosted([job.target])
    assert guest.wait(20) == -15
