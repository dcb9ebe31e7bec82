"""The supervisor runs one command after the other, each as it is specified, and stops at the first that fails."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

from stoker.config.paths import BuildPaths
from stoker.contract.spec_file import StepSpec
from support.supervisors import GOVERNOR, READY, Start, engines_of, exit_of, supervisor_of, until

AGAIN_ONCE = (
    GOVERNOR
    + """
signal.signal(signal.SIGUSR1, lambda *_: note("woken", supervisor("step")))
gate(1)
ready()
while not os.path.exists(folder + "/exit.json"):
    if os.path.exists(folder + "/ended.json"):
        ended = json.load(open(folder + "/ended.json"))
        write("verdict.json", {"attempt": ended["attempt"], "again": ended["attempt"] < 3})
        os.kill(supervisor("supervisor_pid"), signal.SIGUSR1)
    time.sleep(0.02)
"""
)
"""An engine that lets every step run three times at most."""


def step(folder: Path, name: str, script: str, cwd: str = ".", **environment: str) -> StepSpec:
    return StepSpec(name, ("sh", "-c", script), str(folder / cwd), environment=environment)


def past(paths: BuildPaths) -> list[tuple[int, int, int]]:
    """Step, attempt and exit status of all that is over, as the supervisor wrote it down."""
    told: dict[str, Any] = json.loads(paths.supervisor.read_bytes())
    return [(run["step"], run["attempt"], run["exit_code"]) for run in told["past"]]


def test_each_command_runs_in_its_own_folder_with_its_own_environment(start: Start, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    steps = [
        step(tmp_path, "one", 'echo "$MINE ${OTHER-none} $(basename "$PWD")"', "in", MINE="1"),
        step(tmp_path, "two", 'echo "${MINE-none} $OTHER"', OTHER="2"),
    ]
    paths = start("unused", steps=steps)
    ended = exit_of(paths)
    assert (ended["exit_code"], ended["step"]) == (0, 2)
    assert paths.output.read_text() == "1 none in\nnone 2\n"
    assert past(paths) == [(1, 1, 0)]


def test_the_first_that_fails_ends_the_build_with_its_status(start: Start, tmp_path: Path) -> None:
    steps = [step(tmp_path, name, script) for name, script in (("a", "true"), ("b", "exit 5"), ("c", "touch c"))]
    paths = start("unused", steps=steps)
    ended = exit_of(paths)
    assert (ended["exit_code"], ended["step"], ended["stopped"]) == (5, 2, False)
    assert not (tmp_path / "c").exists()


def test_it_begins_where_it_is_told_to(start: Start, tmp_path: Path) -> None:
    steps = [step(tmp_path, name, f"touch {name}") for name in "abc"]
    paths = start("unused", steps=steps, first=2)
    assert exit_of(paths)["exit_code"] == 0
    assert [name for name in "abc" if (tmp_path / name).exists()] == ["b", "c"]


def test_attempts_are_counted_for_each_step(start: Start, tmp_path: Path) -> None:
    fails = "echo x >>{0}; [ $(wc -l <{0}) -ge {1} ] || exit 7"
    steps = [step(tmp_path, "one", fails.format("one", 3)), step(tmp_path, "two", fails.format("two", 2))]
    paths = start("unused", engine=AGAIN_ONCE, steps=steps)
    assert exit_of(paths)["exit_code"] == 0
    assert past(paths) == [(1, 1, 7), (1, 2, 7), (1, 3, 0), (2, 1, 7)]


def test_the_engine_is_woken_when_a_step_begins(start: Start, tmp_path: Path) -> None:
    waits = "until [ -e go ]; do sleep 0.05; done"
    paths = start("unused", engine=AGAIN_ONCE, steps=[step(tmp_path, "one", "true"), step(tmp_path, "two", waits)])
    woken = paths.root / "woken"
    steps = until(lambda: woken.exists() and woken.read_text().split())
    assert steps[0] == "2"
    assert supervisor_of(paths)["step"] == 2
    (tmp_path / "go").touch()
    assert exit_of(paths)["exit_code"] == 0


def test_no_command_runs_before_the_supervisor_tells_of_it(start: Start, tmp_path: Path) -> None:
    """Else what it starts would be found first, and be taken for a part of the step before."""
    tells = (tmp_path / "told").as_posix()
    first = step(tmp_path, "first", f"until [ -e {tells} ]; do sleep 0.05; done")
    shows = [StepSpec(f"s{n}", ("cat", tells), str(tmp_path)) for n in range(2, 22)]
    paths = start("unused", steps=[first, *shows])
    (tmp_path / "told").symlink_to(paths.supervisor)
    assert exit_of(paths)["exit_code"] == 0
    told = [json.loads(part)["step"] for part in paths.output.read_text().replace("}{", "}\n{").splitlines()]
    assert told == list(range(2, 22))


def test_a_stop_during_a_step_that_ends_well_starts_no_other(start: Start, tmp_path: Path) -> None:
    catches = "trap 'exit 0' TERM; touch here; while :; do sleep 0.05; done"
    paths = start("unused", steps=[step(tmp_path, "one", catches), step(tmp_path, "two", "touch two")])
    until((tmp_path / "here").exists)
    os.kill(supervisor_of(paths)["supervisor_pid"], signal.SIGTERM)
    ended = exit_of(paths)
    assert (ended["exit_code"], ended["step"], ended["stopped"]) == (0, 1, True)
    assert not (tmp_path / "two").exists()


def test_a_command_that_is_missing_ends_the_build_at_its_step(start: Start, tmp_path: Path) -> None:
    gone = StepSpec("two", ("/nonexistent/tool",), str(tmp_path))
    paths = start("unused", steps=[step(tmp_path, "one", "true"), gone, step(tmp_path, "three", "touch three")])
    ended = exit_of(paths)
    assert (ended["exit_code"], ended["step"]) == (127, 2)
    assert not (tmp_path / "three").exists()


def test_steps_go_on_while_no_engine_lives(start: Start, tmp_path: Path) -> None:
    paths = start(
        "unused", engine=READY + "sys.exit(1)", steps=[step(tmp_path, name, f"touch {name}") for name in "abc"]
    )
    assert exit_of(paths)["exit_code"] == 0
    assert all((tmp_path / name).exists() for name in "abc")
    assert engines_of(paths)
