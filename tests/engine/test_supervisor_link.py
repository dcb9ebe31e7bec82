"""What the engine knows of its supervisor, from the supervisor's file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stoker.config.paths import BuildPaths
from stoker.contract.process import start_ticks, stat_fields
from stoker.engine.loop.supervisor_link import SupervisorLink
from support.program import until

GONE = 2**22 + 1
"""No process has this number: the kernel's highest is 2**22."""


@pytest.fixture
def runs() -> Iterator[int]:
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process.pid
        process.kill()


def told(step: int, build: int) -> dict[str, Any]:
    """A killed supervisor's word on a step."""
    run = {"step": step, "attempt": 1, "pid": build, "begun": 1.0, "log_start": 0}
    supervisor = {"supervisor_pid": GONE, "supervisor_start": 7, "started": 1.0, "past": []}
    return {**supervisor, "build_pid": build, "build_start": start_ticks(build) or 7, **run}


def test_a_step_that_a_supervisor_started_before_it_was_killed_is_not_the_end(tmp_path: Path, runs: int) -> None:
    paths = BuildPaths(tmp_path)
    paths.supervisor.write_text(json.dumps(told(1, GONE)))
    link = SupervisorLink(paths)
    assert link.build_is_over()
    paths.supervisor.write_text(json.dumps(told(2, runs)))
    assert not link.build_is_over()
    assert link.runs[-1].step == 2


def test_a_stopped_supervisor_without_standbys_is_set_going(tmp_path: Path, runs: int) -> None:
    paths = BuildPaths(tmp_path)
    supervisor = {"supervisor_pid": runs, "supervisor_start": start_ticks(runs)}
    paths.supervisor.write_text(json.dumps({**told(1, runs), **supervisor}))
    link = SupervisorLink(paths)
    os.kill(runs, signal.SIGSTOP)
    until(lambda: stat_fields(runs)[0] == b"T", "the stop")
    assert not link.was_killed()
    until(lambda: stat_fields(runs)[0] == b"S", "it going on")
