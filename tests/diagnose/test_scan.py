"""How a log is read: in what order causes come, what is no error, and that no log is too large or too strange."""

from __future__ import annotations

import io
import itertools
import textwrap
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stoker.diagnose import blocks
from stoker.diagnose.log_reading import read_log
from stoker.diagnose.match import REACH, Match, cause_of
from stoker.diagnose.rule import load_rules, shipped_rules
from stoker.diagnose.scan import MAX_COUNT, TEXT_SHOWN, scan

KILLED = "g++: fatal error: Killed signal terminated program cc1plus"
FULL = "cc1plus: fatal error: error writing to a.s: No space left on device"
WRONG = "a.cpp:3:12: error: 'x' was not declared in this scope"


def matches(text: str | bytes) -> list[Match]:
    return scan(io.BytesIO(text.encode() if isinstance(text, str) else text), shipped_rules())


def found(text: str | bytes) -> list[tuple[str, int]]:
    return [(match.rule.id, match.line) for match in matches(text)]


def test_the_first_real_error_is_the_cause_not_the_last_line() -> None:
    log = f"[1/9] CXX a.o\nFAILED: a.o\n{FULL}\n[2/9] CXX b.o\nFAILED: b.o\n{KILLED}\nninja: build stopped\n"
    assert found(log) == [("no-space-left", 3), ("compiler-killed", 6)]


def test_about_one_step_what_is_specific_stands_first() -> None:
    assert found(f"[1/9] CXX a.o\nFAILED: [code=137] a.o\n{KILLED}\n") == [("compiler-killed", 3)]
    log = f"[1/9] CXX a.o\n{WRONG}\n{KILLED}\n"
    assert found(log) == [("compiler-killed", 3)], "within a few lines the general says no more"


UNDEFINED = "Undefined symbols for architecture arm64:"
IGNORED = "ld: warning: ignoring file '/opt/x/libz.dylib': found architecture 'x86_64', required architecture 'arm64'"


def test_evidence_stands_in_the_place_of_the_general_cause_that_it_decides() -> None:
    log = f"[1/9] CXX a.o\n[2/9] LINK app\nFAILED: app\n{IGNORED}\n{UNDEFINED}\n"
    assert found(log) == [("linked-other-architecture", 4)]
    assert found(log.replace(UNDEFINED, WRONG)) == [("compile-error", 5)]
    far = log.replace(UNDEFINED, "x\n" * REACH + UNDEFINED)
    assert found(far) == [("undefined-reference", REACH + 5)]


DUBIOUS = "fatal: detected dubious ownership in repository at '/src'"
NO_VERSION = "LookupError: setuptools-scm was unable to detect version for /src."


def test_a_rule_that_decides_takes_the_place_of_the_other_and_stands_alone_too() -> None:
    assert found(f"{DUBIOUS}\n{NO_VERSION}\n") == [("git-dubious-ownership", 1)]
    assert found(f"{NO_VERSION}\n") == [("version-from-git", 1)]
    assert found(f"{DUBIOUS}\n{WRONG}\n") == [("compile-error", 2), ("git-dubious-ownership", 1)], "it was survived"


def test_a_full_disk_explains_what_was_lost_in_another_step() -> None:
    lost = "fatbinary fatal   : Could not open output file '/tmp/tmpxft_0_a.fatbin'"
    log = f"[1/9] CUDA a.o\nFAILED: a.o\n{lost}\n[2/9] CXX b.o\nFAILED: b.o\n{FULL}\n"
    assert found(log) == [("no-space-left", 6)]
    assert found(log.replace(FULL, WRONG)) == [("nvcc-temporary-files", 3), ("compile-error", 6)]


def test_a_command_that_is_repeated_names_nothing_that_is_missing() -> None:
    failed = (
        'ERROR: failed to solve: process "/bin/sh -c apt-get install -y {}" did not complete successfully: exit code: 1'
    )
    assert found(f"{failed.format('python3-dev')}\n") == [("run-step-failed", 1)]


def test_a_line_that_leaves_the_cause_open_says_so() -> None:
    (general,) = map(cause_of, matches(f"{UNDEFINED}\n"))
    (certain,) = map(cause_of, matches(f"{FULL}\n"))
    assert general.heading == "The linker misses a function (several possible causes)"
    assert certain.heading == certain.title


