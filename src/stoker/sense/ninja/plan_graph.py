"""The graph of a plan on disk: which planned edge waits for which, in groups, and how long each took before.

Written by the planner and read by the engine, which keeps only numbers in memory. Unaware of ninja and of time.
"""

from __future__ import annotations

import mmap
import os
import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import IO, Literal, get_args

from stoker.model.tool import Tool

UNKNOWN = -1.0
"""Seconds of an edge that no earlier run has recorded."""

MAGIC = b"stoker graph 2\n"
KEY_BYTES = 8
MAX_SIZE = 2**32 - 1
MAX_FOUND = 4096
"""Answers of `PlanGraph.find` that are kept: more than jobs live at one time."""

MAX_RECORDED_DEPS = 20_000
"""The most pairs of groups, one of which waits for the other, that the journal records of a plan: some 100 KB."""

_ENTRY_BYTES = KEY_BYTES + 4
_TOOLS: tuple[Tool, ...] = get_args(Tool)


@dataclass(frozen=True, slots=True)
class PlannedEdge:
    """An edge still to run: its outputs (the first is its name), its tool, its group.

    `seconds` is what it took in an earlier run by ninja's log, UNKNOWN if that does not have it. `command` is the
    number of a command line like its own: of another object of the same library, perhaps. `size` is that of the source
    which it compiles, in bytes, 0 if there is none.
    """

    outputs: Sequence[str]
    tool: Tool
    seconds: float
    group: int
    command: int = 0
    size: int = 0


class PlanGraph:
    """The planned edges by number, and the groups they belong to.

    Edges of one group wait for the same groups and are waited for by the same, so that they need not be kept apart;
    a group may be empty (a phony edge that joins others). `deps[g]` are groups with lower numbers: if the grouping is
    `exact`, all their edges must end before any of group `g` begins; else only some, and nobody knows which.
    """

    def __init__(self, data: mmap.mmap) -> None:
        """Raises ValueError when the data is not what `write_graph` wrote."""
        self._data: mmap.mmap | None = data
        reader = _Reader(data)
        edges, groups, keys, commands, exact = reader.whole_numbers("I", 5)
        self.exact = bool(exact)
        self.tools = tuple(_TOOLS[i] for i in reader.whole_numbers("B", edges))
        self.seconds = reader.fractions(edges)
        self.sizes = reader.whole_numbers("I", edges)
        self.groups = reader.whole_numbers("I", edges)
        starts = reader.whole_numbers("I", groups + 1)
        flat = reader.whole_numbers("I", starts[-1])
        self.deps = tuple(tuple(flat[a:b]) for a, b in pairwise(starts))
        self._command_of = reader.whole_numbers("I", edges)
        self._texts = reader.whole_numbers("I", edges + commands + 1)
        self._keys, self._key_count = reader.skip(keys * _ENTRY_BYTES), keys
        self._text = reader.skip(self._texts[-1])
        self._found: dict[str, int | None] = {}
        if any(g >= groups for g in self.groups) or any(d >= g for g, deps in enumerate(self.deps) for d in deps):
            raise ValueError("groups are numbered in an order in which they can run")

    def __len__(self) -> int:
        return len(self.tools)

    @classmethod
    def load(cls, path: Path) -> PlanGraph | None:
        """Return the graph in this file, None if there is none or it is damaged."""
        try:
            with path.open("rb") as file:
                data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError):
            return None
        try:
            return cls(data)
        except (ValueError, IndexError):
            data.close()
            return None

    def output(self, edge: int) -> str:
        """The first output of an edge; empty once the graph is closed."""
        return self._text_at(edge)

    def command(self, edge: int) -> str:
        """A command line like the edge's own; empty where none was kept."""
        return self._text_at(len(self) + self._command_of[edge])

    def find(self, output: str) -> int | None:
        """The edge that makes this file, None if none of the plan does. Asked again and again for each live job."""
        if self._data is None:
            return None
        if output not in self._found:
            if len(self._found) >= MAX_FOUND:
                self._found.clear()
            self._found[output] = self._search(output)
        return self._found[output]

    def _search(self, output: str) -> int | None:
        key = _key(output)
        index = bisect_left(range(self._key_count), key, key=lambda i: self._key_at(i)[0])
        if index == self._key_count:
            return None
        found, edge = self._key_at(index)
        return edge if found == key else None

    def recordable(self) -> tuple[tuple[int, ...], ...]:
        """The groups that each group waits for, as the journal has them; empty unless they are exact and few enough."""
        return self.deps if self.exact and sum(map(len, self.deps)) <= MAX_RECORDED_DEPS else ()

    def close(self) -> None:
        """Close the file: names and lookups end, numbers stay."""
        if self._data is not None:
            self._data.close()
            self._data = None

    def _text_at(self, number: int) -> str:
        if self._data is None or number + 1 >= len(self._texts):
            return ""
        return os.fsdecode(self._data[self._text + self._texts[number] : self._text + self._texts[number + 1]])

    def _key_at(self, index: int) -> tuple[bytes, int]:
        assert self._data is not None  # noqa: S101  (both callers have looked)
        place = self._keys + index * _ENTRY_BYTES
        entry = self._data[place : place + _ENTRY_BYTES]
        return bytes(entry[:KEY_BYTES]), int.from_bytes(entry[KEY_BYTES:], sys.byteorder)


