"""`stoker profiles`: what there is, what one does, what is wrong with it, each with its exit status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stoker.cli.main import main


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The person's own folder; the working folder is another."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    folder = tmp_path / "config" / "stoker" / "profiles"
    folder.mkdir(parents=True)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return folder


def told(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().err.splitlines()


def test_the_list_names_ones_own_and_the_shipped(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (own / "mine.yaml").write_text("description: my build\nsteps: {a: {command: x}}\n")
    (own / "bad.yaml").write_text("level: many\n")
    assert main(["profiles", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [" ".join(line.split()) for line in lines if " yours " in line] == [
        f"bad yours {own}/bad.yaml:1: 'level' is a whole number from 1 to 4096, not 'many'",
        "mine yours my build",
    ]
    assert any(line.startswith("pytorch ") and " shipped " in line for line in lines)


def test_the_list_for_programs(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (own / "mine.yaml").write_text("extends: ninja\ndescription: d\nvariables: {folder: out}\n")
    assert main(["profiles", "list", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["mine"] == {
        "name": "mine",
        "path": str(own / "mine.yaml"),
        "source": "yours",
        "description": "d",
        "extends": "ninja",
        "variables": {"folder": "out"},
        "fault": "",
    }
    assert rows["make"]["source"] == "shipped"


def test_show_fills_everything_in_and_says_what_is_left_out_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profiles", "show", "pytorch-32gb", "--set", "arch=8.9", "--set", "heavy_level=2"]) == 0
    out = capsys.readouterr().out
    assert "TORCH_CUDA_ARCH_LIST  8.9" in out
    assert "step 1: configure, left out here: there is no tools/setup_helpers/cmake.py" in out
    assert "step 3: heavy-objects, at most 2 at once" in out
    assert "  ninja -C build flash_attention\n" in out
    assert main(["profiles", "show", "pytorch-32gb", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [step["left_out"] != "" for step in shown["steps"]] == [True, True, False, False]
    assert shown["checks"]["cuda"] == "12.6"


def test_check_tells_every_fault_and_is_silent_where_there_is_none(
    own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["profiles", "check"]) == 0
    assert main(["profiles", "check", "pytorch", "ninja"]) == 0
    assert capsys.readouterr() == ("", "")
    Path("here.yaml").write_text("level: many\nmemory: much\n")
    assert main(["profiles", "check", "here.yaml"]) == 1
    assert [line.split(": ")[1] for line in told(capsys)] == ["here.yaml:1", "here.yaml:2"]
    (own / "bad.yaml").write_text("steps: 5\n")
    assert main(["profiles", "check"]) == 1
    assert told(capsys) == [f"stoker: {own}/bad.yaml:1: 'steps' is a mapping: indent its keys below it"]


@pytest.mark.parametrize(
    ("words", "status", "part"),
    [
        (["check", "pytroch"], 2, "no profile 'pytroch'; did you mean 'pytorch'?"),
        (["check", "./gone.yaml"], 2, "no file './gone.yaml'"),
        (["show", "pytroch"], 2, "no profile 'pytroch'; did you mean 'pytorch'?"),
        (["show", "pytorch", "--set", "ach=8.0"], 2, "no variable 'ach'; did you mean 'arch'?"),
        (["show", "pytorch", "--set", "arch"], 2, "'arch' is not NAME=VALUE, as in --set arch=8.0"),
        (["show", "bad"], 1, "bad.yaml:1: 'level' is a whole number from 1 to 4096, not 'many' (and 1 more: stoker"),
        ([], 2, "list|show|check|schema"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    own: Path, capsys: pytest.CaptureFixture[str], words: list[str], status: int, part: str
) -> None:
    (own / "bad.yaml").write_text("level: many\nmemory: much\n")
    assert main(["profiles", *words]) == status
    (line,) = told(capsys)
    assert part in line


def test_a_name_that_would_harm_a_terminal_does_not(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (own / "mine.yaml").write_text('description: "a\\e]52;c;x\\ab"\nsteps: {a: {command: "x\\e[2J"}}\n')
    assert main(["profiles", "list"]) == main(["profiles", "show", "mine"]) == 0
    assert "\x1b" not in capsys.readouterr().out


def test_the_schema_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profiles", "schema"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "stoker profile"
