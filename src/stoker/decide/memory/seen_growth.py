"""How fast the jobs of a kind were seen to take memory, and what they held: it bounds a job that nobody saw.

Pure. A kind is a tool with the same flags; knows neither processes nor where measurements come from.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple

from stoker.decide.memory.curves import Point

BASE = 16 * 2**20
"""Bytes of a shell and a compiler driver."""

GROWTH = 128 * 2**20
"""Bytes that a compiler takes per CPU second at first: g++ on flash-attention's flash_api.cpp 105 to 130 MiB, cudafe++
170 MiB (measured). No faster growth is assumed where nobody looked."""

FASTEST: Mapping[str, float] = MappingProxyType({"nvcc": 200 * 2**20})
"""The same for tools that grow faster: cicc, the largest pass of nvcc, up to 200 MiB (measured)."""

LEAST_SPAN = 0.4
"""CPU seconds. A compiler takes memory in steps; over a shorter time a single step would look like fast growth."""

MARGIN = 1.5
"""What is assumed of an unseen job, as a multiple of what was seen of others. Memory in use is watched, so a bound that
is a little too low costs a freeze; one that is far too high keeps jobs waiting in every build."""

ENOUGH = 3
"""Measured jobs of a kind that are needed to say something about one more."""

NEAREST = 5
"""So many jobs of the most similar duration bound what a job held."""

SIMILAR = 4.0
"""Jobs that took longer than the unseen one by more than this factor say nothing about it, nor do those that took less
than half as long."""

MAX_JOBS, MAX_KINDS = 64, 256
"""Jobs kept of each kind, and kinds."""

Kind = tuple[str, str]
"""A tool, and a digest of the flags that matter."""


class _Course(NamedTuple):
    seconds: float
    peak: float
    growth: float


@dataclass(slots=True)
class SeenGrowth:
    """What measured jobs showed, by kind and, for kinds of which few were measured, by tool."""

    _by_kind: dict[Kind, deque[_Course]] = field(default_factory=dict)

    def count(self, kind: Kind) -> int:
        """Return how many measured jobs of a kind are kept."""
        return len(self._by_kind.get(kind, ()))

    def note(self, kind: Kind, points: Sequence[Point]) -> None:
        """Add a job that was measured well: these samples, from its birth to its end."""
        if not points or points[-1].age <= 0:
            return
        course = _Course(points[-1].age, max(p.size for p in points), growth_of(points))
        for key in dict.fromkeys((kind, (kind[0], ""))):
            if key not in self._by_kind and len(self._by_kind) >= MAX_KINDS:
                del self._by_kind[next(iter(self._by_kind))]
            self._by_kind.setdefault(key, deque(maxlen=MAX_JOBS)).append(course)

    def rate(self, kind: Kind) -> float:
        """Return the bytes per CPU second that an unseen job of a kind may have taken."""
        seen = self._enough(kind) or self._enough((kind[0], ""))
        fastest = FASTEST.get(kind[0], GROWTH)
        return min(fastest, MARGIN * max(course.growth for course in seen)) if seen else fastest

    def most(self, kind: Kind, seconds: float) -> float:
        """Return the bytes that an unseen job of this duration held at most, by similar ones; infinite if too few are
        known."""
        similar = [c for c in self._enough(kind) if seconds / 2 <= c.seconds <= SIMILAR * seconds]
        if len(similar) < ENOUGH:
            return math.inf
        similar.sort(key=lambda course: abs(math.log(course.seconds / max(seconds, LEAST_SPAN))))
        return MARGIN * max(course.peak for course in similar[:NEAREST])

    def _enough(self, kind: Kind) -> Sequence[_Course]:
        seen = self._by_kind.get(kind, ())
        return list(seen) if len(seen) >= ENOUGH else ()


def growth_of(points: Iterable[Point]) -> float:
    """Return the fastest growth from one sample to the next, in bytes per CPU second.

    Below BASE there is only the driver, which has not begun.
    """
    course = [Point(0.0, BASE), *(Point(p.age, max(p.size, BASE)) for p in points)]
    return max(((b.size - a.size) / max(b.age - a.age, LEAST_SPAN) for a, b in pairwise(course)), default=0.0)
