"""`stoker run -p PROFILE --resume`: on from the step that did not come to a good end, however that happened."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from stoker.contract.process import start_ticks
from support.profiled import last, names, run
from support.program import Stoker, kill_supervisors, until
from support.torchlike import mend, spoil, write_torchlike

pytestmark = pytest.mark.long

PYTORCH = f"""\
extends: pytorch-32gb
cache: none
variables: {{library: libtorch_cuda.so}}
steps:
  configure: {{}}
  heavy: {{}}
  heavy-objects: {{}}
  wheel: {{}}
  verify:
    command: [{sys.executable}, -P, -m, stoker, verify, --json, "build/${{library}}"]
    scheduler: none
"""
"""The shipped profile and a step that looks at what came of it."""

WAITS = "touch %s.here; until [ -e %s.go ]; do sleep 0.2; done"
SLOW = "".join(f"  {name}: {{command: [sh, -c, '{WAITS % (name, name)}']}}\n" for name in ("one", "two"))
SLOW = f"steps:\n{SLOW}  three: {{command: touch three}}\n"
"""Two steps that last until a test lets them end, and a third."""


@pytest.fixture
def profiles(stoker: Stoker) -> Path:
    """The person's own profiles."""
    folder = stoker.root / "config" / "stoker" / "profiles"
    folder.mkdir(parents=True)
    (folder / "torchlike.yaml").write_text(PYTORCH)
    (folder / "slow.yaml").write_text(SLOW)
    return folder


def verified(stoker: Stoker) -> list[str]:
    """The files that the newest build was judged by."""
    found = [e["found"] for e in stoker.events(last(stoker)) if e["type"] == "verified"]
    return [Path(file["path"].partition("::")[0]).name for each in found for file in each["files"]]


def go(folder: Path, *steps: str) -> None:
    for name in steps:
        (folder / f"{name}.go").touch()


def start_slow(stoker: Stoker, folder: Path) -> str:
    """A build that is in its second step."""
    build = stoker.run("run", "--detach", "-p", "slow", cwd=folder).stdout.decode().strip()
    until((folder / "one.here").exists, "the first step")
    go(folder, "one")
    until((folder / "two.here").exists, "the second step")
    until(lambda: stoker.supervisor(build)["step"] == 2, "a word of the supervisor on it")
    return build


def kill_all(stoker: Stoker, build: str) -> None:
    """As when the machine goes down. The engine first, lest it start a watchdog for its supervisor."""
    supervisor: dict[str, Any] = stoker.supervisor(build)
    stoker.kill_supervisors_and_engine(build)
    stoker.end_all()
    until(lambda: start_ticks(supervisor["supervisor_pid"]) is None, "the supervisor's end")


def break_configure(checkout: Path) -> None:
    (checkout / "CMakeLists.txt").write_text("no_such_command()\n" + (checkout / "CMakeLists.txt").read_text())


def mend_all(checkout: Path) -> None:
    text = (checkout / "CMakeLists.txt").read_text()
    (checkout / "CMakeLists.txt").write_text(text.removeprefix("no_such_command()\n"))
    for source in ("flash_bwd", "cuda"):
        mend(checkout, source)


@pytest.mark.long
@pytest.mark.parametrize(
    ("old", "order"),
    [(True, ["configure", "heavy", "wheel", "verify"]), (False, ["heavy-objects", "wheel", "verify"])],
    ids=["setup.py", "scikit-build-core"],
)
def test_each_step_that_fails_is_where_resume_begins(
    stoker: Stoker, profiles: Path, tmp_path: Path, old: bool, order: list[str]
) -> None:
    checkout = write_torchlike(tmp_path / "pytorch", old=old)
    begin: list[str] = []
    words = ["--set", f"python={sys.executable}", "--set", "library=gone.so"]
    for n, step in enumerate(order):
        mend_all(checkout)
        if step == "configure":
            break_configure(checkout)
        elif step != "verify":
            spoil(checkout, "cuda" if step == "wheel" else "flash_bwd")
        status, said = run(stoker, "torchlike", checkout, *words, *begin)
        assert status != 0, said
        assert names(stoker) == order[max(0, n - 1) : n + 1]
        assert f"step {step}: exit status" in stoker.status(last(stoker))["reason"]
        begin, words = ["--resume"], []
    assert verified(stoker) == []
    status, said = run(stoker, "torchlike", checkout, "--resume", "--set", "library=libtorch_cuda.so")
    assert status == 0, said
    assert names(stoker) == ["verify"]
    assert verified(stoker) == ["torch-1-py3-none-any.whl"], "the build before wrote it, which this one goes on with"
    spec = json.loads((stoker.folder(last(stoker)) / "spec.json").read_bytes())
    assert spec["profile"]["settings"] == {"python": sys.executable, "library": "libtorch_cuda.so"}
    status, said = run(stoker, "torchlike", checkout, "--resume")
    assert (status, said.count("\n")) == (2, 1)
    assert "succeeded; there is nothing to resume" in said


