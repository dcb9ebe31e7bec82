"""Governing by keys, as a person does it: a real terminal, a real engine, real jobs."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stoker.act.tree import descendants
from stoker.contract.process import stat_fields
from support.program import PYPI_NINJA, Stoker, until, write_ninja
from support.terminal import Terminal, harmful

pytestmark = pytest.mark.timeout(180)

COUNT = 8
WAIT = "while [ ! -e go ]; do sleep 0.2; done"
"""A job that lasts until the test touches `go`."""

DOWN, ENTER = "\x1b[B", "\r"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Jobs that take long enough to be seen even in a second attempt."""
    return write_ninja(tmp_path / "p", [(f"o{n}", f"{WAIT}; sleep 0.7; touch o{n}") for n in range(COUNT)])


@pytest.fixture
def terminal(stoker: Stoker, folder: Path) -> Iterator[Terminal]:
    """Two jobs run and six wait on deck."""
    words = ("run", "-j", "2", "--", PYPI_NINJA, "-C", str(folder))
    opened = Terminal(stoker.argv(*words), {**stoker.env, "LC_ALL": "C.UTF-8"}, stoker.root)
    opened.wait_for("2 running of 2")
    opened.wait_for("○ 6 on deck")
    yield opened
    opened.close()


def stopped(stoker: Stoker) -> int:
    """Processes of the build that are stopped."""
    tree = descendants(stoker.supervisor(stoker.begun())["build_pid"])
    return sum(bool((fields := stat_fields(pid)) and fields[0] == b"T") for pid in tree)


def meter(label: str, what: str) -> Callable[[str], bool]:
    """Whether the meter with that label says that, whatever the gaps between its columns."""
    return lambda screen: any(line.startswith(label) and what in " ".join(line.split()) for line in screen.splitlines())


def test_the_level_is_set_by_keys_in_bursts_by_number_and_automatically(
    stoker: Stoker, terminal: Terminal, folder: Path
) -> None:
    terminal.send("+++")
    terminal.wait_for(meter("jobs", "5 running of 5 by hand ○ 3 on deck"))
    assert stoker.status()["level"]["target"] == 5
    terminal.send("7" + ENTER)
    terminal.wait_for(meter("jobs", "7 running of 7 by hand ○ 1 on deck"))
    terminal.send("----")
    terminal.wait_for(meter("jobs", "3 running of 3 by hand ○ 1 on deck ‖ 4 frozen"))
    terminal.send("a")
    terminal.wait_for(meter("jobs", "auto"))
    assert stoker.status()["level"]["mode"] == "auto"
    terminal.send(f"{COUNT}{ENTER}")
    terminal.wait_for(meter("jobs", "8 running of 8"))
    (folder / "go").touch()
    assert "8 done" in terminal.wait_for("exit code 0")
    terminal.send("q")
    assert terminal.wait() == 0
    assert harmful(terminal.raw) == []


def test_pauses_by_keys_stand_in_the_header(stoker: Stoker, terminal: Terminal, folder: Path) -> None:
    terminal.send("p")
    terminal.wait_for(lambda s: " PAUSED " in s.splitlines()[0] and "nothing new starts" in s)
    assert stoker.status()["state"] == "paused"
    terminal.send("P")
    terminal.wait_for(lambda s: "‖ FROZEN" in s.splitlines()[0] and "0 running of 2" in s)
    until(lambda: stopped(stoker) >= COUNT, "all of them stopped")
    terminal.send("P")
    terminal.wait_for(lambda s: "running" in s.splitlines()[0] and "2 running of 2" in s)
    (folder / "go").touch()
    terminal.wait_for("exit code 0")


def test_a_picked_job_is_frozen_thawed_and_run_alone(stoker: Stoker, terminal: Terminal, folder: Path) -> None:
    def of_state(state: str) -> set[int]:
        return {job["pid"] for job in stoker.status()["jobs"] if job["state"] == state}

    running = of_state("running")
    terminal.send(DOWN)
    terminal.wait_for("F freeze")
    terminal.send("F")
    terminal.wait_for(lambda s: "F thaw" in s and "frozen 1" in s)
    frozen = of_state("frozen")
    assert len(frozen) == 1
    assert frozen < running
    terminal.send("F")
    terminal.wait_for("F freeze", gone="F thaw")
    until(lambda: frozen < of_state("running"), "the job going on")  # and another is frozen: no more than two may run
    terminal.send("O")
    until(lambda: of_state("running") == frozen, "that job alone")
    terminal.wait_for(lambda s: "runs alone (" in s and "O let others run" in s)
    terminal.send("O")
    until(lambda: len(of_state("running")) == 2, "others beside it")
    terminal.wait_for("O alone", gone="runs alone (")
    terminal.send("O")
    until(lambda: of_state("running") == frozen, "that job alone")
    terminal.wait_for("runs alone (")
    terminal.send("a")
    until(lambda: len(of_state("running")) >= 2, "others beside it, at an automatic level")
    terminal.wait_for("O alone", gone="runs alone (")
    (folder / "go").touch()
    assert "8 done" in terminal.wait_for("exit code 0")


@pytest.mark.long
def test_a_kill_is_asked_for_and_the_step_is_run_again(stoker: Stoker, terminal: Terminal, folder: Path) -> None:
    terminal.send(DOWN)
    terminal.wait_for("X kill")
    terminal.send("X")
    terminal.wait_for("kill this job?")
    pids = {job["pid"] for job in stoker.status()["jobs"] if job["state"] == "running"}
    terminal.answer("y")

    def ended() -> set[int]:
        return {pid for pid in pids if not os.path.exists(f"/proc/{pid}")}

    assert len(until(ended, "the end of one job")) == 1

    def counted() -> tuple[int, int]:
        progress = stoker.status()["progress"]
        return progress["failed"], progress["killed"]

    until(lambda: counted() != (0, 0), "the end of the job to be told")
    assert counted() == (0, 1), "what a person killed has not failed"
    assert any(d["what"].startswith("kill ") for d in stoker.status()["decisions"])
    terminal.wait_for("1 killed by")
    terminal.send("o")
    terminal.wait_for(re.compile(r"killed by \S+; the build tool calls that a failure: FAILED: ").search)
    terminal.send("o")
    (folder / "go").touch()
    terminal.wait_for("exit code 0")
    status = stoker.status()
    assert (status["step"]["attempt"], status["progress"]["failed"], status["progress"]["killed"]) == (2, 0, 0)
    assert status["lost"]["person"]["jobs"] == 1
    assert all((folder / f"o{n}").exists() for n in range(COUNT))
    assert b"FAILED: " in stoker.run("log", "--raw").stdout
    reports = [line for line in stoker.run("log").stdout.decode().splitlines() if "FAILED: " in line]
    assert all(re.match(r"\[killed by \S+; the build tool calls that a failure\] FAILED: ", line) for line in reports)
    assert len(reports) == 1, "what else it calls failed has a line in common"
    terminal.send("o")
    terminal.wait_for("killed by")
    terminal.send("E")
    terminal.wait_for("0 lines that look like errors")
