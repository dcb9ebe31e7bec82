"""`stoker rules`, `diagnose --rules` and the folder of one's own rules: real files, and files that mean harm."""

from __future__ import annotations

from pathlib import Path

import pytest

from stoker.cli.main import main

RULE = r"""
licence-server:
  title: The licence server is down
  why: It is rebooted at night.
  remedy: "Ask for {program} at the desk."
  patterns:
    licence server: '^(?P<program>\w{1,20}): licence server does not answer'
  examples: |
    frob: licence server does not answer
  source: our desk
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    folder = tmp_path / "config" / "stoker" / "rules"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def log(tmp_path: Path) -> str:
    path = tmp_path / "build.log"
    path.write_text("[1/2] frob\nfrob: licence server does not answer\nmain.cpp:1:1: error: 'x' was not declared\n")
    return str(path)


@pytest.mark.long
def test_rules_of_the_folder_are_known(own: Path, log: str, capsys: pytest.CaptureFixture[str]) -> None:
    (own / "desk.yaml").write_text(RULE)
    assert main(["diagnose", log]) == 0
    assert "Ask for frob at the desk." in capsys.readouterr().out


def test_rules_of_a_file_that_is_named_are_known(
    own: Path, tmp_path: Path, log: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "here.yaml").write_text(RULE)
    assert main(["diagnose", "--rules", str(tmp_path / "here.yaml"), log]) == 0
    assert "licence-server" in capsys.readouterr().out


def test_one_of_a_shipped_name_stands_in_its_place(own: Path, log: str, capsys: pytest.CaptureFixture[str]) -> None:
    mine = RULE.replace("licence-server:", "compile-error:").replace("The licence", "Our licence")
    (own / "desk.yaml").write_text(mine)
    assert main(["rules", "try", log]) == 0
    out = capsys.readouterr().out
    assert "compile-error  line 2" in out
    assert "line 3" not in out


def test_what_matches_in_a_log_is_shown(own: Path, log: str, capsys: pytest.CaptureFixture[str]) -> None:
    (own / "desk.yaml").write_text(RULE)
    assert main(["rules", "try", log]) == 0
    assert "licence-server  line 2\n    frob: licence server" in capsys.readouterr().out


def test_a_log_that_nothing_matches_is_status_1(own: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.log").write_text("all is well\n")
    assert main(["rules", "try", str(tmp_path / "empty.log")]) == 1


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("'^(?P<program>", "'(?:a{0,50}){0,50}^(?P<program>", "has too many ways to match"),
        (r"^(?P<program>\w{1,20})", r".{0,200}(?P<program>\w{1,200}).{0,200}", "has too many ways to match"),
        ("does not answer'\n", "does not answer.*'\n", "repeats without bound"),
        ("  source:", "  action: retry\n  source:", "only shipped rules may have an 'action'"),
        ("frob: licence server does not", "frob: the licence server may not", "does not find its example"),
        ("  why: It is rebooted at night.\n", "", "has no 'why'"),
    ],
)
def test_a_faulty_file_is_reported(
    old: str, new: str, fault: str, own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert old in RULE
    (own / "desk.yaml").write_text(RULE.replace(old, new))
    assert main(["rules", "check"]) == 1
    assert fault in capsys.readouterr().out


def test_a_good_file_is_said_to_be_good(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (own / "desk.yaml").write_text(RULE)
    assert main(["rules", "check"]) == 0
    assert capsys.readouterr().out.endswith("desk.yaml: 1 good\n")


def test_evidence_is_tried_beside_what_it_decides(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evidence = RULE.replace("  patterns:\n", "  beside: [undefined-reference]\n  patterns:\n")
    assert evidence != RULE
    (own / "desk.yaml").write_text(evidence)
    assert main(["rules", "check"]) == 0
    assert capsys.readouterr().out.endswith("desk.yaml: 1 good\n")


def test_without_rules_of_ones_own_it_is_said_where_they_go(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "check"]) == 0
    assert "~/.config/stoker/rules/" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["diagnose"], ["rules", "try"]])
def test_faulty_rules_are_status_2_in_one_line(
    words: list[str], own: Path, log: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (own / "desk.yaml").write_text("licence-server: [")
    assert main([*words, log]) == 2
    err = capsys.readouterr().err
    assert "desk.yaml" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("words", [["try", "nowhere.log"], ["try", "--rules", "nowhere.yaml", "/dev/null"]])
def test_what_is_not_there_is_status_2(words: list[str], own: Path) -> None:
    assert main(["rules", *words]) == 2
