"""What is left of one plan: which edges wait, run or are done, summed up by group and by what is expected of them.

Sums change with each start and end, so that a forecast costs the same for 100 edges left as for 100,000; of folders
in which nothing has run yet all is expected alike, so it costs the same for 10 of them as for 1,000. Unaware of clocks,
of processes and of the journal.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from stoker.decide.durations import Typical, residual
from stoker.decide.forecast import Batch, Group
from stoker.decide.pace import Folders, Fresh, Pace, Source, Young
from stoker.engine.plan_folders import HasRun, PlanFolders
from stoker.model.tool import Tool
from stoker.sense.plan_graph import PlanGraph

WAITING, RUNNING, DONE = range(3)
SOURCES: tuple[Source, ...] = ("class", "log", "other flags", "history")
"""From the least to the most that is known of a job."""

LEAST_SECONDS = 0.001

_EDGE_BITS = 32
_EDGE = (1 << _EDGE_BITS) - 1
"""A rank's lower bits, which hold the edge."""


ANY = -1
"""In place of a folder's number: it does not matter, or no job of the tool has run in it yet."""


class Kind(NamedTuple):
    """Jobs that are expected alike: the same source, tool and, where only the class is known, folder."""

    source: Source
    tool: Tool
    folder: int


@dataclass(slots=True)
class Sum:
    """Jobs of a kind in one group that are still to start: their number, and what their source says of them.

    `by_length`, made when it is first wanted, has them all, the longest first, and perhaps some that have gone since.
    """

    jobs: int = 0
    seconds: float = 0.0
    square: float = 0.0
    longest: float = 0.0
    memory: float = 0.0
    by_length: list[int] | None = None


