"""Parses `ninja -t graph` (graphviz, the same in 1.10 to 1.13) and keeps which planned edge waits for which.

Pure: lines in, numbers out. Unaware of processes, of durations, and of how the result is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

MAX_ARROWS = 4_000_000
"""Inputs and outputs of all edges together; each costs some 30 bytes. LLVM has 150,000, Chromium 3 million."""


class GraphError(Exception):
    """The graph is not available; the message says why."""


@dataclass(slots=True)
class Edge:
    """An edge of the graph; its files are numbers."""

    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class DotGraph:
    """What ninja printed: all edges, and the names of the files that they make."""

    edges: Sequence[Edge]
    names: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class Task:
    """A planned edge with its outputs; or, without any, a joint: through it several edges wait for several others.

    `deps` are numbers of earlier tasks. `depth` is how many tasks lie on the longest path to this one.
    """

    outputs: Sequence[str]
    deps: frozenset[int]
    depth: int


def read_dot(lines: Iterable[str]) -> DotGraph:
    """Parse the output of `ninja -t graph`. Raises GraphError if it is too large.

    An edge is a node of its own (`"0xE" [label="rule", shape=ellipse]`) with arrows from its inputs and to its outputs,
    or, with one of each, a labelled arrow. Labels are not escaped, so only a line's beginning and end count.
    """
    numbers: dict[str, int] = {}
    names: dict[int, str] = {}
    edges: dict[int, Edge] = {}
    arrows = 0
    for line in lines:
        if not line.startswith('"0x'):
            continue
        address, _, rest = line[1:].rstrip("\n").partition('"')
        me = numbers.setdefault(address, len(numbers))
        if rest.startswith(' -> "0x'):
            arrows += 1
            _add_arrow(edges, numbers, me, rest[5:])
        elif not rest.endswith(", shape=ellipse]"):
            names[me] = rest.removeprefix(' [label="').removesuffix('"]')
        if arrows > MAX_ARROWS:
            raise GraphError(f"it has more than {MAX_ARROWS} arrows")
    made = {output for edge in edges.values() for output in edge.outputs}
    return DotGraph(list(edges.values()), {node: name for node, name in names.items() if node in made})


def _add_arrow(edges: dict[int, Edge], numbers: dict[str, int], start: int, rest: str) -> None:
    """`0xB"` to an output, `0xB" [arrowhead=none...]` from an input, `0xB" [label=" rule"]` from one to the other."""
    address, _, kind = rest.partition('"')
    end = numbers.setdefault(address, len(numbers))
    if kind.startswith(" [arrowhead"):
        edges.setdefault(end, Edge()).inputs.append(start)
    elif kind.startswith(" [label"):
        edges[-1 - len(edges)] = Edge([start], [end])
    else:
        edges.setdefault(start, Edge()).outputs.append(end)


def tasks_of(graph: DotGraph, planned: Iterable[str]) -> list[Task]:
    """Return the planned edges (each named by an output), and the joints, each after everything that it waits for.

    Edges that are not planned (phony ones, and those that are up to date although something before them is not) pass on
    what they wait for. A planned edge that is not in the graph waits for nothing.
    """
    wanted = set(planned)
    reduction = _Reduction(graph, wanted)
    known = {name for task in reduction.tasks for name in task.outputs}
    return [*reduction.tasks, *(Task((name,), frozenset(), 0) for name in sorted(wanted - known))]


class _Reduction:
    """One walk over the graph, which leaves `tasks`."""

    def __init__(self, graph: DotGraph, wanted: set[str]) -> None:
        self.tasks: list[Task] = []
        self._graph = graph
        self._wanted = wanted
        self._producer = {output: i for i, edge in enumerate(graph.edges) for output in edge.outputs}
        self._sets: dict[frozenset[int], frozenset[int]] = {}
        self._joints: dict[frozenset[int], frozenset[int]] = {}
        passes_on: dict[int, frozenset[int]] = {}
        for edge in self._in_order():
            before = {passes_on.get(p, frozenset()) for p in self._before(edge)}
            passes_on[edge] = self._reduced(edge, frozenset().union(*before))

    def _in_order(self) -> Iterator[int]:
        """Yield every edge once, after its predecessors. Without recursion: graphs are thousands of edges deep."""
        entered: set[int] = set()
        left: set[int] = set()
        for root in range(len(self._graph.edges)):
            stack = [root]
            while stack:
                edge = stack[-1]
                if edge not in entered:
                    entered.add(edge)
                    stack += [p for p in self._before(edge) if p not in entered]
                    continue
                stack.pop()
                if edge not in left:
                    left.add(edge)
                    yield edge

    def _before(self, edge: int) -> Iterator[int]:
        producer = self._producer
        return (producer[file] for file in self._graph.edges[edge].inputs if file in producer)

    def _reduced(self, edge: int, waits_for: frozenset[int]) -> frozenset[int]:
        """Return what those that wait for `edge` have to wait for, once it is a task, a joint, or nothing of its
        own."""
        waits_for = self._sets.setdefault(waits_for, waits_for)
        names = [self._graph.names.get(file, "") for file in self._graph.edges[edge].outputs]
        if not self._wanted.isdisjoint(names):
            return self._add(names, waits_for)
        if len(waits_for) < 2:
            return waits_for
        if waits_for not in self._joints:
            self._joints[waits_for] = self._add((), waits_for)
        return self._joints[waits_for]

    def _add(self, outputs: Sequence[str], deps: frozenset[int]) -> frozenset[int]:
        depth = 1 + max((self.tasks[d].depth for d in deps), default=-1)
        self.tasks.append(Task(outputs, deps, depth))
        return frozenset((len(self.tasks) - 1,))
