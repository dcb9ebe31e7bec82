"""A supervisor is killed or stopped: a standby takes its place or sets it going, and the build is none the worse."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from stoker.act.stop import stop_build
from stoker.act.tree import descendants
from stoker.config.paths import BuildPaths
from stoker.contract.spec_file import StepSpec
from stoker.supervisor.standby import Note, Will
from support.program import supervisors_in
from support.supervisors import (
    DYING_ENGINE,
    IDLE_ENGINE,
    Start,
    alive,
    engines_of,
    exit_of,
    finish,
    given_up,
    ninja,
    state_of,
    supervisor_of,
    until,
)

WAITS = "until [ -e go ]; do sleep 0.05; done; exit 5"

ANSWERS = IDLE_ENGINE.replace(
    "while not",
    """
import json
open(folder + "/heartbeat", "w").close()
while not os.path.exists(folder + "/answer"):
    time.sleep(0.02)
attempt = json.load(open(folder + "/ended.json"))["attempt"]
with open(folder + "/verdict.new", "w") as file:
    json.dump({"attempt": attempt, "again": attempt == 1, "exit_code": None}, file)
os.replace(folder + "/verdict.new", folder + "/verdict.json")
while not""",
)
"""An engine that lets a failed command run again, once the file `answer` is there."""


def kill_supervisor(paths: BuildPaths) -> int:
    """Kill the acting supervisor; its pid. Returns when another one has told who it is."""
    pid = supervisor_of(paths)["supervisor_pid"]
    os.kill(pid, signal.SIGKILL)
    until(lambda: supervisor_of(paths)["supervisor_pid"] != pid)
    return pid


def once(file: Path) -> str:
    """A Python expression that kills its process the first time that it is evaluated."""
    return f"(os.path.exists({str(file)!r}) or (open({str(file)!r}, 'w').close(), os.kill(os.getpid(), 9)))"


def test_the_exit_status_survives_two_killed_supervisors(start: Start, tmp_path: Path) -> None:
    paths = start("sh", "-c", WAITS)
    until(lambda: engines_of(paths))
    killed = [kill_supervisor(paths) for _ in range(2)]
    assert len(engines_of(paths)) == 1
    (tmp_path / "go").touch()
    end = exit_of(paths)
    assert (end["exit_code"], end["signal"], end["stopped"]) == (5, None, False)
    supervisors = {supervisor_of(paths)["supervisor_pid"], *killed}
    until(lambda: not any(map(alive, supervisors)))


def test_what_ends_while_no_supervisor_lives_is_not_lost(start: Start, tmp_path: Path) -> None:
    """The supervisor is killed over the end of the command, before it has acted on it; the next look is not awaited."""
    fault = f"lambda supervisor, **_: {once(tmp_path / 'killed')}"
    figures = {"supervisor.Supervisor.end_left_over_jobs": fault, "engine_runner.LISTEN_SECONDS": 1000.0}
    paths = start("sh", "-c", "exit 5", figures=figures)
    assert exit_of(paths)["exit_code"] == 5


def test_what_a_supervisor_stumbles_over_its_standby_does_again(start: Start, tmp_path: Path) -> None:
    """A fault of our own must not lose the exit status, and it is written down."""
    file = str(tmp_path / "stumbled")
    fault = f"lambda supervisor, **_: os.path.exists({file!r}) or (open({file!r}, 'w').close(), 1 / 0)"
    paths = start("sh", "-c", "exit 5", figures={"supervisor.Supervisor.end_left_over_jobs": fault})
    assert exit_of(paths)["exit_code"] == 5
    assert "ZeroDivisionError" in paths.engine_log.read_text()


def test_the_steps_that_follow_are_run(start: Start, tmp_path: Path) -> None:
    scripts = {"a": "until [ -e go ]; do sleep 0.05; done; echo a >>ran", "b": "echo b >>ran", "c": "echo c >>ran"}
    steps = [StepSpec(name, ("sh", "-c", script), str(tmp_path)) for name, script in scripts.items()]
    paths = start(*steps[0].command, steps=steps)
    kill_supervisor(paths)
    (tmp_path / "go").touch()
    assert (exit_of(paths)["exit_code"], exit_of(paths)["step"]) == (0, 3)
    assert (tmp_path / "ran").read_text() == "a\nb\nc\n"


SLOW = {
    "take over": {
        "inherit": "engine_runner.EngineRunner.inherit",
        "engine_runner.EngineRunner.inherit": "lambda runner: (command.time.sleep(0.5), inherit(runner))",
    },
    "become": {
        "become": "command._become",
        "command._become": "lambda *words: (command.time.sleep(0.5), become(*words))",
    },
}
"""What keeps a standby from looking before a short command has ended, or a command from showing that it is one."""


@pytest.mark.parametrize(
    ("moment", "runs", "slow"),
    [("before", 0.5, ""), ("behind", 0.5, ""), ("behind", 0, "take over"), ("behind", 0.5, "become")],
)
def test_a_supervisor_that_is_killed_over_the_fork_of_a_step_loses_none_and_runs_none_twice(
    start: Start, tmp_path: Path, moment: str, runs: float, slow: str
) -> None:
    die, fork = once(tmp_path / "killed"), "fork(step, *rest)"
    order = {"before": f"({die}, {fork})[1]", "behind": f"({fork}, {die})[0]"}[moment]
    faulty = f"lambda step, *rest: {order} if step.name == 'b' else {fork}"
    scripts = {"a": "echo a >>ran", "b": f"echo b >>ran; sleep {runs}; exit 3"}
    steps = [StepSpec(name, ("sh", "-c", script), str(tmp_path)) for name, script in scripts.items()]
    figures = {"fork": "command.start", "command.start": faulty, **SLOW.get(slow, {})}
    paths = start(*steps[0].command, steps=steps, figures=figures)
    assert (exit_of(paths)["exit_code"], exit_of(paths)["step"]) == (3, 2)
    assert (tmp_path / "ran").read_text() == "a\nb\n"


def test_a_question_that_a_killed_supervisor_asked_is_answered_to_its_standby(start: Start, tmp_path: Path) -> None:
    script = "echo ran >>ran; [ $(wc -l <ran) -gt 1 ] && exit 6; until [ -e go ]; do sleep 0.05; done; exit 5"
    paths = start("sh", "-c", script, engine=ANSWERS)
    until((paths.root / "heartbeat").exists)  # before, nobody would be asked
    (tmp_path / "go").touch()
    until((paths.root / "ended.json").exists)
    kill_supervisor(paths)
    (paths.root / "answer").touch()
    until(lambda: (tmp_path / "ran").read_text() == "ran\nran\n")
    until(lambda: supervisor_of(paths)["attempt"] == 2)


def test_an_answer_that_a_supervisor_was_killed_over_counts(start: Start, tmp_path: Path) -> None:
    die = once(tmp_path / "killed")
    figures = {
        "supervisor.VERDICT_SECONDS": 1000.0,
        "unlink": "os.unlink",
        "os.unlink": f"lambda path: (unlink(path), str(path).endswith('verdict.json') and {die})",
    }
    engine = ANSWERS.replace('"again": attempt == 1, "exit_code": None', '"again": False, "exit_code": 9')
    paths = start("sh", "-c", WAITS, engine=engine, figures=figures)
    until((paths.root / "heartbeat").exists)
    (paths.root / "answer").touch()
    (tmp_path / "go").touch()
    assert exit_of(paths)["exit_code"] == 9


def test_a_supervisor_killed_over_the_word_to_stop_leaves_the_engine_told(start: Start, tmp_path: Path) -> None:
    """Or the engine would go on to hold jobs, and none of them could tidy up."""
    die = once(tmp_path / "killed")
    figures = {
        "open_file": "os.open",
        "os.open": f"lambda path, *how: (str(path).endswith('stopping') and {die}, open_file(path, *how))[1]",
    }
    paths = start("sh", "-c", WAITS, figures=figures)
    until(lambda: engines_of(paths))
    stop_build(paths, force=False)
    assert exit_of(paths)["stopped"] is True
    assert (tmp_path / "killed").exists()
    assert (paths.root / "stopping").exists()


def test_a_stop_is_carried_on_by_the_standby(start: Start, tmp_path: Path) -> None:
    script = "trap '' TERM; (setsid sleep 1000 &); echo $$ >pid; until [ -e never ]; do sleep 0.05; done"
    paths = start("sh", "-c", script, figures={"supervisor.STOP_GRACE_SECONDS": 3.0})
    until((tmp_path / "pid").exists)
    until(lambda: engines_of(paths))
    tree = descendants(supervisor_of(paths)["supervisor_pid"], *engines_of(paths))
    stop_build(paths, force=False)
    until((paths.root / "stopping").exists)
    kill_supervisor(paths)
    assert (exit_of(paths)["stopped"], exit_of(paths)["signal"]) == (True, 9)
    until(lambda: not any(map(alive, tree)))


def test_a_stop_that_meets_a_standby_before_it_has_taken_over_is_heard(start: Start) -> None:
    paths = start("sh", "-c", WAITS)
    _, standby, supervisor = supervisors_in(supervisor_of(paths))
    os.kill(standby, signal.SIGTERM)
    os.kill(supervisor, signal.SIGKILL)
    assert exit_of(paths)["stopped"] is True


def test_a_supervisor_that_is_stopped_is_set_going(start: Start, tmp_path: Path) -> None:
    paths = start("sh", "-c", WAITS)
    os.kill(supervisor_of(paths)["supervisor_pid"], signal.SIGSTOP)
    (tmp_path / "go").touch()
    assert exit_of(paths)["exit_code"] == 5


def test_a_standby_that_is_stopped_does_not_stay_behind(start: Start, tmp_path: Path) -> None:
    paths = start("sh", "-c", WAITS)
    supervisors = supervisors_in(supervisor_of(paths))
    for standby in supervisors[:2]:
        os.kill(standby, signal.SIGSTOP)
    (tmp_path / "go").touch()
    assert exit_of(paths)["exit_code"] == 5
    until(lambda: not any(map(alive, supervisors)))


@pytest.mark.parametrize("number", [0, 1])
def test_a_standby_that_is_killed_leaves_another(start: Start, tmp_path: Path, number: int) -> None:
    paths = start("sh", "-c", WAITS)
    until(lambda: engines_of(paths))
    standby = supervisors_in(supervisor_of(paths))[number]
    os.kill(standby, signal.SIGKILL)
    until(lambda: state_of(standby) != "S")
    assert alive(supervisor_of(paths)["supervisor_pid"])
    kill_supervisor(paths)
    (tmp_path / "go").touch()
    assert exit_of(paths)["exit_code"] == 5
    assert len(engines_of(paths)) == 1


def test_supervisor_and_standby_killed_together_leave_the_highest(start: Start, tmp_path: Path) -> None:
    paths = start("sh", "-c", WAITS)
    highest, standby, supervisor = supervisors_in(supervisor_of(paths))
    for pid in (standby, supervisor):
        os.kill(pid, signal.SIGKILL)
    until(lambda: supervisor_of(paths)["supervisor_pid"] == highest)
    (tmp_path / "go").touch()
    assert exit_of(paths)["exit_code"] == 5


def test_supervisor_and_engine_killed_together_are_both_replaced(start: Start, tmp_path: Path) -> None:
    paths = start("sh", "-c", WAITS)
    (engine,) = until(lambda: engines_of(paths))
    os.kill(supervisor_of(paths)["supervisor_pid"], signal.SIGKILL)
    os.kill(engine, signal.SIGKILL)
    until(lambda: len(engines_of(paths)) == 2)
    os.kill(engines_of(paths)[1], signal.SIGKILL)
    until(lambda: len(engines_of(paths)) == 3)
    (tmp_path / "go").touch()
    assert exit_of(paths)["exit_code"] == 5


def test_a_supervisor_that_is_killed_while_engines_keep_dying_costs_nothing(start: Start, tmp_path: Path) -> None:
    paths = start(*ninja(tmp_path, 1), engine=DYING_ENGINE)
    until(lambda: given_up(paths))
    kill_supervisor(paths)
    finish(tmp_path, 0)
    assert exit_of(paths)["exit_code"] == 0


def test_a_note_that_is_spoilt_half_way_is_told_from_the_one_before() -> None:
    note = Note()
    assert note.read() is None
    note.write(Will((1, 1)))
    note.write(Will((2, 1)))
    assert note.read() == Will((2, 1))
    note._memory[Note._HEAD.size] ^= 1  # of the second one, which has the first place
    assert note.read() == Will((1, 1))
    note.write(Will((3, 1)))
    assert note.read() == Will((3, 1))
