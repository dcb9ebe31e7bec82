"""The lines around a place: right numbers and bytes, whatever the log holds."""

from __future__ import annotations

import io

import pytest

from stoker.diagnose.around import ABOVE, BELOW, LINE_SHOWN, LineStart, around, line_at, place_of
from stoker.diagnose.blocks import PORTION

LINES = [f"line {n}" for n in range(1, 40)]
START = LineStart(0, 1)


def log(lines: list[str], end: str = "\n") -> io.BytesIO:
    return io.BytesIO("\n".join(lines).encode() + end.encode())


@pytest.mark.parametrize("line", [1, 2, 20, 39])
@pytest.mark.parametrize("end", ["\n", ""])
def test_a_line_its_neighbours_and_where_it_begins(line: int, end: str) -> None:
    found = around(log(LINES, end), START, line)
    first = max(1, line - ABOVE)
    assert found.first == first
    assert found.lines == tuple(LINES[first - 1 : line + BELOW])
    assert log(LINES).getvalue()[found.offset :].startswith(b"line %d\n" % line)


def test_nothing_from_before_the_place_to_begin_at() -> None:
    begin = line_at(log(LINES), log(LINES).getvalue().index(b"line 20"))
    assert begin.line == 20
    found = around(log(LINES), begin, 21)
    assert (found.first, found.lines[0]) == (20, "line 20")


def test_far_into_a_large_log() -> None:
    data = b"x" * 99 + b"\n"
    many = 3 * PORTION // 100 + 7
    file = io.BytesIO(data * many + b"here\n")
    place = place_of(file, START, many + 1)
    assert place == LineStart(100 * many, many + 1)
    assert line_at(file, place.offset) == place
    assert "here" in around(file, START, many + 1).lines


def test_a_line_that_is_not_there_is_the_end() -> None:
    file = log(["a", "b"])
    assert place_of(file, START, 99).offset == len(file.getvalue())
    assert around(file, START, 99).lines == ()


def test_of_long_lines_the_beginning_is_read_and_the_next_line_is_found() -> None:
    long = "y" * 3_000_000
    found = around(log(["a", long, "here", long, "z"]), START, 3)
    assert [line[:1] for line in found.lines] == ["a", "y", "h", "y", "z"]
    assert max(map(len, found.lines)) <= LINE_SHOWN + 1


def test_a_line_without_an_end_costs_little() -> None:
    file = log(["here", "y" * 40_000_000, "z"])
    found = around(file, START, 1)
    assert found.lines[0] == "here"
    assert len(found.lines) == 2


def test_hostile_lines_come_out_harmless() -> None:
    found = around(io.BytesIO(b"\x1b]52;c;cm0=\x07a\n\x1b[2J\x9b31mb\x00\n\xff\xfe\n"), START, 1)
    assert all(line.isprintable() for line in found.lines)
