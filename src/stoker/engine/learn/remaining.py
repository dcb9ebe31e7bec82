"""What is left of one plan: which edges wait, run or are done, and what was stated for each.

Unaware of clocks, of processes and of the journal.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping

from stoker.decide.time_left.durations import (
    LEAST_SECONDS,
    Class,
    Durations,
    ExpectedJob,
    RunSoFar,
    Took,
    expected_job,
    weight,
)
from stoker.decide.time_left.estimate import REMEMBERED, Left
from stoker.model.lessons import Stated
from stoker.sense.ninja.plan_graph import UNKNOWN, PlanGraph

WAITING, RUNNING, DONE = range(3)

SourceKey = tuple[str, float]
"""Returns the name of an output file, and the weight that follows from its source's size."""


class Remaining:
    """The edges of a plan that have not ended."""

    def __init__(self, graph: PlanGraph) -> None:
        self.graph = graph
        self.left = len(graph)
        self.broken_off = False
        """Whether something was killed, so that the scheduler cannot complete its plan."""
        self.gone = False
        """Whether the scheduler is gone, and left work to the step's next attempt."""
        self._state = bytearray(len(graph))
        self._expected: list[ExpectedJob] = []
        self._held = array("f", bytes(4 * len(graph)))
        self._weights = array("f", bytes(4 * len(graph)))
        self._sources: dict[SourceKey, list[int]] = {}
        self._members: list[list[int]] = [[] for _ in graph.deps]
        self._cleared = bytearray(len(graph.deps))
        self._classes: dict[Class, Class] = {}
        for edge in range(len(graph)):
            output, seconds = graph.output(edge), graph.seconds[edge]
            stated = weight(graph.tools[edge], output, graph.sizes[edge])
            self._weights[edge] = stated.amount
            if seconds != UNKNOWN:
                stated = Stated("log", max(LEAST_SECONDS, seconds))
            elif graph.sizes[edge]:
                self._sources.setdefault(source_of(output, stated), []).append(edge)
            self._expected.append(self._as_expected(edge, stated))
            self._members[graph.groups[edge]].append(edge)
        self.ask_again()

    # -- news --------------------------------------------------------------------------------------------------

    def ask_again(self) -> None:
        """Restart `to_ask`: each edge once, in an order in which the first ones come from all over the plan."""
        count = len(self.graph)
        step = max(1, round(count * 0.618))
        while math.gcd(step, count) > 1:
            step += 1
        self.to_ask = (i * step % count for i in range(count))

    def state(self, edge: int, stated: Stated, held: float = 0.0) -> None:
        """Set what is expected of an edge, and the bytes that it holds on average (0: unknown)."""
        self._held[edge] = held or self._held[edge]
        self._expected[edge] = self._as_expected(edge, stated)

    def stated(self, edge: int) -> Stated:
        """Return what was stated for an edge."""
        job = self._expected[edge]
        return Stated(job.of.by, job.stated)

    def expected(self, edge: int) -> ExpectedJob:
        """Return the same, with its class."""
        return self._expected[edge]

    def compiled(self, source: SourceKey, seconds: float) -> None:
        """A job that compiles this source took that long, by all that is known: others of the source will take as
        long."""
        for edge in self._sources.pop(source, ()):
            if self._state[edge] == WAITING and self._expected[edge].of.by == "size":
                self.state(edge, Stated("twin", max(LEAST_SECONDS, seconds)))

    def begin(self, edge: int) -> None:
        """The edge runs now, so everything that it waited for has ended, or was found to be up to date after all."""
        if self._state[edge] == WAITING:
            self._state[edge] = RUNNING
            self._clear_before(self.graph.groups[edge])

    def finish(self, edge: int) -> None:
        """The edge has ended."""
        if self._state[edge] != DONE:
            self.begin(edge)
            self._state[edge] = DONE
            self.left -= 1

    def put_back(self, edge: int) -> None:
        """The edge was killed: it will run again."""
        self.left += self._state[edge] == DONE
        self._state[edge] = WAITING
        self.broken_off = True

    def _clear_before(self, group: int) -> None:
        """With exact groups, everything before a running edge is done; restat rules prune silently."""
        stack = list(self.graph.deps[group]) if self.graph.exact else []
        while stack:
            group = stack.pop()
            if self._cleared[group]:
                continue
            self._cleared[group] = True
            stack += self.graph.deps[group]
            for edge in self._members[group]:
                if self._state[edge] == WAITING:
                    self._state[edge] = DONE
                    self.left -= 1

    # -- what is left ------------------------------------------------------------------------------------------

    @property
    def needs_scale(self) -> bool:
        """Say whether only a weight is known for some edge."""
        return any(j.of.by == "size" and state != DONE for j, state in zip(self._expected, self._state, strict=True))

    def with_remembered(self, found: Took) -> Took:
        """Return it with what edges that wait weigh, and the seconds that they are remembered to take."""
        for job, state, amount in zip(self._expected, self._state, self._weights, strict=True):
            if state == WAITING and job.of.by in REMEMBERED:
                found = found.plus(amount, job.stated)
        return found

    def add_to(self, left: Left, running: Mapping[int, RunSoFar], durations: Durations, first: int) -> None:
        """Sum up what is left. Groups are numbered from `first`."""
        groups = self.graph.groups
        for edge, state in enumerate(self._state):
            if state == WAITING:
                job = self._expected[edge]
                left.add(job, first + groups[edge], durations.seconds(job), self._held[edge])
        for edge, run in running.items():
            job = self._expected[edge]
            left.add(job, first + groups[edge], durations.remainder(job, run), self._held[edge])

    def _as_expected(self, edge: int, stated: Stated) -> ExpectedJob:
        amount, of = expected_job(stated, self.graph.tools[edge], self.graph.output(edge))
        return ExpectedJob(amount, self._classes.setdefault(of, of))


def source_of(output: str, stated: Stated) -> SourceKey:
    """Return what objects have in common that are compiled from one source for several libraries."""
    return output.rpartition("/")[2], round(stated.amount, 4)