@pytest.mark.parametrize(
    "old", [True, pytest.param(False, marks=pytest.mark.long)], ids=["setup.py", "scikit-build-core"]
)
def test_a_machine_that_went_down_over_the_heavy_kernels_takes_them_up_again(
    stoker: Stoker, profiles: Path, tmp_path: Path, old: bool
) -> None:
    checkout = write_torchlike(tmp_path / "pytorch", old=old)
    launcher = tmp_path / "launcher"
    launcher.write_text(
        f'#!/bin/sh\ncase "$*" in *flash_fwd.cpp*) touch {tmp_path}/heavy.here\n'
        f'until [ -e {tmp_path}/heavy.go ]; do sleep 0.2; done;; esac\nexec "$@"\n'
    )
    launcher.chmod(0o755)
    stoker.env["CMAKE_CXX_COMPILER_LAUNCHER"] = str(launcher)
    words = ("run", "--detach", "--no-doctor", "-p", "torchlike", "--set", f"python={sys.executable}")
    build = stoker.run(*words, cwd=checkout).stdout.decode().strip()
    until((tmp_path / "heavy.here").exists, "a heavy kernel")
    kill_all(stoker, build)
    assert stoker.status(build)["state"] == "failed"
    go(tmp_path, "heavy")
    status, said = run(stoker, "torchlike", checkout, "--resume")
    assert status == 0, said
    assert names(stoker) == ["heavy" if old else "heavy-objects", "wheel", "verify"]
    assert verified(stoker) == ["torch-1-py3-none-any.whl"]


def test_a_killed_supervisor_starts_no_further_step_and_its_own_is_run_again(
    stoker: Stoker, profiles: Path, tmp_path: Path
) -> None:
    build = start_slow(stoker, tmp_path)
    kill_supervisors(stoker.supervisor(build))
    status, said = run(stoker, "slow", tmp_path, "--resume")
    assert (status, said.count("\n")) == (2, 1)
    assert f"{build} still runs" in said
    go(tmp_path, "two")
    end = stoker.ended(build)
    assert (end["state"], end["exit_code"]) == ("failed", None)
    assert "exit status is lost" in end["reason"]
    assert not (tmp_path / "three").exists()
    assert run(stoker, "slow", tmp_path, "--resume")[0] == 0
    assert names(stoker) == ["two", "three"]


@pytest.mark.parametrize(
    "signum",
    [pytest.param(signal.SIGSTOP, marks=pytest.mark.long), signal.SIGKILL],
    ids=["hung engine", "killed engine"],
)
def test_a_step_that_no_engine_saw_end_is_done_all_the_same(
    stoker: Stoker, profiles: Path, tmp_path: Path, signum: int
) -> None:
    build = stoker.run("run", "--detach", "-p", "slow", cwd=tmp_path).stdout.decode().strip()
    until((tmp_path / "one.here").exists, "the first step")
    os.kill(stoker.engine_pid(build), signum)
    go(tmp_path, "one")
    until(lambda: stoker.supervisor(build)["step"] == 2, "the second step")
    stoker.end_all()
    until(lambda: stoker.status(build)["ended"], "the end of all its processes")
    go(tmp_path, "two")
    assert run(stoker, "slow", tmp_path, "--resume")[0] == 0
    assert names(stoker) == ["two", "three"]


@pytest.mark.parametrize("dies", [True, pytest.param(False, marks=pytest.mark.long)], ids=["dies of it", "ends well"])
def test_a_stop_starts_no_further_step_and_resume_begins_with_the_stopped_one(
    stoker: Stoker, profiles: Path, tmp_path: Path, dies: bool
) -> None:
    if not dies:
        (profiles / "slow.yaml").write_text(SLOW.replace("touch two.here", 'trap "exit 0" TERM; touch two.here'))
    build = start_slow(stoker, tmp_path)
    assert "still runs" in run(stoker, "slow", tmp_path, "--resume")[1]
    assert stoker.run("stop", build).returncode == 0
    assert stoker.ended(build)["state"] == "stopped"
    assert not (tmp_path / "three").exists()
    go(tmp_path, "two")
    assert run(stoker, "slow", tmp_path, "--resume")[0] == 0
    assert names(stoker) == ["two", "three"]
    assert (tmp_path / "three").exists()


def test_a_step_whose_work_is_there_by_now_is_passed_over(stoker: Stoker, profiles: Path, tmp_path: Path) -> None:
    """As a configure step that was killed behind the last file which it writes."""
    (profiles / "once.yaml").write_text(
        "steps:\n  configure: {command: [sh, -c, 'touch made; exit 1'], when: {no_file: made}}\n"
        "  build: {command: touch built}\n"
    )
    assert run(stoker, "once", tmp_path)[0] == 1
    status, said = run(stoker, "once", tmp_path, "--resume")
    assert status == 0, said
    assert names(stoker) == ["build"]
    assert "step configure is left out" in said
