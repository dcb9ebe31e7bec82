"""A build's output without what ninja prints of jobs that were dropped before they began."""

from __future__ import annotations

import pytest

from stoker.diagnose.dropped_blocks import IsDropped, failed_output, without_blocks
from stoker.diagnose.output_parts import parts_of
from stoker.model import events as ev
from stoker.model.reduce import reduce_all
from stoker.model.state import BuildState

REAL = [
    b"[38/69] Building link.o",
    b"FAILED: [code=1] link.o ",
    b"g++ -c link.cpp -o link.o",
    b"link.cpp:203:9: error: 'min' is not a member of 'std'",
]
STOPPED = b"ninja: build stopped: subcommand failed."


def state(*events: ev.Event) -> BuildState:
    begin = (
        ev.SchedulerStarted(1, "ninja", 101, "/src/build", "1.13.2", 4),
        ev.FailureFound("link.o", "g++ -c link.cpp", 1, ("error",), 0, 9),
    )
    return reduce_all(ev.Record(i, float(i), e) for i, e in enumerate((*begin, *events), 1))


def names_dropped(state: BuildState) -> IsDropped:
    return parts_of(state)[-1].is_dropped


def dropped(output: str, jid: int) -> tuple[ev.Event, ...]:
    return (
        ev.JobStarted(jid, 1, 500 + jid, output, "cxx", 1.0),
        ev.JobFinished(jid, 1, output, "cxx", 1.0, "dropped"),
    )


BOTH = state(*dropped("a.o", 1), *dropped("b.o", 2))


def block(output: str, code: str = "[code=137] ") -> list[bytes]:
    name = output.encode()
    return [b"[39/69] Building " + name, b"FAILED: " + code.encode() + name + b" ", b"g++ -c -o " + name]


@pytest.mark.parametrize("code", ["[code=137] ", ""])
def test_a_run_of_blocks_becomes_their_number_after_the_real_error(code: str) -> None:
    shown = list(without_blocks([*REAL, *block("a.o", code), *block("b.o", code), STOPPED], names_dropped(BOTH)))
    assert shown == [*REAL, 2, STOPPED]


def test_jobs_that_end_between_the_blocks_keep_their_lines() -> None:
    warned = [b"[40/69] Building c.o", b"c.cpp:1: warning: unused"]
    lines = [*REAL, *block("a.o"), *warned, *block("b.o"), b"[41/69] Building d.o"]
    assert list(without_blocks(lines, names_dropped(BOTH))) == [*REAL, 1, *warned, 1, b"[41/69] Building d.o"]


def test_make_prints_one_line_of_each() -> None:
    lines = [b"make: *** [Makefile:2: a.o] Killed", b"make: *** [Makefile:2: b.o] Error 137", b"make: Leaving"]
    assert list(without_blocks(lines, names_dropped(BOTH))) == [2, b"make: Leaving"]


def test_a_job_that_was_killed_while_it_ran_is_shown() -> None:
    killed = state(ev.JobKilled("a.o", "shed", 5, 1), *dropped("b.o", 2))
    lines = [*block("a.o"), *block("b.o")]
    assert list(without_blocks(lines, names_dropped(killed))) == [*block("a.o"), 1]


def test_nothing_changes_where_nothing_was_dropped() -> None:
    lines = [*REAL, *block("a.o"), STOPPED]
    assert list(without_blocks(lines, names_dropped(state()))) == lines


def test_what_a_stop_has_interrupted_is_left_out_and_a_real_failure_is_not() -> None:
    begun = ev.JobStarted(1, 1, 501, "a.o", "cxx", 1.0)
    interrupted = ev.JobFinished(1, 1, "a.o", "cxx", 1.0, "interrupted")
    stopped = state(ev.StopRequested("ann", force=True), begun, interrupted)
    assert list(without_blocks([*REAL, *block("a.o")], names_dropped(stopped))) == [*REAL, 1]


@pytest.mark.parametrize("line", [b"FAILED: [code=137] dir/a.o ", b"FAILED: dir/a.o dir/a.d", b"[1/2] FAILED: dir/a.o"])
def test_a_report_names_its_output(line: bytes) -> None:
    assert failed_output(line) == "dir/a.o"
    assert failed_output(b"make: *** [Makefile:3: a.o] Error 1") == failed_output(b"FAILED: ") == ""
