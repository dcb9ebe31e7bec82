"""What ninja says of jobs that were dropped from the deck is no failure of the build."""

from __future__ import annotations

import pytest

from stoker.engine.aftermath.failures import Dropped
from stoker.model.events import FailureFound


def failure(output: str, command: str, exit_code: int | None) -> FailureFound:
    return FailureFound(output, command, exit_code, (), 0, 9)


@pytest.mark.parametrize(
    ("told", "explained"),
    [
        (failure("a.o", "g++ -c a.cpp", 1), True),  # by its output, whatever it says
        (failure("b.o", "g++ -c 'b b.cpp' && true", 137), True),  # by what its shell was given
        (failure("b.o", "g++ -c 'b b.cpp' && true", None), True),  # ninja before 1.12
        (failure("c.o", "./burn 'c c' 1", 137), True),  # whose shell has made way
        (failure("b.o", "g++ -c 'b b.cpp' && true", 1), False),  # an error of its own
        (failure("d.o", "g++ -c d.cpp", 137), False),  # was running: somebody killed it
        (failure("d.o", "echo 'unbalanced", 137), False),
    ],
)
def test_a_dropped_job_is_known_by_output_or_by_command(told: FailureFound, explained: bool) -> None:
    dropped = Dropped()
    dropped.add(["a.o"], [("/bin/sh", "-c", "g++ -c 'b b.cpp' && true"), ("./burn", "c c", "1")])
    assert dropped.explains(told) is explained
