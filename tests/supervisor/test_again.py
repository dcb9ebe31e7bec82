"""A command that failed runs again when the engine says so, and never without end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from stoker.act.handover import Handover
from stoker.act.tree import descendants
from stoker.config.paths import BuildPaths
from stoker.contract.strict_json import load
from stoker.contract.supervisor_files import LeftOver
from stoker.supervisor.supervisor import MAX_ATTEMPTS
from support.program import PYPI_NINJA, write_ninja
from support.supervisors import (
    GOVERNOR,
    Start,
    alive,
    engines_of,
    exit_of,
    job,
    job_pid,
    state_of,
    supervisor_of,
    until,
)

ANSWERS = (
    GOVERNOR
    + """
def answer(again, off=0):
    woken = []
    signal.signal(signal.SIGUSR1, lambda *_: woken.append(1))
    ready()
    note("listens", os.getpid())
    answered = 0
    while not os.path.exists(folder + "/exit.json"):
        try:
            attempt = json.load(open(folder + "/ended.json"))["attempt"]
        except (OSError, ValueError):
            attempt = answered
        if attempt != answered and (woken or not first):
            answered = attempt
            woken.clear()
            note("asked", answered)
            write("verdict.json", {"attempt": answered + off, "again": again})
            os.kill(supervisor("supervisor_pid"), signal.SIGUSR1)
        time.sleep(0.02)
