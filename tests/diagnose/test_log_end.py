"""What a build went on after is not its cause: what stopped it comes first, also if no rule knows it."""

from __future__ import annotations

import io

import pytest

from stoker.diagnose.log_reading import read_log
from stoker.diagnose.rule import shipped_rules

NOISE = "a.cpp:3:10: fatal error: gtk/gtk.h: No such file or directory"
GEARS = "the frobnicator has no gears"
ON = "running build_py\ncreating build/lib\ncopying a.py -> build/lib\n"
TRACE = f'Traceback (most recent call last):\n  File "setup.py", line 3, in <module>\n    turn()\nValueError: {GEARS}\n'
FAILED = f"FAILED: b.o\nfrob b.w -o b.o\nb.w: error: {GEARS}\nninja: build stopped: subcommand failed.\n"
STATUS = "-- Found B: 1.2\n-- Found C: 2.1\n-- Looking for D\n"
UNCONFIGURED = (
    f"CMake Error at CMakeLists.txt:3 (message):\n  {GEARS}\n\n\n-- Configuring incomplete, errors occurred!\n"
)
TARGETS = "".join(f"[ {at}%] Building CXX object x{at}.o\n" for at in range(2, 10))
MAKE = f"b.w: error: {GEARS}\nmake[1]: *** [b.o] Error 1\nmake: *** [all] Error 2\n"

WENT_ON = {
    "a step of ninja that did not fail": f"[1/9] CXX a.o\n{NOISE}\n[2/9] FROB b.o\n{FAILED}",
    "a setup.py that ends with an exception": f"running build\n{NOISE}\n{ON}{TRACE}",
    "a setup.py that ends with an error": f"running build\n{NOISE}\n{ON}error: {GEARS}\n",
    "the same in pip's frame": f"      {NOISE}\n      running build\n{ON}      error: {GEARS}\n      [end of output]\n",
    "a configuration": f"-- A\n{NOISE}\n{STATUS}{UNCONFIGURED}",
    "a target of make": f"[ 1%] Building CXX object a.o\n{NOISE}\n{TARGETS}{MAKE}",
    "a layer of an image": (
        f"#4 [1/3] RUN a\n#4 0.5 {NOISE}\n#4 DONE 3.2s\n\n#5 [2/3] RUN b\n#5 0.3 ValueError: {GEARS}\n"
        "#5 ERROR: process did not complete successfully: exit code: 1\n"
    ),
}


def first_of(log: str) -> str:
    """Return the first cause with the lines around it."""
    cause = read_log(io.BytesIO(log.encode()), shipped_rules()).causes[0]
    return "\n".join((cause.text, *cause.context[cause.line - cause.context_line :])) if cause.line else ""


@pytest.mark.parametrize("log", WENT_ON.values(), ids=WENT_ON)
def test_what_stopped_the_build_comes_before_what_it_went_on_after(log: str) -> None:
    assert GEARS in first_of(log)
    assert NOISE not in first_of(log)


@pytest.mark.parametrize(
    "log",
    [
        f"FAILED: a.o\ng++ -c a.cpp\n{NOISE}\n[2/9] CXX c.o\n{FAILED}",
        f"{NOISE}\nerror: command 'g++' failed with exit code 1\n{ON}{TRACE}",
        f"{NOISE}\n{TRACE}",
        f"{NOISE}\nmake: *** [a.o] Error 1\n{ON}{TRACE}",
        f"{NOISE}\n{ON}{TRACE.replace(GEARS, 'gtk is wanted')}",
        f"{NOISE}\n{ON}{TRACE.replace('ValueError: ' + GEARS, 'RuntimeError: Error compiling objects for extension')}",
        f"{NOISE}\n{STATUS}{UNCONFIGURED.replace(GEARS, 'Failed to build gtk')}",
        f"{NOISE}\n[ 2%] Building CXX object c.o\n{MAKE}",
    ],
)
def test_an_error_that_leads_to_the_end_stays_the_cause(log: str) -> None:
    assert NOISE in first_of(log)


def test_what_it_went_on_after_is_still_shown() -> None:
    causes = read_log(io.BytesIO(WENT_ON["a setup.py that ends with an exception"].encode()), shipped_rules()).causes
    assert [cause.text for cause in causes] == [f"ValueError: {GEARS}", NOISE]


def test_a_lack_of_memory_may_strike_any_step() -> None:
    killed = "g++: fatal error: Killed signal terminated program cc1plus"
    assert killed in first_of(f"[1/9] CXX a.o\n{killed}\n[2/9] FROB b.o\n{FAILED}")


def test_what_it_went_on_after_decides_nothing() -> None:
    log = f"running build\nRuntimeError: CMake not found. Install it first.\n{ON}{TRACE}"
    assert GEARS in first_of(log)


def test_words_of_every_message_make_no_two_one() -> None:
    option = "gcc: error: unrecognized command-line option '-Weverything' in this line"
    assert GEARS in first_of(f"running build\n{option}\n{ON}{TRACE}")


def test_torchs_guess_at_cuda_home_sets_nothing() -> None:
    guess = "No CUDA runtime is found, using CUDA_HOME='/usr/local/cuda'"
    log = f"{guess}\nNameError: name 'bare_metal_version' is not defined\n"
    reading = read_log(io.BytesIO(log.encode()), shipped_rules())
    assert reading.causes[0].rule == "cuda-not-found"


ASKED = "/bin/sh: 1: nvcc: not found\n"


@pytest.mark.parametrize(
    "asked", [ASKED, "make: nvcc: Command not found\n", "/bin/sh: line 1: nvcc: command not found\n"]
)
def test_what_a_makefile_only_asked_for_is_not_the_cause(asked: str) -> None:
    assert GEARS in first_of(f"{asked}{MAKE}")


@pytest.mark.parametrize(
    "log",
    [
        f"{ASKED}make: *** [Makefile:9: a.o] Error 127\n",
        f"{ASKED}{MAKE}make: *** [Makefile:9: a.o] Error 127\n",
        ASKED,
    ],
    ids=["its status says so", "beside another failure", "nothing after it"],
)
def test_a_command_that_was_not_found_is_the_cause_if_a_step_ended_by_that(log: str) -> None:
    assert read_log(io.BytesIO(log.encode()), shipped_rules(), has_failed=True).causes[0].rule == "cuda-not-found"


def test_a_makefile_that_does_not_find_pkg_config_misses_headers_because_of_that() -> None:
    log = "/bin/sh: 1: pkg-config: not found\na.c:1:10: fatal error: gears.h: No such file or directory\n"
    cause = read_log(io.BytesIO(f"{log}make: *** [a.o] Error 1\n".encode()), shipped_rules()).causes[0]
    assert cause.rule == "pkg-config-missing"
