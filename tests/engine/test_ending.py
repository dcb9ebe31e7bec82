"""The exit status of a build whose jobs were dropped from the deck, where its ninja is somewhere below the command."""

from __future__ import annotations

import pytest

from stoker.contract.retry_files import FailedAttempt
from stoker.engine.aftermath.ending import true_status
from stoker.model import events as ev
from stoker.model.reduce import reduce_all
from stoker.model.state import BuildState

SCRIPT, NINJA = 10, 11
DROPPED = ev.JobFinished(None, 1, "b.o", "cxx", 0.0, "dropped")


def attempt(number: int = 1) -> ev.StepStarted:
    return ev.StepStarted(1, 1, "build", ("./build.sh",), SCRIPT, number)


def ninja(sid: int = 1, pid: int = NINJA) -> ev.SchedulerStarted:
    return ev.SchedulerStarted(sid, "ninja", pid, "/b", "1.13", 16)


def failed(code: int | None) -> ev.FailureFound:
    return ev.FailureFound("a.o", "g++ -c a.cpp", code, (), 0, 9)


def state(*events: ev.Event) -> BuildState:
    return reduce_all(ev.Record(n, float(n), event) for n, event in enumerate(events, 1))


@pytest.mark.parametrize(
    ("events", "ended", "status"),
    [
        ([attempt(), ninja(pid=SCRIPT), DROPPED, failed(2)], FailedAttempt(137, None, 1), 2),
        ([attempt(), ninja(), DROPPED, failed(1)], FailedAttempt(137, None, 1), 1),
        (
            [attempt(), ninja(), DROPPED, failed(None)],
            FailedAttempt(137, None, 1),
            1,
        ),  # ninja before 1.13 does not tell
        ([attempt(), ninja(), DROPPED, failed(1)], FailedAttempt(1, None, 1), None),  # the script's own
        ([attempt(), ninja(), DROPPED, failed(1)], FailedAttempt(137, 9, 1), None),  # the script itself was killed
        ([attempt(), ninja(), failed(1)], FailedAttempt(137, None, 1), None),  # nothing was dropped
        ([attempt(), ninja(), DROPPED], FailedAttempt(137, None, 1), None),  # and nothing failed
        ([attempt(), ninja(), DROPPED, failed(1), failed(137)], FailedAttempt(137, None, 1), None),  # a job was killed
        (
            [attempt(), ninja(), DROPPED, attempt(2), ninja(2), failed(1)],
            FailedAttempt(137, None, 2),
            None,
        ),  # not here
    ],
)
def test_the_status_is_that_of_what_failed_by_itself(
    events: list[ev.Event], ended: FailedAttempt, status: int | None
) -> None:
    assert true_status(ended, state(*events)) == status
