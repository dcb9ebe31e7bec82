"""What is measured of one moment is of that moment, though processes end while it is measured."""

from __future__ import annotations

import os

import pytest

from stoker.engine.loop.sampler import Sampler
from stoker.model.samples import MachineSample
from stoker.sense.machine.machine import MachineReader
from stoker.sense.proc.processes import Process

MIB = 2**20


def compiler(pid: int, held: int) -> Process:
    return Process(pid, 1, pid, 1, "R", "cc1plus", 5, 0, 0, held, 1)


def test_what_an_ended_job_held_is_no_more_in_use_than_in_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ended after the processes had been read, and before they were summed up."""
    reader = MachineReader.__new__(MachineReader)
    monkeypatch.setattr(reader, "build_holds", 0, raising=False)

    def read(now: float, held: int = 0, jobs: int = 0, *, load_held: float = 0.0) -> MachineSample:
        reader.build_holds = held
        return MachineSample(50.0, (50,), 1.0, 500 * MIB, held, 500 * MIB - held, "--memory")

    monkeypatch.setattr(reader, "read", read)
    sampler = Sampler(reader, os.getpid(), 0, orphaned=False)
    processes = {pid: compiler(pid, held) for pid, held in ((2, 339 * MIB), (3, 20 * MIB))}
    measured = sampler.sample(processes, 1000.0, jobs=20 * MIB, busy=True, ended={2})
    assert (measured.build_holds, measured.machine.memory_used) == (20 * MIB, 20 * MIB)
