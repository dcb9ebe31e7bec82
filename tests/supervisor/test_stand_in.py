"""Without an engine nothing stays stopped for ever, and still no more jobs run than may: real ninja, real signals."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from stoker.config.paths import BuildPaths
from stoker.supervisor import engine_runner
from support.program import PYPI_NINJA, write_ninja
from support.supervisors import (
    GOVERNOR,
    Start,
    engines_of,
    exit_of,
    finish,
    given_up,
    job,
    job_pid,
    ninja,
    state_of,
    stopped,
    supervisor_of,
    until,
)

DIES = "sys.exit(1)"
STOPS = "os.kill(os.getpid(), signal.SIGSTOP)"
NEVER = {"engine_runner.DEAF_SECONDS": 600}
"""The supervisor does not stand in: the test's own engine runner does."""


def holds(jobs: int, stopped: Sequence[int], level: int, then: str, *, gate: str = "") -> str:
    """An engine that stops some jobs, writes that down (`gate`: does this instead), and then does as it is told."""
    gate = gate or f"gate({level}, [supervisor('build_pid')], [pids[n] for n in {stopped}], pids)"
    return f"""{GOVERNOR}
if first:
    ready()
    pids = jobs({jobs})
    for n in {stopped}:
        stop(pids[n])
    {gate}
{then}
"""


def test_while_the_engine_rests_a_stopped_job_goes_on_for_each_that_ends_in_the_given_order(
    start: Start, tmp_path: Path
) -> None:
    paths = start(*ninja(tmp_path, 4), engine=holds(4, [2, 1, 3], 1, DIES))
    until(lambda: given_up(paths))
    time.sleep(0.6)
    assert stopped(tmp_path, [0, 1, 2, 3]) == [1, 2, 3]
    finish(tmp_path, 0)
    until(lambda: stopped(tmp_path, [1, 2, 3]) == [1, 3])
    time.sleep(0.6)
    assert stopped(tmp_path, [1, 3]) == [1, 3]
    for n in (2, 1, 3):
        finish(tmp_path, n)
    assert exit_of(paths)["exit_code"] == 0


def test_a_wider_level_lets_as_many_go_at_once(start: Start, tmp_path: Path) -> None:
    paths = start(*ninja(tmp_path, 4), engine=holds(4, [3, 1, 2], 3, DIES))
    until(lambda: given_up(paths))
    until(lambda: stopped(tmp_path, [0, 1, 2, 3]) == [2])
    time.sleep(0.6)
    assert stopped(tmp_path, [2]) == [2]
    for n in range(4):
        finish(tmp_path, n)
    assert exit_of(paths)["exit_code"] == 0


def test_a_scheduler_that_is_about_to_start_a_job_in_place_of_one_that_ended_is_waited_for(
    start: Start, tmp_path: Path
) -> None:
    """On a busy machine it comes to that late: the job let go for it and its own would run at once."""
    scheduler = f"""
import os, subprocess, time
def start(command):
    return subprocess.Popen(["sh", "-c", command], process_group=0)
first, second = start({job(0)!r}), start({job(1)!r})
first.wait()
end = time.monotonic() + 1.5
while time.monotonic() < end:
    pass
third = start({job(2)!r})
third.wait(), second.wait()
"""
    paths = start(sys.executable, "-I", "-S", "-c", scheduler, engine=holds(2, [1], 1, DIES))
    until(lambda: given_up(paths))
    assert stopped(tmp_path, [0, 1]) == [1]
    finish(tmp_path, 0)
    job_pid(tmp_path, 2)
    time.sleep(0.6)
    assert stopped(tmp_path, [1, 2]) == [1]
    finish(tmp_path, 2)
    finish(tmp_path, 1)
    assert exit_of(paths)["exit_code"] == 0


def test_a_build_that_was_paused_goes_on_with_one_job_when_nobody_is_left_to_resume_it(
    start: Start, tmp_path: Path
) -> None:
    engine = holds(3, [0, 1, 2], 0, DIES)
    paths = start(*ninja(tmp_path, 3), engine=engine, figures={"engine_runner.PAUSE_SECONDS": 2})
    until(lambda: given_up(paths))
    assert stopped(tmp_path, [0, 1, 2]) == [0, 1, 2]
    until(lambda: stopped(tmp_path, [0, 1, 2]) == [1, 2])
    for n in range(3):
        finish(tmp_path, n)
    assert exit_of(paths)["exit_code"] == 0


