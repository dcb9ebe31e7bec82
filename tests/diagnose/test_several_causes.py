"""A line that several causes print is not called one cause: its heading says so, unless another line decides."""

from __future__ import annotations

import io

import pytest

from stoker.diagnose.log_reading import read_log
from stoker.diagnose.match import cause_of
from stoker.diagnose.rule import RANKS, shipped_rules
from stoker.diagnose.scan import scan
from stoker.model.diagnosis import Cause

DECIDED_BY_ITS_LINE = {
    "bazel-fail",
    "clock-skew",
    "cmake-old-option",
    "folder-in-use",
    "git-no-repository",
    "installed-conflict",
    "interrupted",
    "python-program-missing",
    "step-timed-out",
    "test-discovery-failed",
    "tests-failed",
    "unit-tests-failed",
    "variable-not-set",
    "yocto-environment",
}
"""Rules of a lesser rank whose line, or the lines below it, say what it is."""


def first(log: str) -> Cause:
    return cause_of(scan(io.BytesIO(log.encode()), shipped_rules())[0])


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("make: *** No rule to make target 'src/timers.c', needed by 'timers.o'.  Stop.", "make-no-rule"),
        ("make: *** No rule to make target 'my_demo_package'.  Stop.", "make-unknown-target"),
        ("make: *** No targets specified and no makefile found.  Stop.", "make-no-makefile"),
        ("ninja: error: loading 'build/build.global.ninja': No such file or directory", "ninja-no-manifest"),
        ("ninja: error: 'gone.c', needed by 'out.o', missing and no known rule to make it", "ninja-missing-input"),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'requirements.txt'", "file-of-sources-missing"),
        ("/usr/bin/ld: cannot find -lpython2", "missing-library"),
        ("/usr/bin/ld: m.c:(.text+0x5): undefined reference to `deflateEnd'", "undefined-known-library"),
        ("gcc: error: toml/toml.c: No such file or directory", "source-file-missing"),
        ("./run.sh: line 3: ofnobody: command not found", "command-not-found"),
        ("ModuleNotFoundError: No module named 'ofnobody'", "python-module-missing"),
        ("make: *** [Makefile:7: huge.o] Killed", "step-killed"),
        ("/bin/sh: 1: cd: can't cd to /go/src/app", "folder-entered-missing"),
        ("CMake Error at CMakeLists.txt:6 (add_library):\n  No SOURCES given to target: app\n", "cmake-source-missing"),
    ],
)
def test_a_line_that_other_causes_print_too_leaves_the_cause_open(line: str, rule: str) -> None:
    cause = first(f"{line}\n")
    assert cause.rule == rule
    assert cause.heading.endswith("(several possible causes)")


@pytest.mark.parametrize(
    ("line", "is_open"),
    [
        ("main.cpp:3:12: error: 'undeclared' was not declared in this scope", False),
        ("main.cpp:3:12: error: use of undeclared identifier 'undeclared'", False),
        ("m.c:3:12: error: 'undeclared' undeclared (first use in this function)", False),
        ('kernel.cu(3): error: identifier "undeclared" is undefined', False),
        ("main.cpp:3:12: error: expected ';' before 'int'", False),
        ("main.cpp:3:12: error: expected primary-expression before ';' token", False),
        ("main.cpp:3:12: error: no matching function for call to 'f(int)'", True),
    ],
)
def test_an_error_that_the_compiler_explains_whole_leaves_no_other_cause_open(line: str, *, is_open: bool) -> None:
    """Of one undeclared name, with its line below, people asked which several causes that had."""
    cause = first(f"{line}\n")
    assert (cause.rule, cause.general) == ("compile-error", is_open)


def test_a_rule_that_only_knows_the_kind_of_failure_is_not_definite() -> None:
    lesser = {rule.id for rule in shipped_rules() if rule.rank >= RANKS.index("general") and not rule.general}
    assert lesser == DECIDED_BY_ITS_LINE


def test_the_generator_in_the_log_decides_why_there_is_no_makefile() -> None:
    no_makefile = "make: *** No targets specified and no makefile found.  Stop.\n"
    for_ninja = first(f"$ cmake .. -GNinja\n-- Build files have been written to: /src/build\n$ make -j\n{no_makefile}")
    assert (for_ninja.rule, for_ninja.general) == ("make-for-files-of-ninja", False)
    assert first(f"$ cmake ..\n-- Build files have been written to: /src/build\n$ make -j\n{no_makefile}").general


def test_a_function_of_the_project_is_not_taken_for_one_of_a_c_library() -> None:
    own = first("main.cpp:(.text+0x4d): undefined reference to `cudaSmooth(float*, int)'\n")
    assert own.rule == "undefined-reference"
    of_cuda = first("main.cpp:(.text+0x4d): undefined reference to `cudaMalloc'\n")
    assert of_cuda.rule == "undefined-cuda-runtime"


def test_a_missing_header_is_named_where_only_the_reason_is_translated() -> None:
    assert first("a.c:1:10: fatal error: libxml/xmlversion.h: 没有那个文件或目录\n").rule == "header-of-package"


@pytest.mark.parametrize(
    "warning",
    [
        "warning: could not open directory 'foo/': Permission denied",
        "WARNING: 'help2man' is missing on your system.",
        "/usr/bin/ld: warning: libcuda.so.1, needed by libggml-cuda.so, not found (try using -rpath or -rpath-link)",
    ],
)
def test_a_warning_is_not_the_cause_where_an_error_follows_that_no_rule_knows(warning: str) -> None:
    log = f"{warning}\nfrob gears.in\nfrob: error: the gears do not mesh\nmake: *** [gears] Error 3\n"
    reading = read_log(io.BytesIO(log.encode()), shipped_rules(), has_failed=True)
    assert reading.verdict == "unknown"
    assert reading.causes[0].text == "frob: error: the gears do not mesh"


def test_a_program_that_a_mac_ends_at_its_start_is_not_called_out_of_memory() -> None:
    said = "process didn't exit successfully: `{}/target/build/log/build-script-build` (signal: 9, SIGKILL: kill)\n"
    assert first(said.format("/Users/a/app")).rule == "macos-kills-unsigned"
    assert first(said.format("/home/a/app")).rule == "step-killed"


def test_the_headers_of_python_two_have_a_package_of_their_own() -> None:
    log = "gcc -I/usr/include/python{} -c a.c -o a.o\na.c:32:10: fatal error: Python.h: No such file or directory\n"
    assert "python2-dev" in first(log.format("2.7")).remedy
    assert "python2" not in first(log.format("3.11")).remedy
