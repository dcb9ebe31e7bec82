"""`stoker demo` as a person tries it: what it offers at its end can be done."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from stoker.model.units import parse_size
from support.program import Stoker


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
