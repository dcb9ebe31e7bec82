"""How large a demo must be to take its time, and how little memory makes its jobs compete. Pure arithmetic, unaware of
files.

The costs were measured with g++ 12 -O1 on a 2.x GHz server core; they need not be exact, only bounded: sizes are
rounded up by about a third.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, cycle, islice

MIB = 2**20

CXX_BUDGET = 800 * MIB
"""What the C++ demo allows itself on any machine: room for one large compilation, and not for two. With less a
compiler's own 120 MiB leave too little to grow by: Python work takes what it is given."""

PYTHON_BUDGET = 480 * MIB

CXX_SHARE, PYTHON_SHARE = 0.6, 0.5
"""Share of the budget that the largest job takes; for C++ by our rounded figures, in truth about a half. With more, a
stopped job that holds a third might have to be killed for it."""

HEAVY_SECONDS_BASE, HEAVY_SECONDS = 0.5, 0.17
HEAVY_MIB_BASE, HEAVY_MIB = 120, 10
"""CPU seconds and peak of a kernel source: a base, and the cost of each of its template instantiations."""

MOST_SIZE, LEAST_SIZE = 60, 4
MOST_HEAVY, LEAST_HEAVY = 96, 4

PYTHON_MIB = 24
"""Python with our few modules, rounded up from 12, and the 8 that a job without a kernel takes."""

PYTHON_LIGHT_SHARE = 0.125
"""Of a heavy Python job's CPU time, what another takes."""

TOGETHER = 1.1
"""Jobs that get on side by side: the budget has room for one at its peak and the beginning of another."""

FIRST_SHARE = 0.13
"""Size of the first kernel, as a share of the largest: after it the next are heavier than they look."""

_UNEVEN = (1.0, 0.9, 1.0, 0.85, 0.95, 0.8)
"""Sizes of the others, in turn: uneven as in life."""

OPENING_SHARE = 0.5
"""Share of the budget that each of the two large jobs of the opening takes: above the reserve there is room for one,
and not for two. With more, the one that is stopped late might have to be killed for the other."""

OPENING_SECONDS, OPENING_TIME_SHARE = 2.0, 0.05
"""CPU seconds of each: at most so many, and at most this share of the whole demo."""


@dataclass(frozen=True, slots=True)
class DemoPlan:
    """How many sources of each kind. `heavy` holds each kernel's size: instantiations, or MiB for Python work.

    `budget` is the memory in bytes for which its jobs are to fight. Each large job of the opening takes
    `opening_seconds` of CPU time.
    """

    light: int
    medium: int
    heavy: tuple[int, ...]
    budget: int
    opening_seconds: float
    seconds_each: float = 0.0

    @property
    def opening_mib(self) -> int:
        """MiB of each large job of the opening."""
        return int(OPENING_SHARE * self.budget / MIB) - PYTHON_MIB


def heavy_memory(size: int) -> int:
    """Return the peak bytes of compiling a kernel of `size` instantiations, rounded up."""
    return (HEAVY_MIB_BASE + HEAVY_MIB * size) * MIB


def cxx_plan(seconds: float, budget: int) -> DemoPlan:
    """Size a C++ project of about `seconds` whose jobs fight for at most `budget` bytes; for less if it is short."""
    light, medium = _bounded(0.2 * seconds, 3, 8), _bounded(0.1 * seconds, 1, 3)
    work = TOGETHER * seconds - 2 * _opening_seconds(seconds)
    full = (CXX_SHARE * budget / MIB - HEAVY_MIB_BASE) / HEAVY_MIB
    few = sum(_heavy_seconds(share * full) for share in _shares(LEAST_HEAVY))
    largest = _bounded(min(1.0, work / few) * full, LEAST_SIZE, MOST_SIZE)
    heavy: list[int] = []
    for share in _shares(MOST_HEAVY):
        if len(heavy) >= LEAST_HEAVY and work <= 0:
            break
        heavy.append(_bounded(share * largest, LEAST_SIZE, largest))
        work -= _heavy_seconds(heavy[-1])
    budget = min(budget, int(heavy_memory(largest) / CXX_SHARE))
    return DemoPlan(light, medium, tuple(heavy), budget, _opening_seconds(seconds))


def _heavy_seconds(size: float) -> float:
    return HEAVY_SECONDS_BASE + HEAVY_SECONDS * size


def python_plan(seconds: float, budget: int) -> DemoPlan:
    """Size the same shape as Python work, its memory just as it must be."""
    light, medium, count = 12, 4, _bounded(seconds / 4, 6, 48)
    most = _bounded(PYTHON_SHARE * budget / MIB - PYTHON_MIB, 16, 600)
    heavy = tuple(max(16, int(share * most)) for share in _shares(count))
    each = (TOGETHER * seconds - 2 * _opening_seconds(seconds)) / (count + PYTHON_LIGHT_SHARE * (light + medium + 4))
    return DemoPlan(light, medium, heavy, budget, _opening_seconds(seconds), each)


def _opening_seconds(seconds: float) -> float:
    return min(OPENING_SECONDS, OPENING_TIME_SHARE * seconds)


def _shares(count: int) -> Iterator[float]:
    """Yield the sizes of so many kernels, as shares of the largest."""
    return islice(chain((FIRST_SHARE,), cycle(_UNEVEN)), count)


def _bounded(value: float, low: int, high: int) -> int:
    return max(low, min(high, int(value)))
