"""What an observer makes of what the senses show it."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stoker.engine.jobs.deck import Birth
from stoker.engine.jobs.ninja_logs import Tracked
from stoker.engine.jobs.scheduler_book import SchedulerBook
from stoker.engine.loop.observer import Observer
from stoker.engine.loop.steps import Roots
from stoker.model import events as ev
from stoker.model.state import BuildState
from stoker.sense.proc import jobs
from stoker.sense.proc.schedulers import Scheduler

NINJA = ("ninja", "-j9")


@pytest.fixture
def child() -> Iterator[int]:
    process = subprocess.Popen(["sleep", "600"], process_group=0)
    yield process.pid
    process.kill()
    process.wait()


async def test_a_newborn_that_is_in_the_midst_of_its_exec_is_met_in_the_next_moment(
    child: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its command line is the scheduler's, and then none at all, before it is its own."""
    shown = [NINJA, (), ("sh", "-c", "c++ a.cc")]

    def read(pid: int, _proc: Path) -> tuple[str, ...]:
        return shown.pop(0) if pid == child and len(shown) > 1 else shown[-1]

    def receive(births: list[Birth], _now: float) -> list[ev.Event]:
        born.extend(births)
        return []

    monkeypatch.setattr(jobs, "read_cmdline", read)
    born: list[Birth] = []
    governor: Any = SimpleNamespace(receive=receive)
    machine: Any = None
    roots = Roots(os.getpid(), child, "/", NINJA, time.time())
    observer = Observer(roots, BuildState(), 0.0, tmp_path / "output.log", tmp_path, machine, governor)
    scheduler = Scheduler(os.getpid(), 1, "ninja", "/b", "/bin/ninja", NINJA, 9, "build.ninja", ())
    observer._tracked[scheduler.key] = Tracked(SchedulerBook(1, scheduler, time.time()))
    for _ in range(2):
        observer.births(time.time())
        assert observer.expecting
    observer.births(time.time())
    assert child in [birth.job.pid for birth in born]
    assert not observer.expecting
    observer._exits.close()
