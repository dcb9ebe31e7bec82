"""`stoker demo` as a person tries it: what it offers at its end can be done."""

from __future__ import annotations

import json
from pathlib import Path

from support.program import Stoker


def test_a_demo_whose_folder_goes_offers_no_going_on_and_is_never_meant_by_it(stoker: Stoker, tmp_path: Path) -> None:
    ran = stoker.run("demo", "--plain", "--fail", "--seconds", "1", "--memory", "500M", TMPDIR=str(tmp_path))
    said = ran.stderr.decode()
    assert ran.returncode == 1, said
    assert "what to do: stoker diagnose demo" in said
    assert "--resume" not in said
    (demo,) = json.loads(stoker.run("ls", "--json").stdout)
    assert not list(tmp_path.glob("stoker-demo-*"))
    assert "no build was started in this folder" in stoker.run("run", "--plain", "--resume").stderr.decode()
    assert "is gone" in stoker.run("run", "--plain", "--resume", demo["id"]).stderr.decode()
