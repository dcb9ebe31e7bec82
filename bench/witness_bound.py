"""Computes the minimum duration of a build short of memory: a bound that knows the curves, by linear programming.

Knows jobs, cores and bytes. Knows neither policies nor what is compared.

The relaxation: jobs of the kinds that take the most memory start in fractions, each followed by its whole curve; all
others are a fluid of memory and cores that may flow at any time. Time is divided into slots, starts into parts of
these; a fraction counts with the least that it can hold in a slot, wherever in its part it starts. Every schedule is
such a plan, so if no plan fits, no schedule does.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from scipy.optimize import linprog
from scipy.sparse import csr_array

from stoker.decide.memory.curves import Point
from stoker.simulate.simulated_machine import lower_bound
from stoker.simulate.trace import TraceJob

SLOTS, PARTS, PLACES = 200, 4, 16
"""Slots of the whole time, parts of a slot, and places of a start that are looked at in each part."""

CLOSE = 0.002
"""The bound is looked for to this share of itself."""

OVERFULL = 1e-6
"""A plan that needs this much more than the machine fits no more: what a solver's tolerances cannot be."""

MOST_KINDS = 12
"""Kinds of jobs that are told apart."""


class Kind(NamedTuple):
    """Jobs of one curve: when they hold how much, and how many there are."""

    points: tuple[Point, ...]
    width: float
    jobs: int


def curve_bound(jobs: Sequence[TraceJob], cores: int, budget: float, most: float) -> float:
    """Return the seconds that no schedule can beat; `most` is what one is known to take. Jobs wait for no others."""
    low, high = lower_bound(jobs, cores, budget), most
    kinds, light = _sorted(jobs)
    while high - low > CLOSE * low:
        middle = (low + high) / 2
        if _fits(kinds, light, cores, budget, middle):
            high = middle
        else:
            low = middle
    return low


def _sorted(jobs: Sequence[TraceJob]) -> tuple[list[Kind], list[TraceJob]]:
    """Return the kinds of jobs that take most memory over time, and the jobs of all others."""
    alike: dict[tuple[tuple[Point, ...], float], list[TraceJob]] = {}
    for job in jobs:
        alike.setdefault((job.points, job.width), []).append(job)
    largest = sorted(alike, key=lambda kind: -sum(job.memory_time for job in alike[kind]))
    kinds = [Kind(points, width, len(alike[points, width])) for points, width in largest[:MOST_KINDS]]
    return kinds, [job for kind in largest[MOST_KINDS:] for job in alike[kind]]


def _fits(kinds: Sequence[Kind], light: Sequence[TraceJob], cores: int, budget: float, seconds: float) -> bool:
    """Whether a plan of so many seconds needs no more than the machine has."""
    slot = seconds / SLOTS
    cells: list[tuple[float, int, int]] = []
    columns = 0
    for number, kind in enumerate(kinds):
        used = _used(kind, slot)
        last = int((seconds - kind.points[-1].age / kind.width) / slot * PARTS)
        for start in range(last + 1):
            cells.append((1.0, 2 * SLOTS + 2 + number, columns))
            for row, (size, width) in enumerate(used[start % PARTS], start // PARTS):
                if row < SLOTS:
                    cells += [(size / budget, row, columns), (width / cores, SLOTS + row, columns)]
            columns += 1
        if last < 0:
            return False
    # What flows in each slot, and by how much the machine is overfull.
    memory = sum(j.memory_time for j in light) / (budget * slot)
    work = sum(j.cpu for j in light) / (cores * slot)
    for row in range(2 * SLOTS):
        cells += [(1.0, row, columns), (1.0, 2 * SLOTS + row // SLOTS, columns)]
        columns += 1
    cells += [(-1.0, row, columns) for row in range(2 * SLOTS)]
    return _overfull(cells, columns, [memory, work, *(float(kind.jobs) for kind in kinds)]) <= OVERFULL


def _overfull(cells: Sequence[tuple[float, int, int]], last: int, wanted: Sequence[float]) -> float:
    """Return the least share by which the fullest slot is fuller than the machine; the `last` column says by what."""
    values, rows, columns = zip(*cells, strict=True)
    matrix = csr_array((values, (rows, columns)), shape=(2 * SLOTS + len(wanted), last + 1))
    slots = 2 * SLOTS
    found = linprog(
        [0.0] * last + [1.0],
        A_ub=matrix[:slots],
        b_ub=[1.0] * slots,
        A_eq=matrix[slots:],
        b_eq=wanted,
        method="highs-ipm",
    )
    if found.status != 0:
        raise RuntimeError(found.message)
    return float(found.fun)


def _used(kind: Kind, slot: float) -> list[list[tuple[float, float]]]:
    """Return the least bytes and cores in use in each slot from the start on, for a start in each part of a slot."""
    ages = [p.age / kind.width for p in kind.points]
    areas = [0.0]
    for before, after in pairwise(kind.points):
        areas.append(areas[-1] + (after.age - before.age) / kind.width * (before.size + after.size) / 2)

    def area(age: float) -> float:
        """Bytes times seconds up to an age."""
        if age <= 0 or age >= ages[-1]:
            return 0.0 if age <= 0 else areas[-1]
        left = bisect_right(ages, age) - 1
        share = (age - ages[left]) / (ages[left + 1] - ages[left])
        before, after = kind.points[left].size, kind.points[left + 1].size
        return areas[left] + (age - ages[left]) * (before + (before + share * (after - before))) / 2

    peak = max(p.size for p in kind.points)
    doubt = peak / (2 * PLACES * PARTS)
    rows = int(ages[-1] / slot) + 2
    found = []
    for part in range(PARTS):
        lives = []
        for row in range(rows):
            places = [(row - (part + place / PLACES) / PARTS) * slot for place in range(PLACES + 1)]
            sizes = [(area(p + slot) - area(p)) / slot for p in places]
            spans = [max(0.0, min(p + slot, ages[-1]) - max(p, 0.0)) / slot for p in places]
            # Between two places what is held on average changes by no more than this.
            lives.append((max(0.0, min(sizes) - doubt), kind.width * min(spans)))
        found.append(lives)
    return found
