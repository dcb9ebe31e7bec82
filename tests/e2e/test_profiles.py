"""`stoker run -p`: steps in their order, in both eras of PyTorch's build, and on from where the last build stopped."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from support.profiled import last, run
from support.program import PYPI_NINJA, Stoker, until, write_ninja
from support.torchlike import write_torchlike

pytestmark = pytest.mark.long

PYTHON = f"python={sys.executable}"

CHECKED = f"""\
extends: pytorch-32gb
cache: none
steps:
  configure: {{}}
  heavy: {{}}
  heavy-objects: {{}}
  wheel: {{}}
  verify:
    command: [{sys.executable}, -P, -m, stoker, verify, --json, build/libtorch_cuda.so]
    scheduler: none
"""
"""The shipped profile and a step that looks at what came of it."""


@pytest.fixture
def profiles(stoker: Stoker) -> Path:
    """The person's own profiles."""
    folder = stoker.root / "config" / "stoker" / "profiles"
    folder.mkdir(parents=True)
    return folder


def steps(stoker: Stoker, build: str) -> list[tuple[int, int, str, int | None]]:
    """Index, count, name and exit status of every step that began."""
    begun: list[dict[str, Any]] = []
    for event in stoker.events(build):
        if event["type"] == "step_started":
            begun.append({**event, "exit_code": None})
        elif event["type"] == "step_ended":
            begun[-1]["exit_code"] = event.get("exit_code")
    return [(e["index"], e["count"], e["name"], e["exit_code"]) for e in begun]


def outputs(stoker: Stoker, step: int) -> set[str]:
    """What the jobs of a step made, without folders."""
    found, now = set(), 0
    for event in stoker.events(last(stoker)):
        if event["type"] == "step_started":
            now = event["index"]
        elif event["type"] == "job_finished" and now == step:
            found.add(Path(event["output"]).name)
    return found


@pytest.mark.parametrize(
    ("old", "expected"),
    [(True, ["configure", "heavy", "wheel", "verify"]), (False, ["heavy-objects", "wheel", "verify"])],
    ids=["setup.py", "scikit-build-core"],
)
def test_the_heavy_kernels_come_first_in_either_era(
    stoker: Stoker, profiles: Path, tmp_path: Path, old: bool, expected: list[str]
) -> None:
    (profiles / "checked.yaml").write_text(CHECKED)
    checkout = write_torchlike(tmp_path / "pytorch", old=old)
    status, said = run(stoker, "checked", checkout, "--set", PYTHON)
    assert status == 0, said
    found = steps(stoker, last(stoker))
    assert found == [(n, len(expected), name, 0) for n, name in enumerate(expected, 1)]
    heavy = expected.index("wheel")
    assert outputs(stoker, heavy) == {"flash_fwd.cpp.o", "flash_bwd.cpp.o"}
    assert {"cuda.cpp.o", "libtorch_cuda.so"} <= outputs(stoker, heavy + 1)
    assert not outputs(stoker, heavy + 1) & {"flash_fwd.cpp.o", "flash_bwd.cpp.o"}
    assert (checkout / "dist" / "torch-1-py3-none-any.whl").exists()
    events = stoker.events(last(stoker))
    assert any(e["type"] == "verified" and "torch-1" in e["found"]["files"][0]["path"] for e in events)
    assert not any("expects" in e.get("text", "") for e in events)


ENVIRONMENT = """\
variables: {word: one, folder: in}
env: {MINE: "${word}", OURS: of the profile, EMPTY: ""}
steps:
  first:
    command: [sh, -c, 'echo "first $MINE $OURS ${EMPTY-unset} $ALONE"; mkdir -p in']
    env: {ALONE: "1"}
  second:
    cwd: ${folder}
    command: [sh, -c, 'echo "second $MINE $OURS ${ALONE-unset} $(basename "$PWD") $@"', sh, "${extra}"]
""".replace("${EMPTY-unset}", "$${EMPTY-unset}").replace("${ALONE-unset}", "$${ALONE-unset}")


