"""What is left of one plan: which edges wait, run or are done, and what was stated for each.

Unaware of clocks, of processes and of the journal.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping

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

WAITING, RUNNING, DONE, BLOCKED = range(4)
"""Blocked: it waits for an edge that has failed, so its scheduler will not start it."""

SourceKey = tuple[str, float]
"""Returns the name of an output file, and the weight that follows from its source's size."""


class Remaining:
    """The edges of a plan that have not ended."""

    def __init__(self, graph: PlanGraph) -> None:
        self.graph = graph
        self.left = len(graph)
        self.blocked = 0
        """How many edges wait for one that has failed; they are not among those left."""
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
        self._failed: set[int] = set()
        self._killed: set[int] = set()
        self._blocked = bytearray(len(graph.deps))
        self._after: list[list[int]] = [[] for _ in graph.deps]
        for group, before in enumerate(graph.deps):
            for other in before:
                self._after[other].append(group)
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
        if self._state[edge] == BLOCKED:  # nothing that it waits for has failed after all
            self._forget_failures({e for e in self._failed if self._waits_for(self.graph.groups[edge], e)})
        if self._state[edge] == WAITING:
            self._state[edge] = RUNNING
            self._clear_before(self.graph.groups[edge])

    def finish(self, edge: int) -> None:
        """The edge has ended."""
        self._forget_failures({edge})
        if self._state[edge] != DONE:
            self.begin(edge)
            self._state[edge] = DONE
            self.left -= 1

    def fail(self, edge: int) -> None:
        """The edge has failed. What waits for it will not run, if the groups say what that is."""
        self.finish(edge)
        if self.graph.exact:
            self._failed.add(edge)
            self._block_after(self.graph.groups[edge])

    def waits(self, edge: int) -> bool:
        """Say whether the edge has not begun, as far as is known."""
        return self._state[edge] == WAITING

    def put_back(self, edge: int) -> None:
        """The edge was killed: it will run again."""
        self._forget_failures({edge})
        self.left += self._state[edge] == DONE
        self._state[edge] = WAITING
        self._killed.add(edge)
        self.broken_off = True

    def give_up_killed(self) -> None:
        """The step does not run again after all: the scheduler takes killed edges for failed ones."""
        for edge in self._killed:
            if self._state[edge] == WAITING:
                self.fail(edge)
        self._killed.clear()

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

    def _block_after(self, group: int) -> None:
        stack = list(self._after[group])
        while stack:
            group = stack.pop()
            if self._blocked[group]:
                continue
            self._blocked[group] = True
            stack += self._after[group]
            self._turn(WAITING, BLOCKED, self._members[group])

    def _forget_failures(self, edges: set[int]) -> None:
        """These edges have not failed after all, or will run again."""
        if self._failed.isdisjoint(edges):
            return
        self._failed -= edges
        self._turn(BLOCKED, WAITING, range(len(self.graph)))
        self._blocked = bytearray(len(self.graph.deps))
        for edge in self._failed:
            self._block_after(self.graph.groups[edge])

    def _turn(self, old: int, new: int, edges: Iterable[int]) -> None:
        """Give the state `new`, blocked or waiting, to those of these edges that have the state `old`, the other."""
        turned = [edge for edge in edges if self._state[edge] == old]
        for edge in turned:
            self._state[edge] = new
        self.blocked += len(turned) if new == BLOCKED else -len(turned)
        self.left -= len(turned) if new == BLOCKED else -len(turned)

    def _waits_for(self, group: int, edge: int) -> bool:
        """Say whether a group waits for this edge, directly or not."""
        goal, seen, stack = self.graph.groups[edge], {group}, [group]
        while stack:
            before = [d for d in self.graph.deps[stack.pop()] if d not in seen]
            if goal in before:
                return True
            seen.update(before)
            stack += before
        return False

    # -- what is left ------------------------------------------------------------------------------------------

    @property
    def needs_scale(self) -> bool:
        """Say whether only a weight is known for some edge."""
        states = zip(self._expected, self._state, strict=True)
        return any(job.of.by == "size" and state not in (DONE, BLOCKED) for job, state in states)

    def with_remembered(self, found: Took) -> Took:
        """Return it with what edges that wait weigh, and the seconds that they are remembered to take."""
        for job, state, amount in zip(self._expected, self._state, self._weights, strict=True):
            if state == WAITING and job.of.by in REMEMBERED:
                found = found.plus(amount, job.stated)
        return found

    def add_to(self, left: Left, running: Mapping[int, RunSoFar], durations: Durations, first: int) -> None:
        """Sum up what is left. Groups are numbered from `first`."""
        for edge, state in enumerate(self._state):
            if state == WAITING:
                self._add(left, edge, durations.seconds(self._expected[edge]), durations, first)
        for edge, run in running.items():
            self._add(left, edge, durations.remainder(self._expected[edge], run), durations, first)

    def _add(self, left: Left, edge: int, seconds: float, durations: Durations, first: int) -> None:
        job, group = self._expected[edge], first + self.graph.groups[edge]
        seen, unsure = durations.seen(job), durations.unsure(job)
        left.add(job, group, seconds, self._held[edge], seen=seen, unsure=unsure)

    def _as_expected(self, edge: int, stated: Stated) -> ExpectedJob:
        amount, of = expected_job(stated, self.graph.tools[edge], self.graph.output(edge))
        return ExpectedJob(amount, self._classes.setdefault(of, of))


def source_of(output: str, stated: Stated) -> SourceKey:
    """Return what objects have in common that are compiled from one source for several libraries."""
    return output.rpartition("/")[2], round(stated.amount, 4)
