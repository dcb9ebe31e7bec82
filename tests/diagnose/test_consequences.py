"""What is printed because of a failure, or beside one, never takes the place of its cause."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest

from stoker.diagnose.log_reading import read_log
from stoker.diagnose.rule import Rule, shipped_rules
from support.rule_examples import in_batches, log_of

RULES = shipped_rules()
CONSEQUENCES = [rule for rule in RULES if rule.consequence]
CAUSES = [rule for rule in RULES if not (rule.follows or rule.survivable)]
BESIDE = "".join(f"{rule.examples[0]}\n" for rule in CONSEQUENCES)

TAIL = """compilation terminated.
ninja: build stopped: subcommand failed.
gmake[1]: *** [Makefile:12: all] Error 2
make: *** [Makefile:146: all] Error 2
-- Configuring incomplete, errors occurred!
See also "/src/build/CMakeFiles/CMakeOutput.log".
Traceback (most recent call last):
  File "setup.py", line 300, in run
    subprocess.check_call(["cmake", "--build", "."])
subprocess.CalledProcessError: Command '['cmake', '--build', '.']' returned non-zero exit status 1.

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "setup.py", line 310, in <module>
    main()
RuntimeError: Error compiling objects for extension
error: command '/usr/bin/g++' failed with exit code 1
  note: This error originates from a subprocess, and is likely not a problem with pip.
  ERROR: Failed building wheel for gears
Failed to build gears
ERROR: Could not build wheels for gears, which is required to install pyproject.toml-based projects
error: legacy-install-failure
##[error]Process completed with exit code 1.
"""
"""What the programs around a failed one print."""

EIGEN = """CMake Error at CMakeLists.txt:18 (find_package):
  Could not find a package configuration file provided by "Eigen3" (requested
  version 3.3) with any of the following names:

    Eigen3Config.cmake
    eigen3-config.cmake

-- Configuring incomplete, errors occurred!
"""
GEARS = "b.w: error: the frobnicator has no gears\n"
WHEEL = "error: invalid command 'bdist_wheel'\n"
HEADER = "cc1plus: fatal error: cuda_runtime.h: No such file or directory\ncompilation terminated.\n"
CONFLICT = "/usr/bin/ld: warning: libgomp.so.1, needed by ../libA.so.1, may conflict with libgomp.so.1\n"
MISSING = "a.cpp:(.text+0xd4): undefined reference to `std::runtime_error::runtime_error(char const*)'\n"
OLDER = "../libA.so.1: undefined reference to `std::runtime_error::runtime_error(char const*)@GLIBCXX_3.4.21'\n"


def found(log: str) -> list[str]:
    """Return the rules of the causes, the first one first."""
    return [cause.rule for cause in read_log(io.BytesIO(log.encode()), RULES, has_failed=True).causes]


@in_batches(CAUSES)
def test_a_cause_comes_before_its_consequences_and_before_what_stands_beside_it(rules: Sequence[Rule]) -> None:
    for rule, example in ((one, example) for one in rules for example in one.examples):
        log = f"{log_of(rule, example)}\n"
        for whole in (BESIDE + log, log + BESIDE + TAIL):
            assert found(whole)[0] == rule.id, example


def test_a_consequence_alone_is_still_named() -> None:
    for rule in CONSEQUENCES:
        assert found(f"{log_of(rule, rule.examples[0])}\n") == [rule.id]


@pytest.mark.parametrize(
    ("log", "rules"),
    [
        (EIGEN + "make: *** No targets specified and no makefile found.  Stop.\n", ["cmake-package-of-table"]),
        (EIGEN + "make: *** No rule to make target 'install'.  Stop.\n", ["cmake-package-of-table"]),
        (WHEEL + "running build_ext\n" * 30 + HEADER, ["cuda-header-missing"]),
        (CONFLICT + MISSING + OLDER, ["libstdcxx-older-in-link"]),
    ],
)
def test_the_cause_stays_and_the_consequence_is_also_seen(log: str, rules: list[str]) -> None:
    assert found(log)[:-1] == rules


@pytest.mark.parametrize(
    "log",
    [
        "make: warning:  Clock skew detected.  Your build may be incomplete.\n" + GEARS,
        WHEEL + GEARS,
    ],
)
def test_an_unknown_error_comes_before_what_stands_beside_it(log: str) -> None:
    assert found(log)[0] == "unknown-failure"


@pytest.mark.parametrize(
    "head", ["Command errored out with exit status 1:", "Complete output from command python setup.py:"]
)
def test_what_an_old_pip_prints_before_the_output_is_not_its_cause(head: str) -> None:
    log = f"  Building wheel for gears (setup.py) ... error\n  ERROR: {head}\n  error: invalid command 'bdist_wheel'\n"
    assert found(log)[0] == "wheel-not-installed"


def test_a_library_that_a_library_needs_is_the_cause_of_its_missing_functions() -> None:
    needs = (
        "/usr/bin/ld: warning: libcv.so.2, needed by /usr/lib/libav.so.5, not found (try using -rpath or -rpath-link)"
    )
    log = (
        f"{needs}\n/usr/lib/libav.so.5: undefined reference to `cvErode'\ncollect2: error: ld returned 1 exit status\n"
    )
    assert found(log)[0] == "linker-libraries-order"
