"""Groups the tasks of a graph, so that a forecast need not go through each of 10,000 compiles.

Pure: tasks in, groups out. Unaware of ninja and of durations.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from stoker.sense.ninja.graph_reader import GraphError, Task

MAX_GROUPS = 1_200
"""Groups given to the engine, which goes through all of them at every forecast: 15 ms for that many."""

MAX_DEPS = 50_000
"""Pairs of groups of which one waits for the other; each costs the forecast 0.1 µs."""


@dataclass(frozen=True, slots=True)
class Groups:
    """The group of each task, and the groups that each group waits for, all with lower numbers.

    `exact`: every task of a group waits for every task of these.
    """

    of_task: Sequence[int]
    deps: Sequence[Sequence[int]]
    exact: bool


def grouped(tasks: Sequence[Task]) -> Groups:
    """Tasks that wait for the same and are waited for by the same share a group: the objects of one library.

    If that leaves more than MAX_GROUPS, tasks share one that are only in a similar position: at the same depth, between
    groups in similar positions. Raises GraphError if even that is too many.
    """
    dependents = _dependents(tasks)
    keys: list[Hashable] = [
        (task.deps, dependents[number]) if task.outputs else number for number, task in enumerate(tasks)
    ]
    exact = len(set(keys)) <= MAX_GROUPS
    if not exact:
        keys = _standing_alike(tasks, dependents)
    numbers: dict[Hashable, int] = {}
    of_task = [0] * len(tasks)
    for number in sorted(range(len(tasks)), key=lambda n: tasks[n].depth):
        of_task[number] = numbers.setdefault(keys[number], len(numbers))
    deps: list[set[int]] = [set() for _ in numbers]
    for number, task in enumerate(tasks):
        deps[of_task[number]].update(of_task[d] for d in task.deps)
    if sum(map(len, deps)) > MAX_DEPS:
        raise GraphError(f"its groups wait for each other in more than {MAX_DEPS} ways")
    return Groups(of_task, [sorted(d) for d in deps], exact)


def _dependents(tasks: Sequence[Task]) -> list[frozenset[int]]:
    found: list[set[int]] = [set() for _ in tasks]
    for number, task in enumerate(tasks):
        for dep in task.deps:
            found[dep].add(number)
    return [frozenset(f) for f in found]


def _standing_alike(tasks: Sequence[Task], dependents: Sequence[frozenset[int]]) -> list[Hashable]:
    """Refine by depth and by the neighbours' groups, repeatedly, while there are few enough groups."""
    now = _numbered([(task.depth, bool(task.outputs)) for task in tasks])
    if max(now, default=0) >= MAX_GROUPS:
        raise GraphError(f"it is more than {MAX_GROUPS} edges deep")
    while True:
        finer = _numbered(
            [
                (now[n], frozenset(now[d] for d in task.deps), frozenset(now[d] for d in dependents[n]))
                for n, task in enumerate(tasks)
            ]
        )
        if max(finer) >= MAX_GROUPS or max(finer) == max(now):
            return list(now)
        now = finer


def _numbered(keys: Sequence[Hashable]) -> list[int]:
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(key, len(numbers)) for key in keys]