def test_an_engine_that_is_stopped_itself_is_stood_in_for(start: Start, tmp_path: Path) -> None:
    figures = {"engine_runner.DEAF_SECONDS": 0.5, "engine_runner.LISTEN_SECONDS": 0.2}
    paths = start(*ninja(tmp_path, 2), engine=holds(2, [0, 1], 1, STOPS), figures=figures)
    until(lambda: (tmp_path / "1.pid").exists() and stopped(tmp_path, [0, 1]) == [1])
    for n in range(2):
        finish(tmp_path, n)
    assert exit_of(paths)["exit_code"] == 0
    assert len(engines_of(paths)) == 1


def test_an_engine_that_was_stopped_before_it_wrote_down_what_it_held_is_stood_in_for(
    start: Start, tmp_path: Path
) -> None:
    figures = {"engine_runner.DEAF_SECONDS": 0.5, "engine_runner.LISTEN_SECONDS": 0.2}
    gate = "gate(1, [supervisor('build_pid')], [], pids)"
    paths = start(*ninja(tmp_path, 2), engine=holds(2, [0, 1], 1, STOPS, gate=gate), figures=figures)
    for n in range(2):
        finish(tmp_path, n)
    assert exit_of(paths)["exit_code"] == 0


@pytest.mark.parametrize("then", [STOPS, "time.sleep(600)"])
def test_an_engine_that_held_jobs_and_had_no_time_for_a_word_leaves_none_stopped(
    start: Start, tmp_path: Path, then: str
) -> None:
    figures = {"engine_runner.DEAF_SECONDS": 0.5, "engine_runner.LISTEN_SECONDS": 0.2}
    engine = holds(3, [1, 2], 1, then, gate="note('heartbeat', '')")
    paths = start(*ninja(tmp_path, 3), engine=engine, figures=figures)
    for n in range(3):
        finish(tmp_path, n)
    assert exit_of(paths)["exit_code"] == 0


class Watched:
    """An engine runner whose looks are seconds apart, by a clock of its own."""

    def __init__(self, paths: BuildPaths, monkeypatch: pytest.MonkeyPatch) -> None:
        self._heartbeat, self._clock = paths.root / "heartbeat", 0.0
        monkeypatch.setattr(engine_runner, "time", SimpleNamespace(**{**vars(time), "monotonic": lambda: self._clock}))
        self._runner = engine_runner.EngineRunner(str(paths.root), (), list)
        self._runner.adopt(engines_of(paths)[0])

    def look(self, times: int, *, beats: bool) -> None:
        for _ in range(times):
            self._clock += 1.0
            if beats:
                os.utime(self._heartbeat, (self._clock, self._clock))
            self._runner.tick()


