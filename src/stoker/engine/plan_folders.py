"""The folders in which the edges of a plan make their first outputs, and which tools have run in which of them.

Unaware of what the edges are expected to take.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable

from stoker.model.tool import Tool
from stoker.sense.plan_graph import PlanGraph

HasRun = Callable[[Tool, str], bool]


class PlanFolders:
    """Folders by number, the first one met is 0."""

    def __init__(self, graph: PlanGraph, has_run: HasRun) -> None:
        """`has_run` tells whether a tool has run in a folder already, under an earlier plan."""
        self._graph = graph
        numbers: dict[str, int] = {}
        edges = range(len(graph))
        folders = (graph.output(edge).rpartition("/")[0] for edge in edges)
        self._of_edge = array("I", (numbers.setdefault(folder, len(numbers)) for folder in folders))
        self._names = list(numbers)
        self._sorted = array("I", sorted(edges, key=self._of_edge.__getitem__))
        met = set(zip(graph.tools, self._of_edge, strict=True))
        self._ran = {(tool, number) for tool, number in met if has_run(tool, self._names[number])}
        self._fresh: Counter[tuple[int, Tool]] = Counter()
        for group, tool, number in set(zip(graph.groups, graph.tools, self._of_edge, strict=True)):
            self._fresh[group, tool] += (tool, number) not in self._ran

    def number(self, edge: int) -> int:
        """The edge's folder."""
        return self._of_edge[edge]

    def name(self, number: int) -> str:
        """A folder's path, without a slash at its end."""
        return self._names[number]

    def has_run(self, edge: int) -> bool:
        """Whether the edge's tool has run in its folder."""
        return (self._graph.tools[edge], self._of_edge[edge]) in self._ran

    def fresh(self, group: int, tool: Tool) -> int:
        """In how many folders of a group the tool has not run."""
        return self._fresh[group, tool]

    def alike(self, edge: int) -> list[int]:
        """The edges of the same tool in the same folder, this one too."""
        number, tool = self._of_edge[edge], self._graph.tools[edge]
        begin, end = (bisect_left(self._sorted, n, key=self._of_edge.__getitem__) for n in (number, number + 1))
        return [other for other in self._sorted[begin:end] if self._graph.tools[other] == tool]

    def runs(self, edge: int) -> None:
        """The edge's tool runs in its folder from now on."""
        if self.has_run(edge):
            return
        tool = self._graph.tools[edge]
        self._ran.add((tool, self._of_edge[edge]))
        for group in {self._graph.groups[other] for other in self.alike(edge)}:
            self._fresh[group, tool] -= 1
