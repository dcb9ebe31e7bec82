"""`stoker history`: what is remembered, for people and for programs, and how to forget it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stoker.cli.main import main
from stoker.config.paths import history_path
from stoker.record.history import History

GIB = 2**30


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def remember(output: str, peak: float, tool: str = "nvcc") -> None:
    history = History(history_path())
    history.add(tool, output, "", ((0.0, 1e6, ""), (90.0, peak, "")))
    history.close()


def test_nothing_is_known_at_first_and_asking_makes_no_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", "--all"]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert "no history yet" in err
    assert main(["history", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["jobs"] == 0
    assert not history_path().exists()


def test_the_heaviest_come_first_and_nothing_harms_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    remember("small.c.o", GIB, "cxx")
    remember("large\x1b[31m.o", 6.5 * GIB)
    assert main(["history", "--all"]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    lines = out.splitlines()
    assert lines[0].startswith("2 jobs (1 c/c++, 1 nvcc), 2 runs, ")
    assert str(history_path()) in lines[0]
    assert "6.5 GiB" in lines[3]
    assert "1:30" in lines[3]
    assert lines[4].split()[-2:] == ["cc", "small.c.o"]


def test_programs_get_json(capsys: pytest.CaptureFixture[str]) -> None:
    remember("small.o", GIB, "cxx")
    remember("large.o", 6 * GIB)
    assert main(["history", "--json", "-n", "1"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["jobs"], data["runs"], data["path"]) == (2, 2, str(history_path()))
    assert data["bytes"] > 0
    assert data["tools"] == [{"tool": "cxx", "jobs": 1}, {"tool": "nvcc", "jobs": 1}]
    (job,) = data["heaviest"]
    assert (job["output"], job["tool"], job["peak"], job["cpu_seconds"], job["runs"]) == (
        *("large.o", "nvcc", 6 * GIB, 90.0, 1),
    )


def test_what_nobody_measured_is_marked_as_a_bound(capsys: pytest.CaptureFixture[str]) -> None:
    """`129 MiB` stood there of a job of 46 MiB that was too short to be measured."""
    history = History(history_path())
    history.add("cxx", "short.c.o", "", ((0.0, 119e6, ""), (0.8, 119e6, "")), bound=True)
    history.close()
    remember("long.c.o", 2**27, "cxx")
    assert main(["history", "--all"]) == 0
    long, short = capsys.readouterr().out.splitlines()[-2:]
    assert "128 MiB" in long
    assert "<" not in long
    assert "< 114 MiB" in short
    assert main(["history", "--json"]) == 0
    assert [job["bound"] for job in json.loads(capsys.readouterr().out)["heaviest"]] == [False, True]


def test_all_can_be_forgotten(capsys: pytest.CaptureFixture[str]) -> None:
    remember("large.o", 6 * GIB)
    assert main(["history", "--forget"]) == 0
    assert "1 job forgotten" in capsys.readouterr().err
    assert main(["history", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["jobs"] == 0


def test_what_is_wrong_with_the_file_is_told_and_forgotten_too(capsys: pytest.CaptureFixture[str]) -> None:
    remember("large.o", 6 * GIB)
    history_path().write_bytes(b"no database" * 1000)
    assert main(["history", "--all"]) == 1
    assert "damaged" in capsys.readouterr().err
    aside = history_path().with_name("history.sqlite3.damaged")
    assert aside.exists()
    assert main(["history", "--forget"]) == 0
    assert not aside.exists()


def test_a_negative_number_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", "-n", "-3"]) == 2
    assert "0 or more" in capsys.readouterr().err