class _Reader:
    """Takes arrays off the front of a file."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self._place = len(MAGIC)
        if data[: len(MAGIC)] != MAGIC:
            raise ValueError("no graph")

    def whole_numbers(self, kind: Literal["B", "I"], count: int) -> array[int]:
        values = array(kind)
        values.frombytes(self._taken(count * values.itemsize))
        return values

    def fractions(self, count: int) -> array[float]:
        values = array("f")
        values.frombytes(self._taken(count * values.itemsize))
        return values

    def skip(self, size: int) -> int:
        """The place of the next `size` bytes."""
        start, self._place = self._place, self._place + size
        if self._place > len(self._data):
            raise ValueError("the file is too short")
        return start

    def _taken(self, size: int) -> bytes:
        start = self.skip(size)
        return self._data[start : start + size]


def write_graph(
    file: IO[bytes],
    edges: Sequence[PlannedEdge],
    deps: Sequence[Sequence[int]],
    commands: Sequence[str],
    *,
    exact: bool,
) -> None:
    """Write the edges, for each group the groups that it waits for (lower numbers), and the command lines."""
    keys = sorted(_keys(edges))
    texts = [os.fsencode(text) for text in (*(e.outputs[0] if e.outputs else "" for e in edges), *commands)]
    file.write(MAGIC)
    arrays: list[array[int] | array[float]] = [
        array("I", (len(edges), len(deps), len(keys), len(commands), exact)),
        array("B", (_TOOLS.index(e.tool) for e in edges)),
        array("f", (e.seconds for e in edges)),
        array("I", (min(e.size, MAX_SIZE) for e in edges)),
        array("I", (e.group for e in edges)),
        array("I", _starts(map(len, deps))),
        array("I", (d for group in deps for d in group)),
        array("I", (e.command for e in edges)),
        array("I", _starts(map(len, texts))),
    ]
    for numbers in arrays:
        file.write(numbers.tobytes())
    for key, edge in keys:
        file.write(key + edge.to_bytes(4, sys.byteorder))
    file.writelines(texts)


def _keys(edges: Sequence[PlannedEdge]) -> Iterator[tuple[bytes, int]]:
    seen: set[bytes] = set()
    for number, edge in enumerate(edges):
        for output in edge.outputs:
            key = _key(output)
            if key not in seen:
                seen.add(key)
                yield key, number


def _key(output: str) -> bytes:
    return blake2b(os.fsencode(output), digest_size=KEY_BYTES).digest()


def _starts(lengths: Iterable[int]) -> Iterator[int]:
    total = 0
    yield total
    for length in lengths:
        total += length
        yield total
