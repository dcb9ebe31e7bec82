"""Searches the shortest schedule of a graph of jobs with plenty of memory.

Knows jobs and cores. Knows neither memory, nor policies, nor what is compared.

A schedule follows from a rank of each job: whenever a core is free, the ready job of the lowest rank starts. It is
improved by rebuilding it backwards from its end, on the reversed graph, and then forwards again. The first ranks are
the longest chains that begin with each job; later ones are random variations of the best so far.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from random import Random

from stoker.simulate.trace import TraceJob

SHAKEN = 0.03
"""Standard deviation by which ranks are shaken, as a share of the whole time."""


class Graph:
    """Jobs by their numbers: seconds, and who waits for whom."""

    def __init__(self, seconds: Sequence[float], after: Sequence[Sequence[int]]) -> None:
        """`after` has, of each job, those that it waits for; they stand before it, or all of them behind it."""
        self.seconds = seconds
        self.needs = [len(before) for before in after]
        self.dependents: list[list[int]] = [[] for _ in seconds]
        for number, before in enumerate(after):
            for need in before:
                self.dependents[need].append(number)

    def turned_round(self) -> Graph:
        """Return the same jobs on a time that runs backwards."""
        return Graph(self.seconds, self.dependents)

    def ends(self, ranks: Sequence[float], cores: int) -> list[float]:
        """Return when each job ends, if the ready one of the lowest rank goes first."""
        missing, found, now = self.needs.copy(), [0.0] * len(self.seconds), 0.0
        ready = [(ranks[number], number) for number, needs in enumerate(missing) if not needs]
        heapq.heapify(ready)
        running: list[tuple[float, int]] = []
        while ready or running:
            while ready and len(running) < cores:
                _, number = heapq.heappop(ready)
                heapq.heappush(running, (now + self.seconds[number], number))
            now, number = heapq.heappop(running)
            found[number] = now
            for dependent in self.dependents[number]:
                missing[dependent] -= 1
                if not missing[dependent]:
                    heapq.heappush(ready, (ranks[dependent], dependent))
        return found


def shortest(jobs: Sequence[TraceJob], cores: int, rounds: int, seed: int = 1) -> float:
    """Return the seconds of the best schedule found."""
    numbers = {job.output: number for number, job in enumerate(jobs)}
    graph = Graph([job.seconds for job in jobs], [[numbers[need] for need in job.deps] for job in jobs])
    turned, random = graph.turned_round(), Random(seed)
    unlimited = turned.ends([0.0] * len(jobs), len(jobs))
    best, ranks = _improved(graph, turned, [-end for end in unlimited], cores)
    for _ in range(rounds):
        shaken = [rank + random.gauss(0, SHAKEN * best) for rank in ranks]
        found, its_ranks = _improved(graph, turned, shaken, cores)
        if found <= best:
            best, ranks = found, its_ranks
    return best


def _improved(graph: Graph, turned: Graph, ranks: Sequence[float], cores: int) -> tuple[float, Sequence[float]]:
    """Return the seconds and the ranks of the best schedule that is reached by going to and fro."""
    ends = graph.ends(ranks, cores)
    while True:
        backwards = turned.ends([-end for end in ends], cores)
        again = [-end for end in backwards]
        later = graph.ends(again, cores)
        if max(later) >= max(ends):
            return max(ends), ranks
        ends, ranks = later, again