def test_an_engine_whose_heart_beats_is_left_to_decide(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = start(*ninja(tmp_path, 2), engine=holds(2, [0, 1], 1, STOPS), figures=NEVER)
    until((paths.root / "heartbeat").exists)
    watched = Watched(paths, monkeypatch)
    watched.look(100, beats=True)
    assert stopped(tmp_path, [0, 1]) == [0, 1]
    watched.look(20, beats=False)
    until(lambda: stopped(tmp_path, [0, 1]) == [1])
    os.kill(supervisor_of(paths)["supervisor_pid"], signal.SIGTERM)
    assert exit_of(paths)["stopped"] is True


def test_a_job_without_a_group_of_its_own_goes_on_with_its_whole_tree(start: Start, tmp_path: Path) -> None:
    """As make's jobs are: the shell and what runs below it are stopped and set going one by one."""
    inner = "echo $$ >inner; until [ -e inner.go ]; do sleep 0.05; done; touch inner.ran"
    script = f"sh -c 'echo $$ >0.new; mv 0.new 0.pid; sh -c \"{inner.replace('$', chr(92) + '$')}\"; true' & wait"
    engine = GOVERNOR + (
        "if first:\n"
        "    ready(); pid, = jobs(1)\n"
        "    while not os.path.exists(cwd + '/inner') or not open(cwd + '/inner').read(): time.sleep(0.01)\n"
        "    stop(pid); stop(int(open(cwd + '/inner').read()))\n"
        "    gate(1, [supervisor('build_pid')], [pid], [pid])\n"
        "sys.exit(1)"
    )
    paths = start("sh", "-c", script, engine=engine)
    until(lambda: engines_of(paths) and len(engines_of(paths)) > 1)
    (tmp_path / "inner.go").touch()
    assert exit_of(paths)["exit_code"] == 0
    assert (tmp_path / "inner.ran").exists()


def test_a_job_that_only_carries_another_ninja_does_not_take_the_place_of_its_jobs(
    start: Start, tmp_path: Path
) -> None:
    write_ninja(tmp_path / "inner", [(f"{n}.ran", f"cd {tmp_path} && {job(n)}") for n in range(2)])
    write_ninja(tmp_path, [("outer", f"echo $$$$ >carrier; {PYPI_NINJA} -C inner -j2; true")])
    engine = GOVERNOR + (
        "if first:\n"
        "    ready(); pids = jobs(2)\n"
        "    for pid in pids: stop(pid)\n"
        "    inner = int(open(f'/proc/{pids[0]}/stat').read().rpartition(')')[2].split()[1])\n"
        "    gate(1, [supervisor('build_pid'), inner], pids, pids)\n"
        "sys.exit(1)"
    )
    paths = start(PYPI_NINJA, "-j1", engine=engine)
    until(lambda: (tmp_path / "1.pid").exists() and given_up(paths) and stopped(tmp_path, [0, 1]) == [1])
    for n in range(2):
        finish(tmp_path, n)
    assert exit_of(paths)["exit_code"] == 0


def test_what_an_engine_stopped_and_could_not_write_down_is_set_going_when_it_is_given_up(
    start: Start, tmp_path: Path
) -> None:
    gate = "stop(pids[2]); gate(1, [supervisor('build_pid')], [pids[1]], pids)"
    engine = holds(3, [1], 1, DIES, gate=gate)
    paths = start(*ninja(tmp_path, 3), engine=engine)
    until(lambda: given_up(paths) and stopped(tmp_path, [0, 1, 2]) == [1])
    for n in (0, 2, 1):
        finish(tmp_path, n)
    assert exit_of(paths)["exit_code"] == 0


@pytest.mark.parametrize("text", ["", "{", "[]", '{"level": "x"}', '{"level": 1, "schedulers": [], "stopped": [7]}'])
def test_a_gate_file_that_makes_no_sense_holds_nothing(start: Start, tmp_path: Path, text: str) -> None:
    engine = holds(1, [0], 1, DIES, gate=f"note('gate.json', {text!r})")
    paths = start(*ninja(tmp_path, 1), engine=engine)
    finish(tmp_path, 0)
    assert exit_of(paths)["exit_code"] == 0


def test_a_process_that_got_the_pid_of_a_stopped_job_is_not_meant(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = "key = lambda pid: [pid, 1]; gate(1, [], [pids[0]], [pids[0]])"
    paths = start(*ninja(tmp_path, 2), engine=holds(2, [0], 1, STOPS, gate=gate), figures=NEVER)
    until((paths.root / "heartbeat").exists)
    Watched(paths, monkeypatch).look(100, beats=False)
    assert stopped(tmp_path, [0]) == [0]
    os.kill(supervisor_of(paths)["supervisor_pid"], signal.SIGTERM)
    assert exit_of(paths)["stopped"] is True


def test_jobs_that_are_stopped_when_the_command_ends_well_are_not_left_stopped(start: Start, tmp_path: Path) -> None:
    """A daemon of the build, stopped by accident or by an engine that took it for a job."""
    script = "import os, time; os.setsid(); open('0.new', 'w').write(str(os.getpid())); os.rename('0.new', '0.pid')"
    (tmp_path / "daemon.py").write_text(script + "; time.sleep(1000)")
    paths = start("sh", "-c", f"{sys.executable} -I -S daemon.py & until [ -e go ]; do sleep 0.05; done")
    daemon = job_pid(tmp_path, 0)
    os.kill(daemon, signal.SIGSTOP)
    until(lambda: state_of(daemon) == "T")
    (tmp_path / "go").touch()
    assert exit_of(paths)["exit_code"] == 0
    until(lambda: state_of(daemon) == "S")
    os.kill(daemon, signal.SIGKILL)
