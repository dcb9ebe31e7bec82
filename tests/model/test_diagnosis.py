"""Why a build failed, as values: bounded, the same after a journal, told in status, and in words."""

from __future__ import annotations

import json

import pytest

from stoker.model import events as ev
from stoker.model.codec import decode_record, encode_record
from stoker.model.diagnosis import MAX_CAUSES, Action, Cause, Diagnosis, bounded, words_of
from stoker.model.reduce import reduce
from stoker.model.state import BuildState
from stoker.model.status import status_of


def test_why_it_failed_is_known_with_its_journal_and_bounded() -> None:
    long = "x" * 10_000
    cause = Cause(long, long, long, long, 1, 0, long, (long,) * 99, 1, long)
    found = bounded(Diagnosis((cause,) * 50, (long,) * 50, Action("retry-alone", names=(long,) * 500, variable=long)))
    record = ev.Record(1, 1000.0, ev.Diagnosed(found))
    assert decode_record(json.loads(json.dumps(encode_record(record)))) == record
    assert len(json.dumps(encode_record(record))) < 700_000
    state = reduce(BuildState(), record)
    assert state.diagnosis == found
    told = status_of(state, 0.0)["diagnosis"]
    assert (len(told["causes"]), told["action"]["kind"], told["complete"]) == (MAX_CAUSES, "retry-alone", True)
    assert status_of(BuildState(), 0.0)["diagnosis"] is None


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (Action("retry"), "run the step again"),
        (Action("retry-at-lower-level", level=1), "run the step again, with at most 1 job at a time"),
        (Action("retry-at-lower-level", level=4), "run the step again, with at most 4 jobs at a time"),
        (Action("retry-alone", names=("x/a.o", "b.o")), "run the step again, a.o, b.o first and alone"),
        (Action("update-submodules", names=("t/a",)), "fetch the submodule t/a, then run the step again"),
        (
            Action("update-submodules", names=("t/a", "t/b", "t/c", "t/d", "t/e")),
            "fetch the 5 submodules t/a, t/b, t/c and 2 more, then run the step again",
        ),
        (Action("set-variable", variable="A_B=1"), "run the step again with A_B=1"),
    ],
)
def test_an_action_in_words(action: Action, words: str) -> None:
    assert words_of(action) == words


NO_SOURCE = (
    "-- Configuring done",
    "CMake Error at CMakeLists.txt:3 (add_executable):",
    "  Cannot find source file:",
    "",
    "    gone.cpp",
    "",
    "  Tried extensions .c .C",
)
NO_PACKAGE = (
    "CMake Error at CMakeLists.txt:2 (find_package):",
    '  By not providing "FindFoo.cmake" in CMAKE_MODULE_PATH this project has',
    '  asked CMake to find a package configuration file provided by "Foo".',
    "",
    "  Could not find one of",
)


@pytest.mark.parametrize(
    ("context", "line", "message"),
    [
        (NO_SOURCE, 3, "Cannot find source file: gone.cpp"),
        (NO_SOURCE, 2, "CMake Error at CMakeLists.txt:3 (add_executable): Cannot find source file: gone.cpp"),
        (NO_SOURCE[2:], 1, "Cannot find source file:"),
        (
            NO_PACKAGE,
            3,
            " ".join(f"{NO_PACKAGE[1]} {NO_PACKAGE[2]}".split()),
        ),
        (("a.cpp:1: error: x:", "  int y"), 1, "a.cpp:1: error: x:"),
        ((), 7, ""),
    ],
)
def test_the_paragraph_of_a_message_of_cmake_belongs_to_the_line_that_shows_the_cause(
    context: tuple[str, ...], line: int, message: str
) -> None:
    text = context[line - 1] if context else ""
    assert Cause("", "", "", "", line, 0, text, context).message == message
