"""The command starts when somebody watches, and never knows of it."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from support.supervisors import IDLE_ENGINE, READY, Start, engines_of, exit_of, supervisor_of, until

SLOW_TO_WATCH = (
    READY
    + """
while not os.path.exists(folder + "/watch"):
    time.sleep(0.01)
ready()
while not os.path.exists(folder + "/exit.json"):
    time.sleep(0.02)
"""
)


def test_the_command_starts_when_the_engine_watches_and_not_before(start: Start, tmp_path: Path) -> None:
    paths = start("touch", "ran", engine=SLOW_TO_WATCH)
    until(lambda: engines_of(paths))
    time.sleep(0.5)
    assert not (tmp_path / "ran").exists()
    (paths.root / "watch").touch()
    assert exit_of(paths)["exit_code"] == 0
    assert (tmp_path / "ran").exists()


def test_an_engine_that_dies_before_it_watches_holds_nothing_up(start: Start) -> None:
    assert exit_of(start("true", engine=READY + "sys.exit(1)"))["exit_code"] == 0


def test_an_engine_that_never_watches_holds_the_command_up_for_a_while_only(start: Start) -> None:
    deaf = READY + "while not os.path.exists(folder + '/exit.json'): time.sleep(0.02)"
    assert exit_of(start("true", engine=deaf, figures={"command.READY_SECONDS": 0.3}))["exit_code"] == 0


def test_an_engine_that_was_stopped_before_it_watches_is_set_going(start: Start, tmp_path: Path) -> None:
    figures = {"engine_runner.DEAF_SECONDS": 0.5, "engine_runner.LISTEN_SECONDS": 0.2}
    paths = start("touch", "ran", engine=SLOW_TO_WATCH, figures=figures)
    until(lambda: engines_of(paths))
    os.kill(engines_of(paths)[0], signal.SIGSTOP)
    (paths.root / "watch").touch()
    assert exit_of(paths)["exit_code"] == 0
    assert (tmp_path / "ran").exists()
    assert len(engines_of(paths)) == 1


def test_a_command_that_waits_for_its_engine_can_be_stopped(start: Start, tmp_path: Path) -> None:
    paths = start("touch", "ran", engine=SLOW_TO_WATCH)
    until(lambda: engines_of(paths))
    os.kill(supervisor_of(paths)["supervisor_pid"], signal.SIGTERM)
    ended = exit_of(paths)
    assert (ended["stopped"], ended["signal"]) == (True, 15)
    assert not (tmp_path / "ran").exists()


def test_the_command_inherits_neither_the_descriptor_nor_its_name(start: Start) -> None:
    script = "import os; print([fd for fd in range(99) if os.path.exists(f'/proc/self/fd/{fd}')], *os.environ)"
    paths = start(sys.executable, "-I", "-S", "-c", script)
    exit_of(paths)
    told = paths.output.read_text()
    assert told.startswith("[0, 1, 2] ")
    assert "STOKER" not in told


def test_a_later_engine_is_told_no_descriptor(start: Start) -> None:
    engine = READY + "note('told', 'STOKER_READY_FD' in os.environ)\nsys.exit(1)"
    paths = start("sh", "-c", "sleep 1", engine=engine)
    exit_of(paths)
    told = (paths.root / "told").read_text().split()
    assert len(told) > 1
    assert (told[0], set(told[1:])) == ("True", {"False"})


def test_an_engine_that_is_not_ready_is_not_killed_by_a_wake_up(start: Start) -> None:
    """SIGUSR1 ends a process that does not expect it."""
    paths = start("sh", "-c", "sleep 0.5; exit 4", engine=IDLE_ENGINE)
    engine = until(lambda: engines_of(paths))[0]
    os.kill(engine, signal.SIGUSR1)
    assert exit_of(paths)["exit_code"] == 4
    assert engines_of(paths) == [engine]