"""
)
"""An engine that can answer when it is asked, and has been woken for that."""

ALWAYS = ANSWERS + "gate(1); answer(True)"
SILENT = GOVERNOR + "gate(1); ready()\nwhile not os.path.exists(folder + '/exit.json'): time.sleep(0.02)"

COUNTS = "echo run >>runs; [ $(wc -l <runs) -gt {0} ] || exit 7"
"""A shell command that fails with 7 so many times, and then ends well."""


def runs(folder: Path) -> int:
    return len((folder / "runs").read_text().split())


def asked(paths: BuildPaths) -> list[int]:
    """The attempts that the engine was asked about."""
    file = paths.root / "asked"
    return [int(word) for word in file.read_text().split()] if file.exists() else []


def test_a_failed_command_runs_again_if_the_engine_says_so(start: Start, tmp_path: Path) -> None:
    paths = start("sh", "-c", COUNTS.format(2), engine=ALWAYS)
    first = supervisor_of(paths)
    assert exit_of(paths)["exit_code"] == 0
    last = supervisor_of(paths)
    assert (runs(tmp_path), asked(paths)) == (3, [1, 2])
    assert (first["attempt"], last["attempt"]) == (1, 3)
    assert last["build_pid"] != first["build_pid"]
    assert last["started"] == first["started"]
    assert len(engines_of(paths)) == 1
    assert not list(paths.root.glob("ended.json")) + list(paths.root.glob("verdict.json"))


def test_a_failed_command_stays_failed_if_the_engine_says_so(start: Start, tmp_path: Path) -> None:
    paths = start("sh", "-c", COUNTS.format(9), engine=ANSWERS + "gate(1); answer(False)")
    assert exit_of(paths)["exit_code"] == 7
    assert (runs(tmp_path), asked(paths)) == (1, [1])


def test_the_output_of_all_attempts_stays(start: Start) -> None:
    paths = start("sh", "-c", COUNTS.format(1).replace("echo run", "echo hello; echo run"), engine=ALWAYS)
    exit_of(paths)
    assert paths.output.read_text() == "hello\nhello\n"


def test_there_is_an_end_to_running_again(start: Start, tmp_path: Path) -> None:
    paths = start("sh", "-c", COUNTS.format(99), engine=ALWAYS)
    assert exit_of(paths)["exit_code"] == 7
    assert runs(tmp_path) == MAX_ATTEMPTS


@pytest.mark.parametrize("code", [0, 126, 127])
def test_nobody_is_asked_about_a_command_that_ended_well_or_was_never_found(start: Start, code: int) -> None:
    paths = start("sh", "-c", f"sleep 0.5; exit {code}", engine=ALWAYS)
    assert exit_of(paths)["exit_code"] == code
    assert asked(paths) == []


def test_nobody_is_asked_when_no_engine_ever_looked_at_the_build(start: Start) -> None:
    paths = start("false", engine=ANSWERS + "answer(True)")
    assert exit_of(paths)["exit_code"] == 1
    assert asked(paths) == []


def test_an_answer_about_another_attempt_is_no_answer(start: Start, tmp_path: Path) -> None:
    engine = ANSWERS + "gate(1); answer(True, off=1)"
    paths = start("sh", "-c", COUNTS.format(9), engine=engine, figures={"supervisor.VERDICT_SECONDS": 1})
    assert exit_of(paths)["exit_code"] == 7
    assert runs(tmp_path) == 1


def test_an_engine_that_does_not_answer_is_not_waited_for_for_ever(start: Start) -> None:
    paths = start("false", engine=SILENT, figures={"supervisor.VERDICT_SECONDS": 0.5})
    assert exit_of(paths)["exit_code"] == 1


def test_an_engine_that_is_stopped_is_set_going_to_answer(start: Start, tmp_path: Path) -> None:
    paths = start("sh", "-c", f"until [ -e go ]; do sleep 0.05; done; {COUNTS.format(1)}", engine=ALWAYS)
    until((paths.root / "listens").exists)
    os.kill(engines_of(paths)[0], signal.SIGSTOP)
    (tmp_path / "go").touch()
    assert exit_of(paths)["exit_code"] == 0
    assert (runs(tmp_path), len(engines_of(paths))) == (2, 1)


def test_an_engine_that_was_given_up_is_started_to_answer(start: Start, tmp_path: Path) -> None:
    """Seven have died; the eighth is there because there is a question."""
    late = ANSWERS + "gate(1)\nif os.path.exists(folder + '/ended.json'): answer(True)\nsys.exit(1)"
    paths = start("sh", "-c", f"until [ -e go ]; do sleep 0.05; done; {COUNTS.format(1)}", engine=late)
    until(lambda: len(engines_of(paths)) == 7)
    (tmp_path / "go").touch()
    assert exit_of(paths)["exit_code"] == 0
    assert (runs(tmp_path), asked(paths)) == (2, [1])


def test_a_stop_while_the_engine_thinks_ends_the_build(start: Start, tmp_path: Path) -> None:
    paths = start("sh", "-c", COUNTS.format(9), engine=SILENT)
    until((paths.root / "ended.json").exists)
    os.kill(supervisor_of(paths)["supervisor_pid"], signal.SIGTERM)
    ended = exit_of(paths)
    assert (ended["exit_code"], ended["stopped"], runs(tmp_path)) == (7, True, 1)


def test_a_stop_of_the_second_attempt_ends_it(start: Start, tmp_path: Path) -> None:
    script = f"{COUNTS.format(1)}; touch second; sleep 1000"
    paths = start("sh", "-c", script, engine=ALWAYS)
    until((tmp_path / "second").exists)
    os.kill(supervisor_of(paths)["supervisor_pid"], signal.SIGTERM)
    assert exit_of(paths)["stopped"] is True


class TestTheEnginesHalf:
    """The functions by which an engine is told and answers, against a supervisor that asks."""

    @pytest.fixture
    def paths(self, start: Start) -> Iterator[BuildPaths]:
        paths = start("sh", "-c", COUNTS.format(1), engine=SILENT)
        until((paths.root / "ended.json").exists)
        yield paths
        assert exit_of(paths)["ended"]

    def test_a_question_is_seen_until_it_is_answered(self, paths: BuildPaths, tmp_path: Path) -> None:
        handover = Handover(paths)
        question = handover.asked()
        assert question is not None
        assert (question.exit_code, question.signal, question.attempt) == (7, None, 1)
        handover.answer(1, again=True)
        assert handover.asked() is None
        assert exit_of(paths)["exit_code"] == 0

    def test_no_is_an_answer(self, paths: BuildPaths, tmp_path: Path) -> None:
        Handover(paths).answer(1, again=False)
        assert exit_of(paths)["exit_code"] == 7
        assert Handover(paths).asked() is None
        assert runs(tmp_path) == 1


@pytest.mark.parametrize("noted", ["noted", "unnoted"])
def test_compilers_that_outlive_a_killed_ninja_are_ended_and_daemons_stay(
    start: Start, tmp_path: Path, noted: str
) -> None:
    """Also those that no engine had the time to write down."""
    daemon = "import os, time; os.fork() and os._exit(0); os.setsid(); open('9.new', 'w').write(str(os.getpid()))"
    daemon += "; os.rename('9.new', '9.pid'); time.sleep(1000)"
    (tmp_path / "daemon.py").write_text(daemon)
    edges = [
        ("0.ran", f"{sys.executable} -I -S daemon.py; {job(0)}"),
        ("1.ran", job(1)),
        ("2.ran", job(2, "trap '' TERM;")),
    ]
    write_ninja(tmp_path, edges)
    engine = GOVERNOR + (
        "ready(); pids = jobs(3)\n"
        "stop(pids[1])\n"
        f"pids = pids if {noted == 'noted'} else []\n"
        "gate(2, [supervisor('build_pid')], pids[1:2], pids)\n"
        "while not os.path.exists(folder + '/exit.json'): time.sleep(0.02)"
    )
    paths = start(PYPI_NINJA, "-j3", engine=engine, figures={"supervisor.VERDICT_SECONDS": 0.1})
    until((paths.root / "gate.json").exists)
    supervisor, engine_pid, ninja = (
        supervisor_of(paths)["supervisor_pid"],
        engines_of(paths)[0],
        supervisor_of(paths)["build_pid"],
    )
    jobs, service = [job_pid(tmp_path, n) for n in range(3)], job_pid(tmp_path, 9)
    assert not (paths.root / "left_over.json").exists()
    below = {*descendants(supervisor, engine_pid)} - {ninja, service}
    assert below >= {*jobs}
    os.kill(ninja, signal.SIGKILL)
    assert exit_of(paths)["signal"] == 9
    assert not any(map(alive, below))
    left = load(LeftOver, paths.root / "left_over.json")
    assert (left.command[0], left.signal) == (ninja, signal.SIGKILL)
    assert {pid for pid, _ in left.processes} >= {jobs[0], jobs[2]}, "the kernel has hung up on the stopped one"
    assert state_of(service) == "S"
    os.kill(service, signal.SIGKILL)


def test_what_a_killed_recipe_leaves_is_ended_before_make_runs_again(start: Start, tmp_path: Path) -> None:
    """It would write into the file that its second run writes."""
    orphan = "sleep 1000 & echo $$! >9.new; mv 9.new 9.pid; exit 9"
    again = "! grep -qs sleep /proc/$$(cat 9.pid)/cmdline"
    (tmp_path / "Makefile").write_text(f"all:\n\tif [ -e 9.pid ]; then {again}; else {orphan}; fi\n")
    paths = start("make", engine=ALWAYS)
    assert exit_of(paths)["exit_code"] == 0
    assert asked(paths) == [1]


def test_a_job_that_is_not_the_supervisors_is_not_ended(start: Start, tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "1000"]) as stranger:
        engine = GOVERNOR + (
            f"gate(1, [], [], [{stranger.pid}])\n"
            "ready()\n"
            "while not os.path.exists(folder + '/exit.json'): time.sleep(0.02)"
        )
        paths = start("false", engine=engine, figures={"supervisor.VERDICT_SECONDS": 0.1})
        exit_of(paths)
        time.sleep(0.1)
        assert stranger.poll() is None
        stranger.kill()