def test_a_step_that_failed_and_its_command_are_one() -> None:
    log = f"[1/9] CXX a.o\nFAILED: [code=137] a.o\n/usr/bin/c++ -c a.cpp\n{KILLED}\n[2/9] CXX b.o\n"
    assert found(log) == [("compiler-killed", 4)]


def test_of_two_steps_the_first_that_failed_is_the_cause() -> None:
    log = f"[1/9] CXX a.o\nFAILED: a.o\n{WRONG}\n[2/9] CXX b.o\nFAILED: b.o\n{KILLED}\n"
    assert found(log) == [("compile-error", 3), ("compiler-killed", 6)]


def test_steps_are_kept_apart_however_far_they_are() -> None:
    filler = "-- Looking for something\n" * 30_000
    log = f"[1/9] CXX a.o\n{WRONG}\n{filler}[2/9] CXX b.o\n{filler}{KILLED}\n"
    assert found(log) == [("compile-error", 2), ("compiler-killed", 60_004)]


def test_a_line_counts_once_for_its_best_rule() -> None:
    assert found("a.cpp:1:10: fatal error: Python.h: No such file or directory\n") == [("python-headers-missing", 1)]


def test_repeats_are_counted_up_to_a_bound() -> None:
    (match,) = matches(f"{WRONG}\n" * 7)
    assert (match.line, match.count) == (1, 7)
    (match,) = matches(f"{WRONG}\n" * (2 * MAX_COUNT))
    assert match.count >= MAX_COUNT


@pytest.mark.parametrize(
    "line",
    [
        f"a.cpp:3:5: warning: the text '{KILLED}' is odd",
        "WARNING: Retrying after connection broken by 'NewConnectionError': Temporary failure in name resolution",
        "warning: spurious network error (3 tries remaining): Could not resolve host: git.invalid",
        f'   12 |   throw Error("{KILLED}");',
        f'      |   throw Error("{KILLED}");',
        f"clang: note: {FULL}",
        "x.py:118: UserWarning: CUDA initialization: Found no NVIDIA driver on your system.",
        "-- Could NOT find CUDA (missing: CUDA_NVCC_EXECUTABLE)",
        "-- Looking for No_space_left - not found",
        "[3/9] g++ -DMESSAGE='error: x' -Werror -c Killed.cpp -o Killed.o",
    ],
)
def test_warnings_quotations_and_names_are_no_errors(line: str) -> None:
    assert found(f"{line}\n") == []


CMAKE = "CMake {} at CMakeLists.txt:9 (find_package):\n  By the way:\n\n  Could NOT find OpenSSL (missing: X)\n\n"


def test_the_body_of_a_cmake_warning_is_no_error() -> None:
    assert found(CMAKE.format("Warning")) == []
    assert found(CMAKE.format("Error")) == [("cmake-package-of-table", 4)]


def test_a_cmake_warning_is_known_across_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    for size in range(1, 120):
        monkeypatch.setattr(blocks, "PORTION", size)
        assert found(CMAKE.format("Warning")) == []
        assert found(CMAKE.format("Error"))[0] == ("cmake-package-of-table", 4)


def test_escapes_carriage_returns_and_junk_around_an_error() -> None:
    assert found(b"\x00\xff\xfe\x1b]0;title\x07junk\n" + WRONG.encode() + b"\r\n") == [("compile-error", 2)]
    coloured = "\x1b[01m\x1b[Ka.cpp:3:12:\x1b[m\x1b[K \x1b[01;31m\x1b[Kerror: \x1b[m\x1b[Kno\x1b]8;;x\x1b\\\n"
    (match,) = matches(coloured)
    assert match.text == "a.cpp:3:12: error: no"
    (pasted,) = matches(coloured.replace("\x1b]8;;x\x1b\\", "").replace("\x1b", ""))  # a browser drops the escapes
    assert pasted.text == match.text
    assert found(f"10%\r50%\r{WRONG}\r100%\n") == [("compile-error", 1)]


