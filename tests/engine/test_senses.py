"""What the senses make of processes that are being born."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from stoker.contract.process import start_ticks
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


def _passing() -> subprocess.Popen[bytes]:
    return subprocess.Popen(["true"])


async def test_an_exit_may_lie_anywhere_in_the_time_for_which_the_loop_did_not_listen() -> None:
    """An engine that was stopped for half a minute learns of all exits at once, when it goes on."""
    woken = asyncio.Event()
    senses = Senses(os.getpid(), os.getpid(), lambda _scheduler, _argv: None, woken.set)
    now = time.time()
    ends = []
    for away in (30.0, 0.0):
        process = _passing()
        senses.listen(now - away)
        senses.listen(now)
        senses.watch_exit((process.pid, start_ticks(process.pid) or 0))
        await woken.wait()
        woken.clear()
        process.wait()
        ends += senses.take_exits()
    senses.close()
    stopped, at_once = ends
    assert stopped.last_seen == now - 30
    assert at_once.last_seen >= now
