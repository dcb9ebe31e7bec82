"""The output's lines, places and moves where one line stands for what ninja prints of dropped jobs."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from stoker.diagnose.dropped_blocks import without_blocks
from stoker.diagnose.output_parts import parts_of
from stoker.model.state import BuildState
from stoker.show.tui.folded_log import FoldedLog
from stoker.show.tui.text_log import LogLine

from . import builds
from .builds import FakeLog

STATE = builds.dropped().state
AGAIN = builds.repeated(40).state
"""The first forty bytes are of an attempt after which the step ran again."""

PIECES = (
    b"[1/9] CXX x.o",
    b"FAILED: [code=137] d.o ",
    b"make: *** [Makefile:2: e.o] Killed",
    b"c++ -c d.cpp",
    b"",
    b"!",
)

logs = st.lists(st.sampled_from(PIECES), max_size=24).flatmap(
    lambda rows: st.sampled_from([b"\n".join(rows), b"".join(row + b"\n" for row in rows)])
)


def rows_of(data: bytes) -> list[bytes]:
    rows = data.split(b"\n")
    return rows[:-1] if not rows[-1] else rows


def shown(lines: list[LogLine]) -> list[bytes | int]:
    return [line.dropped or line.raw for line in lines]


def printed(data: bytes, state: BuildState) -> list[bytes | int]:
    """What `stoker log` prints."""
    parts, at = parts_of(state), 0
    rows: list[list[bytes]] = [[] for _ in parts]
    for row in rows_of(data):
        rows[max(n for n, part in enumerate(parts) if part.start <= at)].append(row)
        at += len(row) + 1
    return [piece for part, of in zip(parts, rows, strict=True) for piece in without_blocks(of, part.is_dropped)]


@given(logs, st.sampled_from([STATE, AGAIN]))
def test_it_shows_what_stoker_log_prints(data: bytes, state: BuildState) -> None:
    lines = FoldedLog(FakeLog(data), state).lines(0, 99)
    assert shown(lines) == printed(data, state)
    assert [line.next for line in lines][:-1] == [line.start for line in lines][1:], "no byte is lost between lines"


@given(logs, st.integers(0, 300), st.integers(0, 25), st.sampled_from([STATE, AGAIN]))
def test_every_place_and_every_move_meets_the_same_lines(
    data: bytes, offset: int, count: int, state: BuildState
) -> None:
    log = FoldedLog(FakeLog(data), state)
    lines = log.lines(0, 99)
    starts = [line.start for line in lines]
    for at, line in enumerate(lines):
        found = FoldedLog(FakeLog(data), state).lines(line.start, count)
        assert shown(found) == shown(lines[at : at + count])
    if offset < len(data):
        start = FoldedLog(FakeLog(data), state).start_of(offset)
        assert start == max(s for s in starts if s <= offset)
        assert log.back(start, count) == starts[max(0, starts.index(start) - count)]
    tail = log.lines(log.tail(max(1, count)), max(1, count))
    assert shown(tail) == shown(lines[-max(1, count) :])


def test_a_run_of_any_length_is_read_in_bounded_pieces() -> None:
    block = b"[1/9] CXX d.o\nFAILED: [code=137] d.o \nc++ " + b"-I/a/b/c " * 500 + b"\n"
    source = FakeLog(b"real\n" + block * 400 + b"end\n")
    log = FoldedLog(source, STATE)
    assert shown(log.lines(log.tail(3), 3)) == [b"real", 400, b"end"]
    assert log.start_of(len(source.data) // 2) == len(b"real\n")
    assert source.longest_read <= 100_000


def test_a_step_before_keeps_its_lines() -> None:
    """It is done: whatever it calls failed was none of what stoker dropped."""
    before = b"[1/9] CXX d.o\nFAILED: [code=137] d.o \nc++ d.cpp\n"
    log = FoldedLog(FakeLog(before * 2), builds.dropped(log_start=len(before)).state)
    assert shown(log.lines(0, 9)) == [*rows_of(before), 1]


def test_a_log_without_dropped_jobs_is_left_alone() -> None:
    data = b"[1/9] CXX d.o\nFAILED: [code=137] d.o \nc++ d.cpp\n"
    log = FoldedLog(FakeLog(data), builds.running(3).state)
    assert shown(log.lines(0, 9)) == rows_of(data)
    assert [log.start_of(m.end() - 1) for m in re.finditer(b"\n", data)] == [0, 14, 38]