def test_an_error_behind_a_long_command_line_is_found_and_shown() -> None:
    line = "error: command '/usr/bin/nvcc " + "-I/src/project/include " * 5000 + "' failed with exit code -9"
    (match,) = matches(line)
    assert (match.rule.id, match.line) == ("step-killed", 1)
    assert "exit code -9" in match.text
    assert len(match.text) <= TEXT_SHOWN + 1


def test_memory_is_bounded_whatever_the_log_holds(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with path.open("wb") as file:
        for _ in range(64):
            file.write(b"x" * (1 << 20))
        file.write(b"\n" + KILLED.encode() + b"\n")
    shipped_rules()
    tracemalloc.start()
    try:
        with path.open("rb") as file:
            assert [(m.rule.id, m.line) for m in scan(file, shipped_rules())] == [("compiler-killed", 2)]
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


UNLINKABLE = b"""CMake Error at src/CMakeLists.txt:14 (target_link_libraries):
  Target "store" links to:

    Arrow::arrow_static

  but the target was not found.  Possible reasons include:"""

PIECES = st.sampled_from(
    [example.encode() for rule in shipped_rules() for example in rule.examples]
    + [pattern.words for rule in shipped_rules() for pattern in rule.patterns]
    + [
        b"\n",
        b"\r",
        b"\r\n",
        b"\x1b[31m",
        b"\x1b[K",
        b"\x9b",
        b": ",
        b"'",
        b"(",
        b"[1/2] ",
        b"FAILED: ",
        b"  ",
        b"x" * 9000,
    ]
)
JUNK = st.lists(st.one_of(PIECES, st.binary(max_size=40)), max_size=30).map(b"".join)


@given(JUNK)
def test_any_bytes_are_taken_and_nothing_harmful_comes_out(log: bytes) -> None:
    lines = log.count(b"\n") + 1
    for match in matches(log):
        assert 1 <= match.line <= lines
        assert match.text.isprintable()
        assert len(match.text) <= TEXT_SHOWN + 1


@given(JUNK, st.integers(1, 300))
@example(b"FAILED: a.o\n nvcc -c a.cu -o a.o\nFAILED: b.o\n nvcc -c b.cu -o b.o", 1)  # known by the lines after it
@example(2 * UNLINKABLE, 1)  # a message is folded where a portion ends, too
def test_it_does_not_matter_in_what_portions_a_log_comes(log: bytes, size: int) -> None:
    whole = [(m.rule.id, m.line, m.text, m.count) for m in matches(log)]
    usual = blocks.PORTION
    blocks.PORTION = size
    try:
        assert [(m.rule.id, m.line, m.text, m.count) for m in matches(log)] == whole
    finally:
        blocks.PORTION = usual


def test_hostile_lines_cost_no_more_than_their_length() -> None:
    # Each line is made to keep the patterns of one rule busy; were one quadratic, this would take hours.
    words = sorted({pattern.words for rule in shipped_rules() for pattern in rule.patterns})
    log = b"\n".join(
        (filling + word) * (1000 // len(filling + word))
        for word, filling in itertools.product(
            words, (b"", b"error: ", b"a", b" ", b": '", b"]", b"undefined symbol: ")
        )
    )
    matches(log)


def test_what_a_build_may_survive_stands_behind_what_came_later(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    body = "{{title: {0}, why: w, remedy: r, patterns: {{{0}: {0}}}, examples: {0}, source: s{1}}}"
    rules.write_text(f"one: {body.format('first', ', survivable: yes')}\ntwo: {body.format('then', '')}\n")
    for log, order in (("first\nthen\n", ["two", "one"]), ("first\n", ["one"]), ("then\nfirst\n", ["two", "one"])):
        assert [match.rule.id for match in scan(io.BytesIO(log.encode()), load_rules(rules))] == order


ERROR = "a.cpp:3:12: error: 'x' was not declared in this scope"
MISSING = "b.cpp:1:10: fatal error: ofnobody.h: No such file or directory"


def test_what_an_attempt_before_the_last_died_of_was_survived() -> None:
    first = f"[1/9] CXX a.o\n[2/9] CXX b.o\nFAILED: b.o\n{KILLED}\nninja: build stopped: subcommand failed.\n"
    again = f"[1/8] CXX b.o\nFAILED: b.o\n{MISSING}\nninja: build stopped: subcommand failed.\n"
    assert found(first + again) == [("missing-header", 8), ("compiler-killed", 4)]
    assert found(first + "[1/8] CXX b.o\n[8/8] Linking\n") == [("compiler-killed", 4)]
    assert found(first + "Building wheel failed\n" + MISSING)[0] == ("compiler-killed", 4), "nothing began anew"
    first, again = f"[ 50%] CXX b.o\n{KILLED}\nmake: *** [Makefile:9: all] Error 2\n", f"[ 50%] CXX b.o\n{MISSING}\n"
    assert found(first + again)[0] == ("missing-header", 5)


def test_of_what_a_compiler_says_of_one_source_the_first_is_the_cause() -> None:
    log = f"[1/9] CXX a.o\n{ERROR}\n{MISSING}\n"
    assert found(log) == [("compile-error", 2), ("missing-header", 3)]
    assert found(f"g++ -c a.cpp -o a.o\n{MISSING}\ng++ -c b.cpp -o b.o\n{ERROR}\n") == [
        ("missing-header", 2),
        ("compile-error", 4),
    ]


def test_a_step_that_printed_nothing_is_no_worse_cause_than_what_was_survived_before_it() -> None:
    log = "fatal: not a git repository (or any of the parent directories): .git\nFAILED: a.o\nnvcc -c a.cu -o a.o\n"
    assert found(log + "ninja: build stopped: subcommand failed.\n")[0] == ("compiler-wordless", 2)
    assert "compiler-wordless" not in dict(found(f"{log}{WRONG}\nninja: build stopped: subcommand failed.\n"))


def test_the_remedy_names_every_kind_of_warning_that_was_an_error() -> None:
    log = "".join(
        f"a.cpp:{n}:1: error: bad [-Werror={kind}]\n" for n, kind in enumerate(["shadow", "unused", "shadow"])
    )
    (match,) = matches(log)
    assert 'CFLAGS="-Wno-error=shadow -Wno-error=unused"' in match.remedy


def test_what_only_says_again_that_something_failed_is_left_out() -> None:
    step = 'ERROR: failed to solve: process "/bin/sh -c make" did not complete successfully: exit code: 2'
    assert found(f"{KILLED}\n{step}\n") == [("compiler-killed", 1)]
    assert found(f"{step}\n") == [("run-step-failed", 1)]
    shutdown, cancelled = "The runner has received a shutdown signal.", "Error: The operation was canceled."
    assert found(f"{shutdown}\n{cancelled}\n") == [("runner-shutdown", 1)]
    assert found(f"{cancelled}\n") == [("job-cancelled", 1)]
    limit = "The job running on runner GitHub Actions 2 has exceeded the maximum execution time of 360 minutes."
    assert found(f"{cancelled}\n{limit}\n") == [("time-limit", 2)]


def test_a_library_that_is_not_found_is_not_one_that_is_not_linked() -> None:
    for library in ("cudart", "cublas", "cuda", "openblas", "omp", "python3.11"):
        (match,) = matches(f"/usr/bin/ld: cannot find -l{library}: No such file or directory\n")
        assert "is not linked" not in match.title
        assert "LIBRARY_PATH" in match.remedy


PROBED = "-- Checking for module 'gtk+-3.0'\n--   No package 'gtk+-3.0' found\n"
CONFIGURED = "-- Configuring done\n-- Generating done\n-- Build files have been written to: /b\n"
UNCONFIGURED = "-- Configuring incomplete, errors occurred!\n"
STEP = "[ 8%] Building CXX object a.o\n"


@pytest.mark.parametrize("end", [CONFIGURED, "config.status: creating Makefile\n", "Build targets in project: 3\n"])
def test_what_a_configuration_could_do_without_is_not_why_the_build_failed(end: str) -> None:
    assert found(f"{PROBED}{end}{STEP}{WRONG}\n") == [("compile-error", 5 if "Make" in end or "targets" in end else 7)]


NO_CUTENSOR = "/tmp/tmp0o6xjzne/a.cpp:2:18: fatal error: cutensor.h: No such file or directory"
NEW_GCC = "/cuda/include/crt/host_config.h:132:2: error: #error -- unsupported GNU version! gcc versions later than 12"
TRIAL_LINK = (
    "/env/compiler_compat/ld: cannot find -lcufile: No such file or directory\n"
    "collect2: error: ld returned 1 exit status\n"
)


def test_what_a_setup_script_only_tried_comes_after_what_failed() -> None:
    assert found(f"{NO_CUTENSOR}\n\nrunning build_ext\n{NEW_GCC}\n")[0] == ("host-compiler-too-new", 4)
    refused = "Traceback (most recent call last):\nAssertionError: Unable to pre-compile evoformer_attn\n"
    warned = " [WARNING]  async_io requires the dev libaio .so object and headers but these were not found.\n"
    assert found(TRIAL_LINK + warned + refused)[0] == ("deepspeed-cutlass", 5)


def test_an_exception_after_a_trial_is_the_likely_place() -> None:
    log = (
        f"{TRIAL_LINK} [WARNING]  async_io: please install libaio-dev\n"
        + "  File x\n" * 20
        + "ValueError: no op fits\n"
    )
    reading = read_log(io.BytesIO(log.encode()), shipped_rules())
    assert reading.causes[0].text == "ValueError: no op fits"


def test_a_link_that_nothing_goes_on_without_has_failed() -> None:
    log = f"{TRIAL_LINK}error: command 'g++' failed with exit code 1\n"
    assert read_log(io.BytesIO(log.encode()), shipped_rules()).verdict != "unknown"


def test_what_stopped_a_configuration_stays_its_cause() -> None:
    assert found(f"{PROBED}{UNCONFIGURED}")[0] == ("pkg-config-package-of-table", 2)
    again = f"{PROBED}{UNCONFIGURED}{CONFIGURED}{STEP}{WRONG}\n"
    assert found(again)[0] == ("pkg-config-package-of-table", 2), "another configuration says nothing of the first"
    beside = f"{STEP}{WRONG}\n{STEP}{CONFIGURED}{STEP}"
    assert found(beside) == [("compile-error", 2)], "a part that is configured beside it says nothing of a step"


def test_a_status_line_of_cmake_is_no_failure_where_a_step_fails_later() -> None:
    assert found(f"{PROBED}{STEP}{WRONG}\n")[0] == ("compile-error", 4), "also where the log lacks the end of it"


@pytest.mark.parametrize("width", range(20, 110, 9))
def test_a_message_of_cmake_means_the_same_however_it_is_folded(width: int) -> None:
    said = (
        "/usr/include/bits/mathcalls.h(79): error: exception specification is incompatible with that of previous "
        'function "cospi" (declared at line 2601 of /usr/local/cuda/include/crt/math_functions.h)'
    )
    body = "\n".join(f"  {line}" for line in textwrap.wrap(said, width, break_long_words=False))
    log = f"CMake Error at CMakeLists.txt:1 (enable_language):\n{body}\n\n\n{UNCONFIGURED}"
    assert [match.rule.id for match in matches(log)] == ["glibc-newer-than-cuda"]


def test_what_uv_folds_in_its_box_is_read_as_one_line() -> None:
    log = "      [stderr]\n      fatal error: error writing to a.s: No space left\n      on device\n"
    assert found(log)[0] == ("no-space-left", 2)


WRONG_HASH = "  does not match expected value\n    expected: 'aa'\n      actual: '{}'\n"


def test_the_same_wrong_checksum_twice_means_that_the_file_has_changed() -> None:
    twice = WRONG_HASH.format("1" * 40) * 2
    assert [match.rule.id for match in matches(twice)] == ["file-changed-at-source"]
    assert matches(twice)[0].rule.action == "none", "another try fails the same way"
    differing = WRONG_HASH.format("1" * 40) + WRONG_HASH.format("2" * 40)
    assert [match.rule.id for match in matches(differing)] == ["cmake-hash-mismatch"]


def test_an_image_sets_variables_by_its_dockerfile() -> None:
    native = "IndexError: x\n  arch_list[-1] += '+PTX'\n"
    assert "ENV" not in matches(native)[0].remedy
    assert "ENV NAME=VALUE" in matches(f"#1 [internal] load build definition from Dockerfile\n{native}")[0].remedy
