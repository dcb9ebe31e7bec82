"""`stoker diagnose` as people and scripts meet it: text, JSON, exit status, stdin, what cannot be read."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from stoker.cli.commands import diagnose as command
from stoker.cli.main import main

LOGS = Path(__file__).parent / "logs"


def test_text_names_the_cause_its_line_why_and_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", str(LOGS / "memory-cc1plus.log")]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("Out of memory: the kernel killed a compiler  [compiler-killed]\n  line 4:\n")
    assert "\n  > 4  g++: fatal error: Killed signal terminated program cc1plus\n" in printed
    assert "\n    2  FAILED: " in printed
    assert "\n  why     " in printed
    assert "\n  remedy  " in printed


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", "--json", str(LOGS / "cmake-package.log")]) == 0
    found = json.loads(capsys.readouterr().out)
    (first,) = found["matches"]
    assert set(first) >= {"rule", "title", "line", "text", "why", "remedy", "context", "context_line"}
    assert (first["rule"], first["line"]) == ("cmake-package-of-table", 22)
    assert first["context"][0].startswith("CMake Error at "), "the whole message is shown"
    assert (found["verdict"], found["likely"]) == ("general", None)


def test_of_a_likely_place_the_verdict_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log"
    log.write_text("main.cpp:1:10: fatal error: ofnobody.h: No such file or directory\n")
    assert main(["diagnose", "--json", str(log)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["verdict"], found["matches"][0]["general"]) == ("general", True)


def test_the_remedy_stands_before_the_lines_around_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", str(LOGS / "cmake-package.log")]) == 0
    printed = capsys.readouterr().out
    assert printed.index("  remedy  ") < printed.index("  the lines around it\n") < printed.index("CMake Error at ")
    assert printed.index("Could NOT find") < printed.index("  why  "), "the line itself stands first"


def test_where_nothing_looks_like_an_error_the_last_lines_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log"
    log.write_text("all\nis\nquiet\n\n")
    assert main(["diagnose", str(log)]) == 1
    printed = capsys.readouterr().out
    assert "nothing looks like an error; its last lines" in printed
    assert "\n    2  is\n  > 3  quiet\n" in printed


def test_of_an_empty_log_that_is_said_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log"
    log.write_text("\n\n")
    assert main(["diagnose", str(log)]) == 1
    printed = capsys.readouterr().out
    assert printed.count("\n") == 1
    assert "there is nothing in it" in printed
    assert main(["diagnose", "--json", str(log)]) == 1
    assert json.loads(capsys.readouterr().out) == {"matches": [], "verdict": "nothing", "likely": None}


def test_of_a_program_no_bytes_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", "/usr/bin/env"]) == 1
    assert capsys.readouterr().out == "/usr/bin/env: it is not text; name the log of a build\n"
    hole = tmp_path / "log"
    hole.write_bytes(b"\0" * 90_000 + b"FATAL the gadget has no knobs\n\x1b[31mred\x1b[m\x07\b\n")
    assert main(["diagnose", str(hole)]) == 1
    assert "FATAL the gadget has no knobs\n" in capsys.readouterr().out


def test_of_a_failure_that_no_rule_knows_the_likely_place_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log"
    before = "".join(f"-- step {n}\n" for n in range(20))
    log.write_text(f"{before}FATAL the gadget has no knobs\nafter\nmake: *** [Makefile:2: x] Error 1\n")
    assert main(["diagnose", str(log)]) == 1
    printed = capsys.readouterr().out
    assert printed.startswith("No rule knows this failure; the first line that looks like an error  [unknown-failure]")
    assert "  > 21  FATAL the gadget has no knobs\n" in printed
    assert "\n     9  -- step 8\n" in printed
    main(["diagnose", "--json", str(log)])
    found = json.loads(capsys.readouterr().out)
    assert (found["matches"], found["verdict"], found["likely"]["line"]) == ([], "unknown", 21)


def test_a_log_that_begins_after_the_failure_is_said_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log"
    log.write_text("[8/9] Building CXX object b.o\nninja: build stopped: subcommand failed.\n")
    assert main(["diagnose", "--json", str(log)]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["verdict"], found["likely"]["rule"]) == ("begins-late", "log-begins-late")


@pytest.mark.parametrize("name", ["clean-cmake", "clean-ninja", "clean-pip"])
def test_a_log_that_ends_like_a_build_that_ended_well(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    log = str(LOGS / f"{name}.log")
    assert main(["diagnose", log]) == 3
    assert capsys.readouterr().out == f"{log}: ends like a successful build\n"
    assert main(["diagnose", "--json", log]) == 3
    assert json.loads(capsys.readouterr().out) == {"matches": [], "verdict": "ended-well", "likely": None}


def test_several_logs_and_a_folder_of_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ci/sub").mkdir(parents=True)
    killed = (LOGS / "memory-cc1plus.log").read_bytes()
    (tmp_path / "ci/sub/a.log.gz").write_bytes(gzip.compress(killed))
    (tmp_path / "ci/b.txt").write_bytes((LOGS / "clean-ninja.log").read_bytes())
    (tmp_path / "ci/c.png").write_bytes(b"no log")
    other = str(LOGS / "missing-header.log")
    assert main(["diagnose", f"{tmp_path}/ci", other]) == 0
    printed = capsys.readouterr().out
    assert printed.count("== ") == 3
    assert "a.log.gz\nOut of memory: the kernel killed a compiler" in printed
    assert main(["diagnose", "--json", f"{tmp_path}/ci", other, str(tmp_path / "gone")]) == 2
    found = json.loads(capsys.readouterr().out)["logs"]
    assert [log["verdict"] for log in found] == ["ended-well", "known", "known"]
    assert found[2]["file"] == other


def test_how_much_was_read_is_shown_on_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"-- quiet\n" * 100_000)
    monkeypatch.setattr(command, "PROGRESS_AFTER", 0.0)
    monkeypatch.setattr(command, "PROGRESS_EVERY", 0.0)
    main(["diagnose", str(log)])
    assert capfd.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    main(["diagnose", str(log)])
    shown = capfd.readouterr().err
    assert "log: 768 KiB read" in shown
    assert shown.endswith("\r\x1b[K"), "it is wiped"


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


def test_what_else_is_seen_is_said_to_be_earlier_or_later(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log"
    at = "2026-01-02T03:04:05.6789012Z "
    lines = ["curl: (6) Could not resolve host: git.invalid", "a.cpp:3:5: error: no x", "[2/9] CXX b.o", "b.h: y"]
    lines.append("/usr/bin/ld: cannot find -lofnobody")
    log.write_text("".join(f"{at}{line}\n" for line in lines))
    assert main(["diagnose", str(log)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("The source does not compile")
    assert "\nAlso seen, earlier: A host's name was not found  [no-name-resolution]\n" in printed
    later = "The linker does not find a library (several possible causes)  [missing-library]"
    assert f"\nAlso seen, later: {later}\n" in printed
    assert f"\n  > 2  {at}a.cpp:3:5: error: no x\n" in printed, "the marked line has the time that its neighbours have"


def test_many_failures_are_reported_briefly(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log"
    names = ("no-space", "memory-cc1plus", "undefined-reference", "werror", "missing-header")
    parts = ((LOGS / f"{name}.log").read_bytes().replace(b"ninja: build stopped", b"") for name in names)
    log.write_bytes(b"".join(parts))
    assert main(["diagnose", str(log)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("The disk is full")
    assert printed.count("  remedy  ") == 3
    assert "\nAlso seen:\nline " in printed


def test_a_hostile_log_harms_no_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"a\x1b]0;x\x07.cpp:1:2: error: \x1b[31m\x9b2J\xff \xe2\x80\xae oops\n")
    assert main(["diagnose", str(log)]) == 0
    printed = capsys.readouterr().out
    assert all(c == "\n" or c.isprintable() for c in printed)
    assert "\u202e" not in printed
