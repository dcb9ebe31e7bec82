"""`stoker demo` as a person tries it: what it offers at its end can be done."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path

import pytest

from stoker.model.units import parse_size
from support.program import Stoker
from support.terminal import Terminal


@pytest.mark.long
def test_a_demo_whose_folder_goes_offers_no_going_on_and_is_never_meant_by_it(stoker: Stoker, tmp_path: Path) -> None:
    ran = stoker.run("demo", "--plain", "--fail", "--seconds", "1", "--memory", "500M", TMPDIR=str(tmp_path))
    said = ran.stderr.decode()
    assert ran.returncode == 1, said
    assert "what to do: stoker diagnose demo" in said
    assert "--resume" not in said
    assert " killed" in said.splitlines()[-1]
    (demo,) = json.loads(stoker.run("ls", "--json").stdout)
    assert not list(tmp_path.glob("stoker-demo-*"))
    assert "no build was started in this folder" in stoker.run("run", "--plain", "--resume").stderr.decode()
    assert "is gone" in stoker.run("run", "--plain", "--resume", demo["id"]).stderr.decode()


@pytest.mark.long
def test_the_screens_of_a_demo_offer_to_resume_it_only_while_its_folder_is_there(
    stoker: Stoker, tmp_path: Path
) -> None:
    env = {**stoker.env, "LC_ALL": "C.UTF-8", "TMPDIR": str(tmp_path)}
    words = ("demo", "--fail", "--seconds", "1", "--memory", "500M")
    offers = {words: "resumes it now; stoker demo starts another", ("attach", "demo"): "its folder is gone"}
    for argv, offered in offers.items():
        with contextlib.closing(Terminal(stoker.argv(*argv), env, stoker.root, 80, 24)) as terminal:
            assert "--resume" not in terminal.wait_for(offered)
            terminal.send("q")
            assert terminal.wait() == 1
            assert b"--resume" not in terminal.raw


@pytest.mark.long
def test_a_demo_says_how_its_jobs_fought_and_teaches_other_builds_nothing(stoker: Stoker, tmp_path: Path) -> None:
    ran = stoker.run("demo", "--plain", "--seconds", "12", "--memory", "480M", TMPDIR=str(tmp_path))
    last = ran.stderr.decode().splitlines()[-1]
    found = re.fullmatch(
        r"stoker: (\d+) waited for memory, \d+ freezes?(?: of \d+ jobs?)?, \d+ killed; "
        r"plain ninja -j\d+ would have needed ([\d.]+ [MG]iB), the budget is 480 MiB",
        last,
    )
    assert found is not None, last
    assert int(found[1]) > 0
    assert parse_size(found[2]) > 480 << 20
    assert json.loads(stoker.run("history", "--json").stdout)["jobs"] == 0
