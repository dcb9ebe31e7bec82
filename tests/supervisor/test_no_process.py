"""A supervisor at the limit of processes (ulimit -u, pids.max): nothing stays stopped, and the engine comes when it
can."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from stoker.contract.spec_file import StepSpec
from stoker.launch.refusals import LaunchError
from stoker.record.journal_reader import load_state
from support.supervisors import (
    GOVERNOR,
    READY,
    Start,
    alive,
    engines_of,
    exit_of,
    finish,
    job_pid,
    ninja,
    stopped,
    supervisor_of,
    until,
)

HOLDS = (
    GOVERNOR
    + """
if first:
    ready(); pids = jobs(3)
    for pid in pids[1:]: stop(pid)
    gate(1, [supervisor("build_pid")], [pids[2], pids[1]], pids)
while not os.path.exists(folder + "/exit.json"):
    note("heartbeat", "")
    time.sleep(0.05)
"""
)

REAL_ENGINE = """
import os, sys
os.execv(sys.executable, [sys.executable, "-P", "-m", "stoker.engine", sys.argv[1]])
"""

QUICK = {"engine_runner.RETRY_SECONDS": 0.2, "command.FORK_PAUSES": (0.1, 0.1, 0.0)}


def test_an_engine_that_cannot_be_started_is_stood_in_for_until_it_can(start: Start, tmp_path: Path) -> None:
    crowded = tmp_path / "crowded"
    paths = start(*ninja(tmp_path, 3), engine=HOLDS, figures=QUICK, crowded=crowded)
    until((paths.root / "gate.json").exists)
    crowded.touch()
    os.kill(engines_of(paths)[0], signal.SIGKILL)
    time.sleep(1)
    assert stopped(tmp_path, [0, 1, 2]) == [1, 2]
    finish(tmp_path, 0)
    until(lambda: stopped(tmp_path, [1, 2]) == [1])
    assert len(engines_of(paths)) == 1
    crowded.unlink()
    until(lambda: len(engines_of(paths)) == 2)
    os.killpg(job_pid(tmp_path, 1), signal.SIGCONT)
    for n in (1, 2):
        finish(tmp_path, n)
    assert exit_of(paths)["exit_code"] == 0


def test_where_no_engine_comes_back_the_build_ends_as_it_would(start: Start, tmp_path: Path) -> None:
    crowded = tmp_path / "crowded"
    paths = start(*ninja(tmp_path, 3), engine=HOLDS, figures=QUICK, crowded=crowded)
    until((paths.root / "gate.json").exists)
    crowded.touch()
    os.kill(engines_of(paths)[0], signal.SIGKILL)
    for n in (0, 2, 1):
        finish(tmp_path, n)
    assert exit_of(paths)["exit_code"] == 0


def test_an_engine_that_died_for_good_finishes_the_journal_when_there_is_room_again(
    start: Start, tmp_path: Path
) -> None:
    crowded = tmp_path / "crowded"
    ends = "note('last-words', '') if os.path.exists(folder + '/exit.json') else time.sleep(600)"
    paths = start(
        "sh",
        "-c",
        "until [ -e go ]; do sleep 0.05; done",
        engine=READY + f"ready(); {ends}",
        figures=QUICK,
        crowded=crowded,
    )
    engine = until(lambda: engines_of(paths))[0]
    crowded.touch()
    os.kill(engine, signal.SIGKILL)
    (tmp_path / "go").touch()
    exit_of(paths)
    crowded.unlink()
    until((paths.root / "last-words").exists)


def test_a_next_step_that_cannot_be_started_ends_the_build_with_126_and_says_why(start: Start, tmp_path: Path) -> None:
    crowded = tmp_path / "crowded"
    steps = [
        StepSpec(name, ("sh", "-c", script), str(tmp_path))
        for name, script in (("a", "touch crowded"), ("b", "exit 3"))
    ]
    paths = start(*steps[0].command, engine=REAL_ENGINE, figures=QUICK, steps=steps, crowded=crowded)
    assert exit_of(paths)["exit_code"] == 126
    assert b"stoker: sh: Resource temporarily unavailable" in paths.output.read_bytes()
    told = supervisor_of(paths)
    assert (told["step"], told["pid"]) == (2, 0)
    assert told["build_pid"] > 0, "below process 0 is all the machine"
    until(lambda: load_state(paths.journal).over)
    end = load_state(paths.journal)
    assert (end.outcome, end.step and end.step.name, end.reason) == ("failed", "b", "step b: exit status 126")


def test_a_first_command_that_cannot_be_started_is_told_at_once(start: Start, tmp_path: Path) -> None:
    (tmp_path / "crowded").touch()
    with pytest.raises(LaunchError, match=r"engine\.log"):
        start("true", figures=QUICK, crowded=tmp_path / "crowded")
    (log,) = tmp_path.glob("state/stoker/builds/*/engine.log")
    assert "process limit" in log.read_text()


@pytest.mark.long
def test_a_supervisor_that_fails_leaves_nothing_stopped(start: Start, tmp_path: Path) -> None:
    fault = 'lambda supervisor: 1 / (not os.path.exists(supervisor.path("fault")))'
    paths = start(*ninja(tmp_path, 3), engine=HOLDS, figures={"supervisor.Supervisor.hear_verdict": fault})
    until((paths.root / "gate.json").exists)
    assert stopped(tmp_path, [0, 1, 2]) == [1, 2]
    (paths.root / "fault").touch()
    os.kill(supervisor_of(paths)["supervisor_pid"], signal.SIGUSR1)
    until(lambda: not alive(supervisor_of(paths)["supervisor_pid"]))
    assert stopped(tmp_path, [0, 1, 2]) == []
    for n in range(3):
        finish(tmp_path, n)
