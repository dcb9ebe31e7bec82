"""Which of a build tool's words on failed jobs are errors, attempt by attempt."""

from __future__ import annotations

import pytest

from stoker.diagnose.dropped_blocks import without_blocks
from stoker.diagnose.output_parts import maybe_failed, part_at, parts_of
from stoker.model import events as ev
from stoker.model.reduce import reduce_all
from stoker.model.state import BuildState

FIRST = b"""\
[1/5] CXX a.o
[2/5] CXX b.o
FAILED: [code=137] b.o
g++ -c b.cpp -o b.o
[3/5] CXX c.o
FAILED: c.o
g++ -c c.cpp -o c.o
[4/5] CXX d.o
FAILED: [code=1] d.o
g++ -c d.cpp -o d.o
ninja: build stopped: subcommand failed.
"""
"""An attempt in which b.o was killed, c.o was dropped, and d.o broke off without anybody knowing why."""

SECOND = b"[1/3] CXX b.o\n[2/3] CXX c.o\n"
FAILS = b"FAILED: [code=1] c.o\ng++ -c c.cpp -o c.o\nc.cpp:1: error: no\nninja: build stopped: subcommand failed.\n"
ERROR = ev.FailureFound("c.o", "g++ -c c.cpp", 1, ("error",), len(FIRST + SECOND), len(FIRST + SECOND) + 20)
STEP = ev.StepStarted(1, 2, "build", ("ninja",), 100)


def built(*events: ev.Event, by: ev.KilledBy = "shed") -> BuildState:
    begin = (
        STEP,
        ev.SchedulerStarted(1, "ninja", 101, "/src", "1.13.2", 4),
        ev.JobStarted(2, 1, 502, "b.o", "cxx", 1.0),
        ev.JobKilled("b.o", by, 5, 2),
        ev.JobFinished(2, 1, "b.o", "cxx", 1.0, "failed"),
        ev.JobFinished(3, 1, "c.o", "cxx", 1.0, "dropped"),
        ev.StepStarted(1, 2, "build", ("ninja",), 102, 2, log_start=len(FIRST)),
        ev.SchedulerStarted(2, "ninja", 103, "/src", "1.13.2", 4),
    )
    return reduce_all(ev.Record(i, float(i), e) for i, e in enumerate((*begin, *events), 1))


def errors(state: BuildState, output: bytes) -> list[bytes]:
    """The lines of build tools that count as errors."""
    parts, found, at = parts_of(state), [], 0
    for line in output.splitlines(keepends=True):
        if maybe_failed(line) and part_at(parts, at).is_error(line):
            found.append(line.rstrip())
        at += len(line)
    return found


def folded(state: BuildState, output: bytes) -> list[tuple[str, int]]:
    """Each run of blocks that one line stands for: by what, and of how many jobs."""
    runs: list[tuple[str, int]] = []
    for part in parts_of(state):
        lines = output[part.start : part.end].splitlines(keepends=True)
        runs += [(part.by, piece) for piece in without_blocks(lines, part.is_dropped) if isinstance(piece, int)]
    return runs


@pytest.mark.parametrize("by", ["shed", "person", "unknown"])
def test_a_build_that_is_done_has_no_errors_in_the_attempts_that_ran_again(by: ev.KilledBy) -> None:
    done = built(ev.BuildEnded("done", 0, ""), by=by)
    assert errors(done, FIRST + SECOND) == []
    assert folded(done, FIRST + SECOND) == [("rerun", 2)]


def test_it_has_none_either_once_the_next_step_runs() -> None:
    other = built(ev.StepStarted(2, 2, "install", ("ninja",), 104, log_start=len(FIRST + SECOND)))
    assert errors(other, FIRST + SECOND + FAILS) == FAILS.splitlines()[:1] + FAILS.splitlines()[-1:]
    assert folded(other, FIRST + SECOND) == [("rerun", 3)], "who was killed in a step before is not known any more"


def test_an_error_after_it_is_one() -> None:
    failed = built(ERROR, ev.BuildEnded("failed", 1, "c.o failed"))
    assert errors(failed, FIRST + SECOND + FAILS) == [b"FAILED: [code=1] c.o", FAILS.splitlines()[-1]]
    assert folded(failed, FIRST + SECOND + FAILS) == [("rerun", 2)]


def test_what_makes_say_of_each_other_is_no_error_in_an_attempt_that_ran_again() -> None:
    makes = b"make[1]: *** [Makefile:2: b.o] Killed\nmake: *** [Makefile:5: sub] Error 2\n"
    again = ev.StepStarted(1, 1, "build", ("make",), 102, 2, log_start=len(makes))
    events: tuple[ev.Event, ...] = (STEP, ev.JobKilled("b.o", "shed", 5), again)
    state = reduce_all(ev.Record(i, float(i), e) for i, e in enumerate(events, 1))
    assert errors(state, makes) == []


def test_every_byte_is_in_one_part() -> None:
    for state in (BuildState(), built(), built(ev.StepStarted(2, 2, "install", ("x",), 1, log_start=500))):
        parts = parts_of(state)
        assert parts[0].start == 0
        assert [part.end for part in parts[:-1]] == [part.start for part in parts[1:]]
        assert all(part_at(parts, at).start <= at < part_at(parts, at).end for at in range(600))


@pytest.mark.parametrize(
    ("events", "by"),
    [
        ((), "kill"),
        ((ev.FailureFound("z.o", "g++", 1, (), 0, 9),), "failure"),
        ((ev.StopRequested("ann", force=False),), "stop"),
    ],
)
def test_while_the_attempt_lasts_it_says_why_jobs_were_dropped(events: tuple[ev.Event, ...], by: str) -> None:
    begin = (STEP, ev.SchedulerStarted(1, "ninja", 101, "/src", "1.13.2", 4), ev.JobKilled("b.o", "person", 5, 2))
    dropped = ev.JobFinished(3, 1, "c.o", "cxx", 1.0, "dropped")
    state = reduce_all(ev.Record(i, float(i), e) for i, e in enumerate((*begin, dropped, *events), 1))
    assert folded(state, FIRST) == [(by, 1)]