class Remaining:
    """The edges of a plan that have not ended."""

    def __init__(self, graph: PlanGraph, has_run: HasRun = lambda _tool, _folder: False) -> None:
        """`has_run` tells whether a tool has run in a folder already, under an earlier plan."""
        self.graph = graph
        self.left = len(graph)
        self.broken_off = False
        """Whether something was killed, so that the scheduler cannot do all of its plan."""
        self.tools = frozenset(graph.tools)
        self._state = bytearray(len(graph))
        self._source = bytearray(len(graph))
        self._asked = bytearray(len(graph))
        self._seconds = array("f", (max(LEAST_SECONDS, s) for s in graph.seconds))
        self._bytes = array("f", bytes(4 * len(graph)))
        self._folders = PlanFolders(graph, has_run)
        self._members: list[list[int]] = [[] for _ in graph.deps]
        self._sums: list[dict[Kind, Sum]] = [{} for _ in graph.deps]
        self._cleared = bytearray(len(graph.deps))
        for edge, group in enumerate(graph.groups):
            self._members[group].append(edge)
            self._source[edge] = SOURCES.index("log" if graph.seconds[edge] >= 0.0 else "class")
            self._count_in(edge)

    # -- news --------------------------------------------------------------------------------------------------

    def expect(self, edge: int, source: Source, seconds: float, held: float) -> None:
        """What is expected of an edge: CPU seconds, and bytes held on average over its life."""
        if self._state[edge] == DONE or SOURCES.index(source) < self._source[edge]:
            return
        waiting = self._state[edge] == WAITING
        if waiting:
            self._count_out(edge)
        self._source[edge] = SOURCES.index(source)
        self._seconds[edge], self._bytes[edge] = max(LEAST_SECONDS, seconds), held
        if waiting:
            self._count_in(edge)

    def may_ask(self, edge: int) -> bool:
        """Whether nobody has asked yet what is expected of the edge; from then on somebody has."""
        if self._asked[edge] or self._state[edge] == DONE:
            return False
        self._asked[edge] = True
        return True

    def ask_again(self) -> None:
        """Nobody has asked yet."""
        self._asked = bytearray(len(self._asked))

    def begin(self, edge: int) -> None:
        """The edge runs now, so all that it waited for has ended, or was found to be up to date after all."""
        if self._state[edge] == WAITING:
            self._tell_folder_apart(edge)
            self._count_out(edge)
            self._state[edge] = RUNNING
            self._clear_before(self.graph.groups[edge])

    def finish(self, edge: int) -> None:
        """The edge has ended."""
        if self._state[edge] == DONE:
            return
        self.begin(edge)
        self._state[edge] = DONE
        self.left -= 1

    def put_back(self, edge: int) -> None:
        """The edge was killed: it is to run again."""
        if self._state[edge] == WAITING:
            return
        self.left += self._state[edge] == DONE
        self._state[edge] = WAITING
        self._count_in(edge)
        self.broken_off = True

    def expected(self, edge: int) -> tuple[Source, float]:
        """What is known best of an edge: the source, and the seconds that it tells (none for the class)."""
        return SOURCES[self._source[edge]], self._seconds[edge]

    def folder(self, edge: int) -> str:
        """The folder in which the edge makes its first output."""
        return self._folders.name(self._folders.number(edge))

    def held(self, edge: int, by_tool: Mapping[str, float]) -> float:
        """Bytes that the edge is expected to hold, on average over its life; by its tool where only that is known."""
        return self._bytes[edge] or by_tool.get(self.graph.tools[edge], 0.0)

    def _clear_before(self, group: int) -> None:
        """With exact groups, everything before a running edge is over; restat rules prune without a word."""
        stack = list(self.graph.deps[group]) if self.graph.exact else []
        while stack:
            group = stack.pop()
            if self._cleared[group]:
                continue
            self._cleared[group] = True
            stack += self.graph.deps[group]
            for edge in self._members[group]:
                if self._state[edge] == WAITING:
                    self._count_out(edge)
                    self._state[edge] = DONE
                    self.left -= 1

    def _tell_folder_apart(self, edge: int) -> None:
        """The edge's tool runs in its folder: its other jobs there are expected to be like what this one comes to."""
        if self._folders.has_run(edge):
            return
        alike = [other for other in self._folders.alike(edge) if self._state[other] == WAITING]
        moving = [other for other in alike if self._kind(other).source == "class"]
        for other in moving:
            self._count_out(other)
        self._folders.runs(edge)
        for other in moving:
            self._count_in(other)

    # -- sums --------------------------------------------------------------------------------------------------

    def _kind(self, edge: int) -> Kind:
        source = SOURCES[self._source[edge]]
        apart = source == "class" and self._folders.has_run(edge)
        return Kind(source, self.graph.tools[edge], self._folders.number(edge) if apart else ANY)

    def _count_in(self, edge: int) -> None:
        total = self._sums[self.graph.groups[edge]].setdefault(self._kind(edge), Sum())
        seconds = self._seconds[edge]
        total.jobs += 1
        total.seconds += seconds
        total.square += seconds**2
        total.longest = max(total.longest, seconds)
        total.memory += seconds * self._bytes[edge]
        if total.by_length is not None:
            heappush(total.by_length, self._rank(edge))

    def _count_out(self, edge: int) -> None:
        group, kind, seconds = self.graph.groups[edge], self._kind(edge), self._seconds[edge]
        total = self._sums[group][kind]
        if total.jobs == 1:
            del self._sums[group][kind]
            return
        total.jobs -= 1
        total.seconds -= seconds
        total.square -= seconds**2
        total.memory -= seconds * self._bytes[edge]
        if kind.source != "class" and seconds >= total.longest:
            total.longest = self._longest_but(edge, group, kind, total)

    def _longest_but(self, leaving: int, group: int, kind: Kind, total: Sum) -> float:
        """The longest of a kind without one that leaves.

        A scheduler may take the longest first: to look through all others each time would cost their number squared.
        """
        if total.by_length is None:
            total.by_length = [self._rank(edge) for edge in self._members[group] if self._waits(edge, kind)]
            heapify(total.by_length)
        heap = total.by_length
        while (edge := heap[0] & _EDGE) == leaving or heap[0] != self._rank(edge) or not self._waits(edge, kind):
            heappop(heap)
        return self._seconds[edge]

    def _waits(self, edge: int, kind: Kind) -> bool:
        return self._state[edge] == WAITING and self._kind(edge) == kind

    def _rank(self, edge: int) -> int:
        """Sorts the longest first; one number, since there may be a hundred thousand."""
        return (-round(1000 * self._seconds[edge]) << _EDGE_BITS) | edge

    # -- the forecast's view -----------------------------------------------------------------------------------

    def young(self, running: Mapping[int, float]) -> Iterator[Young]:
        """Those of the running edges of which only the class is known; `running` has their ages in seconds."""
        for edge, age in running.items():
            if SOURCES[self._source[edge]] == "class":
                yield Young(self.graph.tools[edge], self.folder(edge), age)

    def groups(self, view: View, running: Mapping[int, float], first: int) -> list[Group]:
        """What is left, with the running edges as what they still need. The groups are numbered from `first`."""
        batches: list[list[Batch]] = [
            [self._waiting(view, group, first, kind, total) for kind, total in sums.items()]
            for group, sums in enumerate(self._sums)
        ]
        for edge, age in running.items():
            kind, held = self._kind(edge), self._bytes[edge]
            batch = view.running(kind, self.folder(edge), self._seconds[edge], age, held)
            batches[self.graph.groups[edge]].append(batch)
        return [Group(b, [first + d for d in deps]) for b, deps in zip(batches, self.graph.deps, strict=True)]

    def _waiting(self, view: View, group: int, first: int, kind: Kind, total: Sum) -> Batch:
        if kind.folder != ANY:
            return view.waiting(kind, self._folders.name(kind.folder), total)
        return view.waiting(kind, Fresh(str(first + group), max(1, self._folders.fresh(group, kind.tool))), total)


