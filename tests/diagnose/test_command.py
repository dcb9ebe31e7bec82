"""`stoker diagnose` as people and scripts meet it: text, JSON, exit status, stdin, what cannot be read."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from stoker.cli.main import main

LOGS = Path(__file__).parent / "logs"


def test_text_names_the_cause_its_line_why_and_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", str(LOGS / "memory-cc1plus.log")]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("Out of memory: the kernel killed a compiler  [compiler-killed]\n  line 4:\n")
    assert "    g++: fatal error: Killed signal terminated program cc1plus\n  why     " in printed
    assert "\n  remedy  " in printed


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", "--json", str(LOGS / "cmake-package.log")]) == 0
    first, second = json.loads(capsys.readouterr().out)["matches"]
    assert set(first) >= {"rule", "title", "line", "text", "why", "remedy"}
    assert (first["rule"], first["line"]) == ("cmake-package-missing", 22)
    assert second["rule"] == "cmake-error"


def test_nothing_known_is_said_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log"
    log.write_text("all is well\n")
    assert main(["diagnose", str(log)]) == 1
    printed = capsys.readouterr().out
    assert printed.count("\n") == 1
    assert "nothing known" in printed
    assert main(["diagnose", "--json", str(log)]) == 1
    assert json.loads(capsys.readouterr().out) == {"matches": []}


def test_stdin(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(
        "sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"virtual memory exhausted: Cannot allocate memory"))
    )
    assert main(["diagnose", "-"]) == 0
    assert "[memory-refused]" in capsys.readouterr().out


def test_what_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in (str(tmp_path / "gone\x1b[31m"), str(tmp_path)):
        assert main(["diagnose", name]) == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert "\x1b" not in said


def test_many_failures_are_reported_briefly(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log"
    names = ("no-space", "memory-cc1plus", "undefined-reference", "werror", "missing-header")
    log.write_bytes(b"".join((LOGS / f"{name}.log").read_bytes() for name in names))
    assert main(["diagnose", str(log)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("The disk is full")
    assert printed.count("  remedy  ") == 3
    assert "\nAlso:\nline " in printed


def test_a_hostile_log_harms_no_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"a\x1b]0;x\x07.cpp:1:2: error: \x1b[31m\x9b2J\xff \xe2\x80\xae oops\n")
    assert main(["diagnose", str(log)]) == 0
    printed = capsys.readouterr().out
    assert all(c == "\n" or c.isprintable() for c in printed)
    assert "\u202e" not in printed
