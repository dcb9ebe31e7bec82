"""The lines around a place: right numbers and bytes, whatever the log holds."""

from __future__ import annotations

import io

import pytest

from stoker.diagnose.around import ABOVE, BELOW, LINE_SHOWN, Around, LineStart, Neighbours, line_at, place_of
from stoker.diagnose.blocks import PORTION, blocks

LINES = [f"line {n}" for n in range(1, 40)]
START = LineStart(0, 1)


def log(lines: list[str], end: str = "\n") -> io.BytesIO:
    return io.BytesIO("\n".join(lines).encode() + end.encode())


def around(file: io.BytesIO, line: int) -> Around:
    for block in blocks(file):
        here = line - block.line
        if here < block.data.count(b"\n"):
            break
    start = sum(map(len, block.data.splitlines(keepends=True)[:here]))
    return Neighbours(block, start, line).around()


@pytest.mark.parametrize("line", [1, 2, 20, 39])
@pytest.mark.parametrize("end", ["\n", ""])
def test_a_line_and_its_neighbours(line: int, end: str) -> None:
    first = max(1, line - ABOVE)
    assert around(log(LINES, end), line) == Around(first, tuple(LINES[first - 1 : line + BELOW]))


def test_neighbours_of_the_portions_before_and_behind() -> None:
    lines = [f"line {n} {'x' * 90}" for n in range(1, PORTION // 40)]
    edge = PORTION // (len(lines[2000]) + 1)
    for line in range(edge - 200, edge + 200, 3):
        assert around(log(lines), line) == Around(line - ABOVE, tuple(lines[line - ABOVE - 1 : line + BELOW]))


def test_a_message_of_cmakes_is_shown_whole() -> None:
    body = ["", "  One.", "", "    two", "  Three."]
    lines = ["-- Found X", "CMake Error at CMakeLists.txt:9 (find_package):", *body, "", "-- Configuring incomplete"]
    for line in (2, 4, 6, 7):
        assert around(log(lines), line) == Around(2, ("CMake Error at CMakeLists.txt:9 (find_package):", *body))
    wrapped = [f"#12 3.45 {line}" for line in lines]
    assert around(log(wrapped), 6) == Around(2, tuple(wrapped[1:7]))


def test_far_into_a_large_log() -> None:
    data = b"x" * 99 + b"\n"
    many = 3 * PORTION // 100 + 7
    file = io.BytesIO(data * many + b"here\n")
    place = place_of(file, START, many + 1)
    assert place == LineStart(100 * many, many + 1)
    assert line_at(file, place.offset) == place


def test_a_line_that_is_not_there_is_the_end() -> None:
    file = log(["a", "b"])
    assert place_of(file, START, 99).offset == len(file.getvalue())


def test_of_long_lines_the_beginning_is_shown() -> None:
    long = "y" * 3_000_000
    found = around(log(["a", long, "here", long, "z"]), 3)
    assert [line[:1] for line in found.lines] == ["h", "y"]
    assert max(map(len, found.lines)) <= LINE_SHOWN + 1


def test_hostile_lines_come_out_harmless() -> None:
    found = around(io.BytesIO(b"\x1b]52;c;cm0=\x07a\n\x1b[2J\x9b31mb\x00\n\xff\xfe\n"), 1)
    assert all(line.isprintable() for line in found.lines)
