"""The likely place of failures that no rule knows, in the words of the tools themselves, provoked here."""

from __future__ import annotations

import io

import pytest

from stoker.diagnose.likely import TRANSLATED_REMEDY
from stoker.diagnose.log_reading import LogReading, read_log
from stoker.diagnose.rule import shipped_rules
from stoker.model.diagnosis import UNKNOWN_FAILURE

MAKE = "make: *** [Makefile:2: x] Error 1\n"
NINJA = "ninja: build stopped: subcommand failed.\n"


def reading(log: str) -> LogReading:
    return read_log(io.BytesIO(log.encode()), ())


TOOLS = {
    "flex": ("flex -o l.c l.l\n> l.l:2: bad character class\nl.l:2: fatal parse error\n", MAKE),
    "bison": (
        "bison y.y\n> y.y:2.4: error: symbol 'b' is used, but is not defined as a token and has no rules\n",
        MAKE,
    ),
    "swig": ("[1/1] swig\nFAILED: x.c \nswig -python x.i\n> x.i:2: Error: Unknown directive '%inclde'.\n", NINJA),
    "gperf": ("[1/1] gperf\nFAILED: k.c \ngperf k\n> k.gperf:1: declarations are not allowed in keywords\n", NINJA),
    "protoc": ('[1/1] protoc\nFAILED: a.pb.cc \nprotoc\n> a.proto:2:13: "strin" is not defined.\n', NINJA),
    "lua": ("[1/1] lua\nFAILED: t.h \nlua5.4 g.lua\n> lua5.4: g.lua:1: unexpected symbol near '='\n", NINJA),
    "jq": ("[1/1] jq\nFAILED: v.h \njq\n> parse error: Expected value before ',' at line 1, column 2\n", NINJA),
    "assert": ("[1/1] ./a\nFAILED: t.h \n./a\n> a: a.c:2: main: Assertion `1==2' failed.\nAborted\n", NINJA),
    "node": ("[1/1] node\nFAILED: t.h \nnode g.js\n  throw err;\n> Error: Cannot find module 'no-mod'\n", NINJA),
    "dtc": ("dtc a.dts\n> Error: a.dts:2.12-13 syntax error\nFATAL ERROR: Unable to parse input tree\n", MAKE),
    "xmllint": ("xmllint a.xml\n> a.xml:1: parser error : Opening and ending tag mismatch: b line 1\n", MAKE),
    "perl": ('perl g.pl\n> syntax error at g.pl line 1, near "= ;"\nExecution of g.pl aborted due to errors.\n', MAKE),
    "awk": ("awk '{ print }' x.in\n> awk: cannot open x.in (No such file or directory)\n", MAKE),
    "go": ("# x\n> ./a.go:2:15: undefined: y\n", ""),
    "meson": (
        'Project name: x\n> meson.build:2:0: ERROR: Dependency "nolib" not found, tried pkgconfig\n\nA log\n',
        "",
    ),
    "cargo": ("> error: string values must be quoted, expected literal string\n --> Cargo.toml:2:8\n", ""),
    "sqlite": ("Traceback (most recent call last):\n  File x\n> sqlite3.OperationalError: no such table: n\n", ""),
    "patch": ("patching file f\n> Hunk #1 FAILED at 1.\n1 out of 1 hunk FAILED -- saving rejects to f.rej\n", ""),
    "git": ("> error: patch failed: f:1\nerror: f: patch does not apply\n", ""),
    "probes": ("-- Looking for error.h - not found\nchecking for fatal: no\n0 errors\n> frob: cannot open x\n", MAKE),
    "ignored": ("make: [Makefile:3: all] Error 1 (ignored)\n> frob: cannot open x\n", MAKE),
    "silent": ("frob x\n", "> make: *** [Makefile:2: x] Error 1\n"),
    "silent step": ("[1/2] frob\n> FAILED: x \nfrob x\n", NINJA),
    "configure's answer": ("checking if it is sane... yes\n> checking for x... configure: error: no x\nSee it\n", ""),
    "macro that is left": (
        "checking for g++... g++\n> ./configure: line 9: syntax error near unexpected token `17,'\n",
        "",
    ),
    "clang's command": (
        "[1/2] HIP a.o\nFAILED: a.o \n/opt/bin/clang++ -DX=1 -o a.o -c a.hip\n> clang++: error: bad luck\n[2/2] CXX\n",
        NINJA,
    ),
    "build script": (
        "error: failed to run custom build command for `p v1`\nCaused by:\n  p\n  --- stderr\n> error: x\n",
        "",
    ),
    "automake": ("configure.ac:5: installing 'build-aux/compile'\n> frob: cannot open x\n", MAKE),
    "german": (
        "g++ -c a.cpp\n> a.cpp:1:20: Fehler: »x« wurde nicht definiert\nmake: *** [Makefile:3: a.o] Fehler 1\n",
        "",
    ),
    "chinese": ("> h.cpp:1:10: 致命错误：nosuch.h：没有那个文件或目录\nmake: *** [Makefile:5：h.o] 错误 1\n", ""),
    "french": ("sh -c x\n> make: *** [Makefile:11: k.o] Processus arrêté\n", ""),
    "japanese": (
        "> a.cpp:1:20: エラー: ‘x’ was not declared in this scope\nmake: *** [Makefile:3: a.o] エラー 1\n",
        "",
    ),
}
"""A log of each, whose likely place begins with `> `."""


