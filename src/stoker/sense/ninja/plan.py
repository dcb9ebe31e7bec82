"""What a ninja run has to do, according to a dry run. Unaware of how that is made: `plan_maker` does it."""

from __future__ import annotations

import json
import mmap
import os
import struct
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any, get_args

from stoker.model.tool import Tool
from stoker.sense.commands.shell import shell_text
from stoker.sense.ninja.plan_graph import PlanGraph

_TOOLS: tuple[Tool, ...] = get_args(Tool)
_RECORD = struct.Struct(">8sIHBx")
"""Key, place and length of the output's name behind the records, tool."""

TableRow = tuple[bytes, str, Tool]


@dataclass(frozen=True, slots=True)
class PlanSummary:
    """The figures of a plan.

    `total` counts this run's edges: `finished` before the plan was made, and `planned` after. With restat rules it is
    an upper bound. `tools` counts them by kind. `stamp` shows whether the manifest is still the one that was read.
    `renewing` are outputs of the edges by which ninja regenerates the manifest before all others; it counts them
    separately, and they are in none of these figures.
    """

    total: int | None
    finished: int
    planned: int
    tools: Mapping[str, int]
    stamp: str
    note: str = ""
    renewing: Collection[str] = ()


class Plan:
    """A plan's figures, a table on disk from command lines to outputs, and which edge waits for which, if known."""

    def __init__(
        self, summary: PlanSummary, table: mmap.mmap | None, count: int, graph: PlanGraph | None = None
    ) -> None:
        self.summary = summary
        self.graph = graph
        self._table = table
        self._count = count

    @classmethod
    def load(cls, path: Path) -> Plan | None:
        """Return the plan at `path` (and its table next to it); None if it does not exist or is damaged."""
        try:
            summary = _summary(json.loads(path.read_bytes()))
            with table_path(path).open("rb") as file:
                count = int.from_bytes(file.read(4), "big")
                table = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError, KeyError, TypeError):
            return None
        if 4 + count * _RECORD.size > len(table):
            table.close()
            return None
        return cls(summary, table, count, PlanGraph.load(graph_path(path)))

    @property
    def total(self) -> int | None:
        """How many edges this run has in all."""
        return self.summary.total

    def output_of(self, argv: Sequence[str]) -> tuple[str, Tool] | None:
        """Return the output and tool of a running job, None for a command that is not in the plan.

        The output is empty if several edges have this very command: it does not show which of them the job is.
        """
        return self._find(key_of_argv(argv)) if argv else None

    def tool_of(self, output: str) -> Tool | None:
        """Return the tool that makes this file, None if no edge of the plan does."""
        edge = self.graph.find(output) if self.graph is not None else None
        return None if self.graph is None or edge is None else self.graph.tools[edge]

    def is_edge(self, output: str) -> bool:
        """Say whether an edge of the plan has this name: then ninja records it by that."""
        edge = self.graph.find(output) if self.graph is not None else None
        return self.graph is not None and edge is not None and self.graph.output(edge) == output

    def close(self) -> None:
        """Close the files."""
        if self.graph is not None:
            self.graph.close()
        if self._table is not None:
            self._table.close()
            self._table = None

    def _find(self, key: bytes) -> tuple[str, Tool] | None:
        table = self._table
        if table is None:
            return None

        def key_at(index: int) -> bytes:
            return bytes(table[4 + index * _RECORD.size : 12 + index * _RECORD.size])

        index = bisect_left(range(self._count), key, key=key_at)
        if index == self._count or key_at(index) != key:
            return None
        _, place, length, tool = _RECORD.unpack_from(table, 4 + index * _RECORD.size)
        return os.fsdecode(table[place : place + length]), _TOOLS[tool]


def key_of_command(command: str) -> bytes:
    """Return the key of a command as it is in the manifest: what `sh -c` is given."""
    return _key(command)


def key_of_argv(argv: Sequence[str]) -> bytes:
    """Return the key of a process: of its shell text, or of its arguments once the shell has become the command."""
    text = shell_text(argv)
    return _key(text if text is not None else "\0".join(argv))


def _key(text: str) -> bytes:
    return blake2b(os.fsencode(text), digest_size=8).digest()


def table_path(path: Path) -> Path:
    """The table that belongs to the plan at `path`."""
    return path.with_name(path.name + ".table")


def graph_path(path: Path) -> Path:
    """The graph that belongs to the plan at `path`; it may be missing."""
    return path.with_name(path.name + ".graph")


def write_table(file: IO[bytes], rows: Iterable[TableRow]) -> None:
    """Records sorted by key behind their number, then the names. A key of several outputs names none of them."""
    unique: dict[bytes, tuple[bytes, Tool]] = {}
    for key, output, tool in rows:
        name = os.fsencode(output)[:65535]
        known = unique.setdefault(key, (name, tool))
        if known[0] != name:
            unique[key] = (b"", known[1])
    places: dict[bytes, int] = {}
    place = 4 + len(unique) * _RECORD.size
    file.write(len(unique).to_bytes(4, "big"))
    names: list[bytes] = []
    for key in sorted(unique):
        name, tool = unique[key]
        if name not in places:
            places[name] = place
            place += len(name)
            names.append(name)
        file.write(_RECORD.pack(key, places[name], len(name), _TOOLS.index(tool)))
    file.writelines(names)


def manifest_stamp(directory: str, manifest: str, root: str = "") -> str:
    """Changes when the manifest is regenerated, as CMake does during a build: then a plan is out of date."""
    try:
        info = os.stat(root + os.path.join(directory, manifest))
    except OSError:
        return ""
    return f"{info.st_mtime_ns}-{info.st_size}"


def _summary(data: Mapping[str, Any]) -> PlanSummary:
    summary = PlanSummary(**{**data, "renewing": frozenset(data.get("renewing", ()))})
    whole = [summary.finished, summary.planned, *summary.tools.values()]
    if not all(isinstance(n, int) for n in whole) or not isinstance(summary.total, int | None):
        raise TypeError("a plan's figures are whole numbers")
    return summary
