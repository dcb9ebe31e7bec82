"""Jobs are looked at only while memory may be used up soon; one that sleeps is not taken to grow all the time."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import pytest

from stoker.engine.govern import growth_watch
from stoker.engine.govern.growth_watch import GrowthWatch
from stoker.engine.govern.level_control import LevelControl
from stoker.engine.govern.memory_watch import MemoryWatch
from stoker.engine.jobs.managed_job import ManagedJob
from stoker.engine.jobs.table import JobTable
from stoker.model.state import BuildState
from stoker.sense.machine.cgroup import MemoryLimit
from stoker.sense.proc.processes import Process
from support.jobs import FixedExpectations, managed_job, use_of

MIB = 2**20


class Lab:
    """One job, which sleeps between its steps of 20 MiB, and memory that is left to it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, left: int) -> None:
        self.job: ManagedJob = managed_job(1)
        self.read: list[int] = []
        self._clock, self._held, self._cpu = 100.0, 0, 0.0
        jobs = JobTable(FixedExpectations(), BuildState())
        jobs.add(self.job)
        memory = MemoryWatch(jobs, LevelControl(BuildState()), lambda _held: MemoryLimit("", 2**40, 2**40 - left))
        memory.renew()
        self._watch = GrowthWatch(jobs, memory)
        monkeypatch.setattr(time, "monotonic", lambda: self._clock)
        monkeypatch.setattr(growth_watch, "task_times", self._times)

    def _times(self, tree: list[Process]) -> dict[int, tuple[float, float]]:
        self.read += [process.pid for process in tree]
        return {1: (self._cpu, 0.0)}

    def steps(self, count: int, *, there: bool = True, cpu_percent: float = 4.0) -> None:
        for _ in range(count):
            self._clock, self._held, self._cpu = self._clock + 0.5, self._held + 20 * MIB, self._cpu + 0.02
            use = use_of(self.job.job, rss=self._held, cpu_seconds=self._cpu)
            self.job.measure(replace(use, pids=(1,), cpu_percent=cpu_percent))
            process = Process(1, 9, 1, 1, "S", "python3", 1, 0, 0, self._held, 1)
            self._watch.look({1: process} if there else {})


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> Lab:
    return Lab(monkeypatch, 1024 * MIB)


def adds(job: ManagedJob) -> float:
    return job.growth.rise * min(1.0, job.growth.cores) / MIB


def test_a_job_that_sleeps_is_taken_to_add_what_it_adds_by_the_clock(short: Lab) -> None:
    short.steps(20)
    assert short.job.growth.rise / MIB > 900
    assert adds(short.job) == pytest.approx(40)


def test_while_there_is_memory_for_seconds_nothing_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Lab(monkeypatch, 2**36)
    lab.steps(20)
    assert lab.read == []
    assert lab.job.growth.cores == math.inf


def test_a_job_that_keeps_its_core_busy_is_not_read_and_counts_in_full(short: Lab) -> None:
    short.steps(20, cpu_percent=97.0)
    assert short.read == []
    assert short.job.growth.cores == math.inf


def test_a_job_of_which_a_part_runs_elsewhere_counts_in_full(short: Lab) -> None:
    short.steps(20)
    short.steps(1, there=False)
    assert short.job.growth.cores == math.inf