@pytest.mark.parametrize("name", TOOLS)
def test_the_likely_place_of_what_no_rule_knows(name: str) -> None:
    marked = "".join(TOOLS[name])
    lines = marked.splitlines()
    (wanted,) = [number for number, line in enumerate(lines, 1) if line.startswith("> ")]
    found = reading(marked.replace("\n> ", "\n").removeprefix("> "))
    (cause,) = found.causes
    assert (found.verdict, cause.line) == ("unknown", wanted), cause.text
    assert cause.context[wanted - cause.context_line] == lines[wanted - 1].removeprefix("> ")
    assert (TRANSLATED_REMEDY in cause.remedy) == (name in ("german", "chinese", "french", "japanese"))


def test_twelve_lines_before_and_twenty_after_but_none_of_the_next_step() -> None:
    lines = [f"-- {n}" for n in range(1, 60)]
    lines[19] = "FATAL nothing goes"
    (cause,) = reading("\n".join(lines)).causes
    assert (cause.context_line, len(cause.context)) == (8, 33)
    lines[29] = "#12 3.45 [8/9] CXX b.o"
    (cause,) = reading("\n".join(lines)).causes
    assert (cause.context_line, len(cause.context)) == (8, 22)


RUNNERS = [
    "##[error]Process completed with exit code 2.",
    "2026-01-02T03:04:05.6789012Z ##[error]Process completed with exit code 2.",
    "ERROR: Job failed: exit code 1",
    "Finished: FAILURE",
]


@pytest.mark.parametrize("runner", RUNNERS)
def test_what_a_ci_service_says_of_any_failure_is_not_the_place(runner: str) -> None:
    assert [cause.text for cause in reading(f"frob x\nfrob: bad luck\n{runner}\n").causes] == ["frob: bad luck"]


@pytest.mark.parametrize(
    "end",
    [
        "[9/9] Linking CXX executable app",
        "[100%] Built target app",
        "100% tests passed, 0 tests failed out of 9\n\nTotal Test time (real) =   0.01 sec",
        "Successfully built x\nInstalling collected packages: x\nSuccessfully installed x-1.0",
        "    Finished release [optimized] target(s) in 1.2s",
        "ninja: no work to do.",
        "make: Nothing to be done for 'all'.",
        "#9 12.3 [9/9] Linking CXX executable app\n#9 DONE 12.5s",
    ],
)
def test_a_log_ends_like_a_build_that_ended_well(end: str) -> None:
    log = f"error: of a probe\n[1/9] CXX a.o\n{end}\n"
    assert reading(log).verdict == "ended-well"
    assert reading(f"{log}make: *** [Makefile:2: x] Error 1\n").verdict == "unknown"
    assert read_log(io.BytesIO(log.encode()), (), has_failed=True).verdict == "unknown"


def test_a_log_that_begins_after_the_failure() -> None:
    assert reading(f"[8/9] CXX a.o\n{NINJA}").verdict == "begins-late"
    assert reading(f"[8/9] CXX a.o\nFAILED: a.o\n{NINJA}").verdict == "unknown"
    assert reading(f"frob: error: x\n{NINJA}").verdict == "unknown"


NO_MANIFEST = "ninja: error: loading 'build.ninja': No such file or directory"


def known(log: str) -> LogReading:
    return read_log(io.BytesIO(log.encode()), shipped_rules())


def test_an_error_that_no_rule_knows_stands_before_what_follows_from_it() -> None:
    first = known(f"$ frob --configure\nERROR: frobnication failed at frob.in, line 57\n$ ninja\n{NO_MANIFEST}\n")
    assert [(cause.rule, cause.line) for cause in first.causes] == [(UNKNOWN_FAILURE, 2), ("ninja-no-manifest", 4)]
    alone = known(f"$ ninja\n{NO_MANIFEST}\n")
    assert [cause.rule for cause in alone.causes] == ["ninja-no-manifest"]
    maybe = known(f"-- zlib not found, doing without\n{NO_MANIFEST}\n")
    assert [cause.rule for cause in maybe.causes] == ["ninja-no-manifest"], "that may be no error at all"


def test_what_slurm_says_of_a_task_is_not_the_likely_place() -> None:
    (cause,) = reading("frob: cannot open x\nsrun: error: cn-1187: task 0: Exited with exit code 1\n").causes
    assert cause.line == 1


def test_what_a_build_needed_and_pip_installed_is_no_good_end() -> None:
    inner = "ERROR: Failed to build 'x'\n$ pip install -v x | tail -1\n  Successfully installed setuptools-82.0.0\n"
    assert not known(inner).ended_well
    assert known("Successfully installed x-1.0\n").ended_well


@pytest.mark.parametrize(
    ("end", "how_far"),
    [
        ("[79/330] Building CUDA object a.c", ", at step 79 of 330"),
        ("#12 3.45 [79/330] CXX a.o\n#12 3.46 a.cpp:1:2: warning: unused", ", at step 79 of 330"),
        ("[ 24%] Building CXX obj", ", at 24 %"),
        ("  Building wheel for flash-attn (setup.py): still running...", ""),
    ],
)
def test_a_log_that_ends_in_mid_build_is_said_to(end: str, how_far: str) -> None:
    found = reading(f"[1/330] CXX z.o\n{end}")
    assert found.verdict == "unfinished"
    assert found.causes[0].title == f"The log ends while the build is still running{how_far}"


@pytest.mark.parametrize(
    "end",
    [
        "[79/330] CXX a.o\nFAILED: a.o\nfrob: bad",
        "[ 24%] Building CXX\nmake: *** [Makefile:2: x] Error 1",
        "[79/330] CXX a.o\n##[error]Process completed with exit code 2.",
    ],
)
def test_a_log_that_shows_a_failure_is_not_unfinished(end: str) -> None:
    assert reading(f"[1/330] CXX z.o\n{end}\n").verdict == "unknown"
