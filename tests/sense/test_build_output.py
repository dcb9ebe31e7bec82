from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stoker.sense.ninja import build_output
from stoker.sense.ninja.build_output import BuildOutput, Found, PercentLine, ReportedFailure, StatusLine

NINJA_111 = (
    b"[1/3] CC a.o\nFAILED: b.o b.d \ngcc -c b.c\nb.c:1: error: x\n  | oops\n[2/3] CC c.o\n"
    b"ninja: build stopped: subcommand failed.\n"
)
NINJA_113 = NINJA_111.replace(b"FAILED: ", b"FAILED: [code=7] ")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "output.log"


def _read(log: Path, data: bytes, pieces: int = 1) -> list[Found]:
    """The findings when the log grows in pieces, and ends."""
    reader = BuildOutput(log)
    found: list[Found] = []
    size = max(1, -(-len(data) // pieces))
    with log.open("wb", buffering=0) as file:
        for start in range(0, len(data), size):
            file.write(data[start : start + size])
            found += reader.read_new()
    return found + reader.finish()


def _failures(found: list[Found]) -> list[ReportedFailure]:
    return [f for f in found if isinstance(f, ReportedFailure)]


@pytest.mark.parametrize(("text", "code"), [(NINJA_111, None), (NINJA_113, 7)])
@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
@pytest.mark.parametrize("indent", [b"", b"      "])
@pytest.mark.parametrize("pieces", [1, 2])
def test_a_failed_block_of_ninja(
    log: Path, text: bytes, code: int | None, ending: bytes, indent: bytes, pieces: int
) -> None:
    data = b"".join(indent + line + ending for line in text.splitlines())
    found = _read(log, data, pieces)
    [failure] = _failures(found)
    assert (failure.output, failure.command, failure.exit_code) == ("b.o", "gcc -c b.c", code)
    assert failure.excerpt == (b"b.c:1: error: x", b"  | oops")
    block = data[failure.log_start : failure.log_end]
    assert block.lstrip().startswith(b"FAILED:")
    assert block.endswith(b"oops" + ending)
    assert [(f.done, f.total) for f in found if isinstance(f, StatusLine)][-1] == (2, 3)


def test_pieces_of_any_size_tell_the_same(log: Path) -> None:
    whole = _failures(_read(log, NINJA_113))
    for pieces in range(2, len(NINJA_113), 7):
        assert [f.output for f in _failures(_read(log, NINJA_113, pieces))] == [f.output for f in whole]


def test_a_coloured_failure(log: Path) -> None:
    data = b"\x1b[31mFAILED: [code=1] \x1b[0mx.o \ncc x\n\x1b[1merror\x1b[0m\n[2/2] y\n"
    [failure] = _failures(_read(log, data))
    assert (failure.output, failure.exit_code, failure.excerpt) == ("x.o", 1, (b"\x1b[1merror\x1b[0m",))


def test_a_failure_is_told_when_nothing_more_comes(log: Path) -> None:
    now = 10.0
    reader = BuildOutput(log, clock=lambda: now)
    assert reader.read_new() == []
    log.write_bytes(b"FAILED: x.o \ncc x\nbad\n")
    assert reader.read_new() == []
    assert reader.read_new() == [], "at once a pause says nothing"
    now += 0.5
    assert [f.output for f in _failures(reader.read_new())] == ["x.o"]
    assert reader.read_new() == []
    assert reader.finish() == []


def test_a_failure_without_a_word_yet_is_waited_for_longer(log: Path) -> None:
    """Ninja says first what has failed, and looks through megabytes of its output before it prints them."""
    now = 10.0
    reader = BuildOutput(log, clock=lambda: now)
    log.write_bytes(b"FAILED: x.o \ncc x\n")
    assert reader.read_new() == []
    now += 0.5
    assert reader.read_new() == []
    with log.open("ab") as file:
        file.write(b"x.c:1: error: bad\n")
    assert reader.read_new() == []
    now += 0.5
    assert [f.excerpt for f in _failures(reader.read_new())] == [(b"x.c:1: error: bad",)]


def test_a_death_without_a_word_is_told_all_the_same(log: Path) -> None:
    now = 10.0
    reader = BuildOutput(log, clock=lambda: now)
    log.write_bytes(b"FAILED: x.o \ncc x\n")
    assert reader.read_new() == []
    now += 1.5
    assert [(f.output, f.excerpt) for f in _failures(reader.read_new())] == [("x.o", ())]


def test_two_failures_in_a_row_and_an_inner_make(log: Path) -> None:
    data = b"FAILED: a \ncmd a\nmake[1]: *** [Makefile:3: deep] Error 2\n[ 50%] inner\nFAILED: b \ncmd b\n"
    failures = _failures(_read(log, data))
    assert [f.output for f in failures] == ["a", "b"]
    assert failures[0].excerpt == (b"make[1]: *** [Makefile:3: deep] Error 2", b"[ 50%] inner")


def test_the_excerpt_is_bounded(log: Path) -> None:
    body = b"".join(b"%d " % i + b"y" * 5000 + b"\n" for i in range(100))
    [failure] = _failures(_read(log, b"FAILED: x \ncmd\n" + body + b"[1/1] z\n"))
    assert len(failure.excerpt) == build_output.EXCERPT_LINES
    assert max(map(len, failure.excerpt)) == build_output.EXCERPT_LINE
    assert failure.log_end - failure.log_start == len(b"FAILED: x \ncmd\n" + body)


def test_ten_megabytes_without_a_newline_and_binary_dirt(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_output, "MAX_PER_READ", 300_000)
    huge = b"x" * 1_000_000 + b"[7/9] no line start " * 10_000
    data = b"[1/9] a\n" + huge + b"\n\x00\xff\x1b]52;c;\x07\n[2/9] b\n"
    reader = BuildOutput(log)
    log.write_bytes(data)
    seen: list[Found] = []
    for _ in range(10):
        seen += reader.read_new()
    assert [(f.done, f.total) for f in seen if isinstance(f, StatusLine)] == [(1, 9), (2, 9)]
    assert reader.offset == len(data)


def test_only_the_last_progress_of_a_read_is_told(log: Path) -> None:
    found = _read(log, b"[1/9] a\n[2/9] b\n[ 10%] c\n[ 45%] d\n[100%] e\n[3/9] f\n[999%] g\n")
    assert [replace(f, each=0.0) if isinstance(f, PercentLine) else f for f in found] == [
        PercentLine(34, 100),
        StatusLine(43, 3, 9),
    ]


def test_by_how_much_a_recipe_takes_cmakes_percentage_on(log: Path) -> None:
    """A target that was complete before is no recipe, and another make begins from the start."""
    one = b"[ 40%] Built target base\n[ 45%] Building C object a.o\n[ 55%] Linking C static library liba.a\n"
    other = b"[ 10%] Building C object other.o\n[ 30%] Building C object another.o\n"
    for text, told in ((one, (55, 7.5)), (one + other, (30, 15.0))):
        (line,) = _read(log, text)
        assert isinstance(line, PercentLine)
        assert (line.percent, line.each) == told


@pytest.mark.parametrize(
    "text",
    [b"text [1/2] x\n", b"[1/2]x\n", b"[x/2] y\n", b"NOT FAILED: x\n", b"make: *** no\n", b"remake: *** [x] Error 1\n"],
)
def test_what_only_looks_alike_is_nothing(log: Path, text: bytes) -> None:
    assert _read(log, text) == []


@pytest.mark.parametrize(
    ("line", "target", "code"),
    [
        (b"make: *** [Makefile:3: all] Error 1", "all", 1),
        (
            b"gmake[2]: *** [CMakeFiles/x.dir/build.make:76: CMakeFiles/x.dir/a.cc.o] Error 4",
            "CMakeFiles/x.dir/a.cc.o",
            4,
        ),
        (b"make: *** [old-style] Error 127", "old-style", 127),
        (b"make: *** [<builtin>: b.o] Error 1", "b.o", 1),
        (b"make: *** [Makefile:3: all] Killed", "all", 137),
        (b"make: *** [all] Segmentation fault (core dumped)", "all", 139),
        (b"make: *** [all] Deleted by gremlins", "all", None),
    ],
)
def test_an_error_of_make(log: Path, line: bytes, target: str, code: int | None) -> None:
    [failure] = _failures(_read(log, b"cc -c a.c\na.c:1: error\n" + line + b"\n"))
    assert (failure.output, failure.exit_code) == (target, code)
    assert failure.excerpt == (b"cc -c a.c", b"a.c:1: error")
    assert failure.log_start == 0


def test_makes_around_a_failed_make_are_not_counted_again(log: Path) -> None:
    data = (
        b"make[2]: *** [x:1: a.o] Error 1\nmake[2]: *** Waiting for unfinished jobs....\n"
        b"make[2]: *** [x:2: b.o] Error 1\n"
        b"make[1]: *** [y:3: sub/all] Error 2\nmake: *** [z:4: all] Error 2\nmake: [q:5: ok] Error 1 (ignored)\n"
    )
    assert [f.output for f in _failures(_read(log, data))] == ["a.o", "b.o"]


def test_failures_are_bounded(log: Path) -> None:
    data = b"".join(b"FAILED: %d \ncmd\nbad\n" % i for i in range(1000)) + b"[1/1] x\n"
    assert len(_failures(_read(log, data))) == build_output.MAX_FAILURES


def test_what_a_real_ninja_prints(ninja: str, tmp_path: Path, log: Path) -> None:
    (tmp_path / "build.ninja").write_text(
        "rule r\n  command = $cmd\nbuild good: r\n  cmd = touch good\n"
        "build bad: r\n  cmd = echo broken; exit 3\nbuild worse: r\n  cmd = kill -9 $$$$\n"
    )
    with log.open("wb") as file:
        subprocess.run([ninja, "-k0", "-j1"], cwd=tmp_path, stdout=file, stderr=file, check=False)
    reader = BuildOutput(log)
    failures = {f.output: f for f in _failures(reader.read_new() + reader.finish())}
    assert set(failures) == {"bad", "worse"}
    assert failures["bad"].excerpt == (b"broken",)
    assert failures["bad"].command == "echo broken; exit 3"
    assert failures["bad"].exit_code in (3, None)
    assert failures["worse"].excerpt in ((), (b"Killed",))


def test_what_a_real_make_prints(tmp_path: Path, log: Path, needs: Callable[..., Any]) -> None:
    needs("make")
    (tmp_path / "sub").mkdir()
    (tmp_path / "Makefile").write_text("all:\n\t$(MAKE) -C sub\n")
    (tmp_path / "sub" / "Makefile").write_text("all: deep\ndeep:\n\t@echo trouble\n\t@exit 9\n")
    environment = {**os.environ, "LC_ALL": "C", "MAKEFLAGS": ""}
    with log.open("wb") as file:
        subprocess.run(["make"], cwd=tmp_path, env=environment, stdout=file, stderr=file, check=False)
    reader = BuildOutput(log)
    [failure] = _failures(reader.read_new() + reader.finish())
    assert (failure.output, failure.exit_code) == ("deep", 9)
    assert failure.excerpt[-1] == b"trouble"