def test_each_step_has_its_own_environment_and_folder(stoker: Stoker, profiles: Path, tmp_path: Path) -> None:
    (profiles / "env.yaml").write_text(ENVIRONMENT)
    stoker.env |= {"OURS": "of the person", "MINE": "stale"}
    stoker.env.pop("EMPTY", None)
    result = stoker.run("run", "--plain", "-p", "env", "--set", "word=by hand", "--", "a b", "c", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    lines = [line for line in result.stdout.decode().splitlines() if line.startswith(("first ", "second "))]
    assert lines == ["first by hand of the person unset 1", "second by hand of the person unset in a b c"]
    assert b"OURS=of the person is yours and stays" in result.stderr


STOPS = "steps:\n  one: {command: 'true'}\n  two: {command: [sh, -c, 'exit 3']}\n  three: {command: touch three}\n"


def test_the_first_step_that_fails_is_the_last_one(stoker: Stoker, profiles: Path, tmp_path: Path) -> None:
    (profiles / "stops.yaml").write_text(STOPS)
    assert run(stoker, "stops", tmp_path)[0] == 3
    assert steps(stoker, last(stoker)) == [(1, 3, "one", 0), (2, 3, "two", 3)]
    assert stoker.status(last(stoker))["step"] == {"name": "two", "index": 2, "count": 3, "attempt": 1}
    assert not (tmp_path / "three").exists()


def test_an_engine_that_is_killed_loses_no_step(stoker: Stoker, profiles: Path, tmp_path: Path) -> None:
    waits = "command: [sh, -c, 'touch %s.here; until [ -e %s.go ]; do sleep 0.2; done']"
    body = "".join(f"  {name}: {{{waits % (name, name)}}}\n" for name in ("one", "two"))
    (profiles / "slow.yaml").write_text(f"steps:\n{body}  three: {{command: 'true'}}\n")
    build = stoker.run("run", "--detach", "-p", "slow", cwd=tmp_path).stdout.decode().strip()
    until((tmp_path / "one.here").exists, "the first step")
    os.kill(stoker.engine_pid(build), signal.SIGKILL)
    (tmp_path / "one.go").touch()
    until((tmp_path / "two.here").exists, "the second step")
    (tmp_path / "two.go").touch()
    assert stoker.ended(build)["state"] == "done"
    assert steps(stoker, build) == [(1, 3, "one", 0), (2, 3, "two", 0), (3, 3, "three", 0)]


@pytest.mark.parametrize(("retries", "attempts"), [(5, [1, 2]), (0, [1])])
def test_a_step_with_killed_jobs_runs_again_as_often_as_it_may(
    stoker: Stoker, profiles: Path, tmp_path: Path, retries: int, attempts: list[int]
) -> None:
    """And only that step: what was done before is not done again."""
    once = "[ -e killed ] || { touch killed; sleep 1; kill -9 $$; }; touch out"
    write_ninja(tmp_path / "build", [("out", once)])
    (profiles / "again.yaml").write_text(
        "steps:\n  one: {command: [sh, -c, 'echo one >>ran']}\n"
        f"  two: {{command: {PYPI_NINJA} -C build, retries: {retries}}}\n"
        "  three: {command: [sh, -c, 'echo three >>ran']}\n"
    )
    status, _ = run(stoker, "again", tmp_path)
    assert (status == 0) is (retries > 0)
    begun = [e for e in stoker.events(last(stoker)) if e["type"] == "step_started" and e["index"] == 2]
    assert [e.get("attempt", 1) for e in begun] == attempts
    assert (tmp_path / "ran").read_text().split() == (["one", "three"] if status == 0 else ["one"])
    if status:
        assert "the profile allows no further attempt at this step" in stoker.status(last(stoker))["reason"]


def test_short_ninjas_of_each_step_are_counted(stoker: Stoker, profiles: Path, tmp_path: Path) -> None:
    letters = "abcdefghij"
    for letter in letters:
        write_ninja(tmp_path / letter, [(f"{letter}{n}", f"touch {letter}{n}") for n in range(3)])
    commands = [
        f"command: {PYPI_NINJA} -C {x}" if x in "aeiou" else f"command: {PYPI_NINJA}, cwd: {x}" for x in letters
    ]
    body = "".join(f"  {letter}: {{{command}}}\n" for letter, command in zip(letters, commands, strict=True))
    (profiles / "many.yaml").write_text(f"steps:\n{body}")
    assert run(stoker, "many", tmp_path)[0] == 0
    made = {letter: outputs(stoker, step) for step, letter in enumerate(letters, start=1)}
    assert made == {letter: {f"{letter}{n}" for n in range(3)} for letter in letters}
    assert stoker.status(last(stoker))["progress"]["finished"] == 3 * len(letters)


def test_the_level_of_a_step_holds_for_that_step(stoker: Stoker, profiles: Path, tmp_path: Path) -> None:
    jobs = [(f"{letter}{n}", f"sleep 0.7; touch {letter}{n}") for letter in "ab" for n in range(4)]
    write_ninja(tmp_path / "build", jobs)
    (profiles / "two.yaml").write_text(
        "variables: {few: '1'}\nsteps:\n"
        f"  a: {{command: {PYPI_NINJA} -C build a0 a1 a2 a3, level: '${{few}}'}}\n"
        f"  b: {{command: {PYPI_NINJA} -C build b0 b1 b2 b3}}\n"
    )
    usual = stoker.ended(stoker.detach("true"))["level"]["target"]
    build = stoker.run("run", "--detach", "-p", "two", cwd=tmp_path).stdout.decode().strip()
    status = stoker.ended(build)
    targets, step = {1: set[int](), 2: set[int]()}, 1
    for event in stoker.events(build):
        step = event["index"] if event["type"] == "step_started" else step
        if event["type"] == "level_set":
            targets[step].add(event["target"])
    assert targets[1] == {1}
    assert status["level"]["target"] == usual


def test_another_scheduler_than_expected_is_told(stoker: Stoker, profiles: Path, tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("all:\n\tsleep 1\n")
    (profiles / "odd.yaml").write_text("steps:\n  all: {command: make -j2, scheduler: ninja}\n")
    status, said = run(stoker, "odd", tmp_path)
    assert status == 0
    assert "step all ran make; its profile expects ninja" in said


@pytest.mark.parametrize(
    ("words", "status", "part"),
    [
        (["-p", "pytroch"], 2, "no profile 'pytroch'; did you mean 'pytorch'?"),
        (["-p", "ninja", "--set", "folder"], 2, "'folder' is not NAME=VALUE"),
        (["-p", "ninja", "--set", "foldr=x"], 2, "no variable 'foldr'; did you mean 'folder'?"),
        (["-p", "ninja", "--resume"], 2, "no build of profile 'ninja' in this folder to resume"),
        (["--set", "a=b", "--", "true"], 2, "--set goes with a profile"),
        (["-p", "pytorch", "--set", "python=no-such-python"], 127, "step wheel: no-such-python: not found on PATH"),
    ],
)
def test_what_cannot_run_is_said_in_one_line_and_leaves_nothing(
    stoker: Stoker, tmp_path: Path, words: list[str], status: int, part: str
) -> None:
    result = stoker.run("run", *words, cwd=tmp_path)
    assert result.returncode == status
    assert result.stderr.count(b"\n") == 1
    assert part in result.stderr.decode()
    assert not list(stoker.state.glob("stoker/builds/*"))


def test_the_modules_of_a_project_do_not_reach_the_engine(stoker: Stoker, profiles: Path, tmp_path: Path) -> None:
    folder = write_ninja(tmp_path / "p", [("o", "echo $PYTHONPATH > o")])
    (folder / "yaml.py").write_text("raise SystemExit('the wrong one')\n")
    (profiles / "mine.yaml").write_text(f"env: {{PYTHONPATH: {folder}}}\nsteps: {{all: {{command: {PYPI_NINJA}}}}}\n")
    stoker.env.pop("PYTHONPATH", None)
    status, said = run(stoker, "mine", folder, "--no-doctor")
    assert status == 0, said
    assert (folder / "o").read_text() == f"{folder}\n"
    assert stoker.status(last(stoker))["progress"]["finished"] == 1
    assert (stoker.folder(last(stoker)) / "engine.log").read_text() == ""
