"""Which of a build tool's words on failed jobs are only about jobs that were killed or dropped."""

from __future__ import annotations

import pytest

from stoker.diagnose.killed_lines import killed_output
from stoker.model import events as ev
from stoker.model.reduce import reduce_all
from stoker.model.state import BuildState

BEGIN: tuple[ev.Event, ...] = (
    ev.StepStarted(1, 1, "build", ("ninja",), 100),
    ev.SchedulerStarted(1, "ninja", 101, "/src/build", "1.13.2", 4),
    ev.JobStarted(1, 1, 500, "a.o", "cxx", 1.0),
    ev.JobKilled("a.o", "shed", 5, 1),
    ev.FailureFound("b.o", "g++ -c b.cpp", 1, (), 0, 9),
)
AGAIN = ev.StepStarted(1, 1, "build", ("ninja",), 102, 2, log_start=100)


def state(*events: ev.Event) -> BuildState:
    return reduce_all(ev.Record(i, float(i), e) for i, e in enumerate((*BEGIN, *events), 1))


@pytest.mark.parametrize(
    "line",
    [
        b"FAILED: [code=137] a.o ",
        b"FAILED: a.o",
        b"make: *** [Makefile:2: a.o] Killed",
        b"make[2]: *** [CMakeFiles/x.dir/build.make:76: a.o] Error 137",
    ],
)
def test_a_killed_job_is_distinguished_from_one_that_failed(line: bytes) -> None:
    assert killed_output(state())(line) == "a.o"
    assert killed_output(state())(line.replace(b"a.o", b"b.o")) == ""
    assert killed_output(state())(line.replace(b"a.o", b"c.o")) == "", "nobody killed that"


def test_a_job_that_was_killed_in_the_attempt_before_may_fail_in_this_one() -> None:
    error = ev.FailureFound("a.o", "g++ -c a.cpp", 1, ("error",), 200, 300)
    assert killed_output(state(AGAIN, error))(b"FAILED: [code=1] a.o ") == ""
