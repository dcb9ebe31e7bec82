"""Memory curves: what a job is expected to hold at each CPU second of its life, and how uncertain that is.

Pure values. Knows nothing of how a curve was learned, of processes, clocks or callers.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import NamedTuple

MAX_POINTS = 16
"""Points kept of a measured curve. nvcc has five passes: cudafe++, cicc's rise and tail, ptxas, cc1plus."""


MAX_REPEATED_POINTS = 48
"""The same for a repeated curve: a start, a peak, a fall and an end for each of twelve rounds."""


GUESSED = 0.5
"""From this spread of size on, an expected size is a guess: of log-normal sizes the upper quartile is twice the lower
one."""


class Point(NamedTuple):
    """The job holds `size` bytes when it has used `age` CPU seconds; `phase` is the compiler pass from here on."""

    age: float
    size: float
    phase: str = ""


@dataclass(frozen=True, slots=True)
class Curve:
    """Memory in bytes over the CPU seconds of a job's life: straight lines between points, nothing before and after.

    `spread` and `time_spread` are relative standard deviations of this job's sizes and duration, independent of other
    jobs. `bias` is the deviation that all jobs of its class share: it is wrong for all of them in the same direction.
    `source` says in a word or two where the curve comes from ("history", "prior nvcc"). `alike` is the number of
    finished jobs of this build whose names begin alike and that it rests on; 0 where it rests on none or on history.
    `gradual`: whatever its size, the job takes memory as it works, as compilers do, and never in a leap. `bound`: the
    sizes are what jobs too short to be measured can have held at most.
    """

    points: tuple[Point, ...]
    spread: float = 0.0
    time_spread: float = 0.0
    bias: float = 0.0
    source: str = ""
    alike: int = 0
    gradual: bool = False
    bound: bool = False
    ages: tuple[float, ...] = field(init=False, repr=False, compare=False)
    sizes: tuple[float, ...] = field(init=False, repr=False, compare=False)
    peak: float = field(init=False, repr=False, compare=False)
    peak_age: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.points or any(a.age > b.age for a, b in zip(self.points, self.points[1:], strict=False)):
            raise ValueError("a curve has points, in the order of their ages")
        # slots and frozen: derived arrays are set once, here, because bisect needs plain sequences.
        object.__setattr__(self, "ages", tuple(p.age for p in self.points))
        object.__setattr__(self, "sizes", tuple(p.size for p in self.points))
        top = max(self.points, key=lambda p: p.size)
        object.__setattr__(self, "peak", top.size)
        object.__setattr__(self, "peak_age", top.age)

    @property
    def duration(self) -> float:
        """CPU seconds of the whole life."""
        return self.ages[-1]

    @property
    def is_guess(self) -> bool:
        """Whether nobody measured such a job, or they differ so much that its peak says little about one of them."""
        return self.bound or self.spread >= GUESSED

    @property
    def mean(self) -> float:
        """Bytes held on average over the whole life."""
        area = sum((b.age - a.age) * (a.size + b.size) / 2 for a, b in pairwise(self.points))
        return area / self.duration if self.duration > 0 else self.peak

    def value(self, age: float) -> float:
        """Return the bytes held at `age`; 0 outside the life."""
        ages, sizes = self.ages, self.sizes
        if age < 0 or age > ages[-1]:
            return 0.0
        right = bisect_right(ages, age)
        if right == 0:
            return sizes[0]
        if right == len(ages):
            return sizes[-1]
        return _between(ages, sizes, right, age)

    def largest(self, start: float, end: float) -> float:
        """Return the largest size at any time from `start` to `end`."""
        first, last = bisect_right(self.ages, start), bisect_right(self.ages, end)
        return max(self.value(start), self.value(end), *self.sizes[first:last], 0.0)

    def still(self, age: float) -> float:
        """Return the largest size at `age` or later."""
        return max(self.value(age), *self.sizes[bisect_right(self.ages, age) :], 0.0)

    def scaled(self, size: float = 1.0, time: float = 1.0) -> Curve:
        """Return the same shape with all sizes and all ages multiplied."""
        return replace(self, points=tuple(Point(p.age * time, p.size * size, p.phase) for p in self.points))

    def widened(self, spread: float, time_spread: float, bias: float = 0.0) -> Curve:
        """Return the same expectation with more uncertainty."""
        return replace(
            self,
            spread=self.spread + spread,
            time_spread=self.time_spread + time_spread,
            bias=self.bias + bias,
        )

    def repeated(self, times: int) -> Curve:
        """Return the same life several times in a row: a compiler that compiles for several GPUs in turn."""
        if times <= 1:
            return self
        points = [Point(p.age + n * self.duration, p.size, p.phase) for n in range(times) for p in self.points]
        return replace(self, points=simplified(points, MAX_REPEATED_POINTS))

    def phase_span(self, phase: str, near: float) -> tuple[float, float] | None:
        """Return the ages at which `phase` begins and ends: of several the span nearest to `near`, None if there is
        none."""
        spans = [s for s in _spans(self.points) if s[2] == phase]
        if not spans:
            return None
        start, end, _ = min(spans, key=lambda s: max(s[0] - near, near - s[1], 0.0))
        return start, end


def _between(ages: Sequence[float], sizes: Sequence[float], right: int, age: float) -> float:
    width = ages[right] - ages[right - 1]
    if width <= 0:
        return sizes[right]
    share = (age - ages[right - 1]) / width
    return sizes[right - 1] + (sizes[right] - sizes[right - 1]) * share


def _spans(points: Sequence[Point]) -> list[tuple[float, float, str]]:
    spans: list[tuple[float, float, str]] = []
    for point, after in zip(points, (*points[1:], points[-1]), strict=True):
        if spans and spans[-1][2] == point.phase:
            spans[-1] = (spans[-1][0], after.age, point.phase)
        else:
            spans.append((point.age, after.age, point.phase))
    return spans


def flat(size: float, seconds: float, source: str = "") -> Curve:
    """Return the curve of a job that holds `size` bytes for all of its `seconds`."""
    return Curve((Point(0.0, size), Point(seconds, size)), source=source)


def simplified(points: Iterable[Point], limit: int = MAX_POINTS) -> tuple[Point, ...]:
    """Keep at most `limit` of the points, with the least area of error (Visvalingam-Whyatt); the peak always stays."""
    kept = list(points)
    if len(kept) <= limit:
        return tuple(kept)
    top = max(range(len(kept)), key=lambda i: kept[i].size)
    before, after = list(range(-1, len(kept) - 1)), list(range(1, len(kept) + 1))
    fixed = {0, top, len(kept) - 1}
    area: dict[int, float] = {}

    def measure(i: int) -> float:
        a, b, c = kept[before[i]], kept[i], kept[after[i]]
        return abs((b.age - a.age) * (c.size - a.size) - (c.age - a.age) * (b.size - a.size))

    heap = []
    for i in range(1, len(kept) - 1):
        if i not in fixed:
            area[i] = measure(i)
            heap.append((area[i], i))
    heapify(heap)
    left = len(kept)
    while left > limit and heap:
        size, i = heappop(heap)
        if area.get(i) != size:
            continue
        del area[i]
        left -= 1
        after[before[i]], before[after[i]] = after[i], before[i]
        for neighbour in (before[i], after[i]):
            if neighbour in area:
                area[neighbour] = measure(neighbour)
                heappush(heap, (area[neighbour], neighbour))
    chosen, i = [], 0
    while i < len(kept):
        chosen.append(kept[i])
        i = after[i]
    return tuple(chosen)