class View:
    """Kinds as the pace sees them at one moment, each looked up once."""

    def __init__(self, pace: Pace, held: Mapping[str, float]) -> None:
        self.doubts: dict[str, float] = {}
        """How far all that was told may be off together, by source."""
        self._pace = pace
        self._held = held
        self._typical: dict[tuple[str, Folders], Typical] = {}
        self._factors: dict[tuple[Source, str], Typical | None] = {}
        self._known: dict[tuple[Source, str, Folders], tuple[str, ...]] = {}

    def waiting(self, kind: Kind, folder: Folders, total: Sum) -> Batch:
        """Jobs that are still to start."""
        factor = self._factor(kind)
        if factor is None:
            seconds, spread = self._of_class(kind.tool, folder)
            memory = total.memory or total.jobs * seconds * self._held.get(kind.tool, 0.0)
            work, square = total.jobs * seconds, total.jobs * seconds**2
            return Batch(self._names("class", kind, folder), total.jobs, work, square, seconds, spread, memory)
        by, spread = factor
        memory = by * (total.memory or total.seconds * self._held.get(kind.tool, 0.0))
        names = self._names(kind.source, kind, folder)
        return Batch(names, total.jobs, by * total.seconds, by**2 * total.square, by * total.longest, spread, memory)

    def running(self, kind: Kind, folder: str, seconds: float, age: float, held: float) -> Batch:
        """A job that has run for `age` seconds."""
        factor = self._factor(kind)
        if factor is None:
            names, whole = self._names("class", kind, folder), self._of_class(kind.tool, folder)
        else:
            names, whole = self._names(kind.source, kind, folder), Typical(factor.seconds * seconds, factor.spread)
        left, spread = residual(whole, age)
        return Batch(names, 1, left, left**2, left, spread, left * (held or self._held.get(kind.tool, 0.0)))

    def _factor(self, kind: Kind) -> Typical | None:
        """None where the class tells more: it is all there is, or the source has proved worse."""
        if kind.source == "class":
            return None
        key = kind.source, kind.tool
        if key not in self._factors:
            self._factors[key] = None if self._pace.distrusts(*key) else self._pace.corrected(*key)
        return self._factors[key]

    def _of_class(self, tool: str, folder: Folders) -> Typical:
        key = tool, folder
        if key not in self._typical:
            self._typical[key] = self._pace.typical(*key)
        return self._typical[key]

    def _names(self, source: Source, kind: Kind, folder: Folders) -> tuple[str, ...]:
        """What the jobs have in common with others; how far that may be off is noted in `doubts`."""
        key = source, kind.tool, folder if source == "class" else ""
        if key not in self._known:
            doubts = self._pace.doubts(*key)
            self.doubts.update(doubts)
            self._known[key] = tuple(doubts)
        return self._known[key]
