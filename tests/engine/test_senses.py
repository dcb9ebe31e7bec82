"""What the senses make of processes that are being born."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from stoker.engine.loop.senses import Senses
from stoker.sense.proc import jobs
from stoker.sense.proc.schedulers import SchedulerProcess

NINJA = ("ninja", "-j9")


@pytest.fixture
def child() -> Iterator[int]:
    process = subprocess.Popen(["sleep", "600"], process_group=0)
    yield process.pid
    process.kill()
    process.wait()


async def test_a_newborn_that_is_in_the_midst_of_its_exec_is_met_in_the_next_moment(
    child: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its command line is the scheduler's, and then none at all, before it is its own."""
    shown = [NINJA, (), ("sh", "-c", "c++ a.cc")]

    def read(pid: int, _proc: Path) -> tuple[str, ...]:
        return shown.pop(0) if pid == child and len(shown) > 1 else shown[-1]

    monkeypatch.setattr(jobs, "read_cmdline", read)
    senses = Senses(os.getpid(), child, lambda _scheduler, _argv: None, lambda: None)
    schedulers = {
        os.getpid(): SchedulerProcess(os.getpid(), 1, "ninja", "/b", "/bin/ninja", NINJA, 9, "build.ninja", ())
    }
    for _ in range(2):
        assert child not in [newborn.process.pid for newborn in senses.newborns(schedulers, time.time())]
        assert senses.expecting
    assert child in [newborn.use.job.pid for newborn in senses.newborns(schedulers, time.time())]
    assert not senses.expecting
    senses.close()
