"""Where a build is gone on with, by the files that its launcher and its supervisor left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stoker.config.paths import BuildPaths, builds_dir
from stoker.record.earlier_build import last_build_of

T0 = 1_700_000_000.0
ORIGIN = {"name": "pytorch", "path": "/p.yaml", "settings": {"arch": "8.0"}, "extra": ["-x"]}
NAMES = ("configure", "mend", "heavy", "wheel")
STEPS = [{"name": name, "command": ["x"], "cwd": "/src", "remedy": name == "mend"} for name in NAMES]


@pytest.fixture(autouse=True)
def private_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def write_build(name: str, supervisor: object, ended: object, *, age: float = 0.0, **spec: Any) -> None:
    """The files of a build that nothing runs any more; text is written as it is, None leaves the file out."""
    paths = BuildPaths(builds_dir() / name)
    paths.root.mkdir(parents=True)
    whole = {"name": name, "command": ["x"], "cwd": "/src", "created": T0 - age, "first": 1, "steps": STEPS}
    for path, value in (
        (paths.spec, {**whole, "profile": ORIGIN, **spec}),
        (paths.supervisor, supervisor),
        (paths.exit, ended),
    ):
        if value is not None:
            path.write_text(value if isinstance(value, str) else json.dumps(value))


def past(*runs: tuple[int, int]) -> dict[str, Any]:
    """What a supervisor that is gone knew of the attempts before its last one: step and status."""
    gone = {"supervisor_pid": 2**22 + 1, "supervisor_start": 1, "build_pid": 2**22 + 1, "build_start": 1}
    return {**gone, "past": [{"step": n, "attempt": 1, "pid": 9, "begun": T0, "exit_code": code} for n, code in runs]}


def ended(step: int, code: int, *, stopped: bool = False) -> dict[str, Any]:
    return {"exit_code": code, "signal": None, "step": step, "ended": T0, "stopped": stopped}


@pytest.mark.parametrize(
    ("supervisor", "end", "first", "step"),
    [
        (past(), ended(1, 1), 1, "configure"),
        (past((1, 0), (2, 0)), ended(3, 2), 1, "heavy"),
        (past((1, 0), (2, 0), (3, 137), (3, 0)), ended(4, 1), 1, "wheel"),
        (past((1, 0), (2, 0), (3, 0)), ended(4, 0), 1, ""),
        (past((1, 0), (2, 0)), ended(3, 143, stopped=True), 1, "heavy"),
        (past((1, 0), (2, 0)), ended(3, 0, stopped=True), 1, "heavy"),
        (past((1, 0), (2, 0)), None, 1, "heavy"),
        (past(), ended(3, 1), 3, "heavy"),
        (past((1, 0)), ended(2, 1), 1, "heavy"),
        (past((1, 0), (2, 0)), '{"exit_', 1, "heavy"),
        ("", None, 1, "configure"),
        ("[]", " " * 4096, 3, "heavy"),
        (None, None, 1, "configure"),
    ],
)
def test_the_first_step_without_a_good_end_is_next(supervisor: object, end: object, first: int, step: str) -> None:
    write_build("b", supervisor, end, first=first)
    found = last_build_of("pytorch", "/src")
    assert found is not None
    assert found.step == step
    assert (found.settings, found.extra, found.since) == ({"arch": "8.0"}, ("-x",), T0)


def test_the_newest_build_of_this_profile_in_this_folder_counts() -> None:
    write_build("older", past(), ended(1, 1), age=60.0)
    write_build("newest", past((1, 0), (2, 0)), ended(3, 1), age=30.0, since=T0 - 60.0)
    write_build("elsewhere", past(), ended(1, 1), cwd="/other")
    write_build("another", past(), ended(1, 1), profile={**ORIGIN, "name": "llvm"})
    write_build("by-hand", past(), ended(1, 1), profile=None)
    found = last_build_of("pytorch", "/src")
    assert found is not None
    assert (found.id, found.step, found.since) == ("newest", "heavy", T0 - 60.0), "since the first of all that went on"
    assert last_build_of("vllm", "/src") is None
