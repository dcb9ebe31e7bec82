"""The memory curves of running jobs, kept while they run, given away when they have ended.

Pure. Unaware of processes and clocks: ages are CPU seconds, which stand still while a job is frozen or waits.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from stoker.decide.memory.curves import Point, flat, simplified

KEPT = 64
"""Samples kept of a job; at this number they are thinned to half, so an hour costs no more than a minute."""

THINNED = KEPT // 2

BEGINNING = 3.0
"""A record that begins later than at this age has missed the beginning."""

LEAST_GAP, GAP_SHARE = 10.0, 0.25
"""A record with a gap of so many CPU seconds, and this share of the life, may have missed a peak."""

UNSEEN_SECONDS = 2.0
"""A job that ended within this time may have run between two samples; a longer one was missed for another reason."""

UNSEEN_MOST = 1.0
"""CPU seconds that a job between two samples can have used, samples being a second apart."""

GROWTH = 128 * 2**20
"""Bytes that a compiler takes in a CPU second at first: g++ on flash-attention's flash_api.cpp 105 to 130 MiB,
cudafe++ 170 MiB (measured). Nothing more is assumed of what nobody saw."""

BASE = 16 * 2**20
"""Bytes of a shell and a compiler driver."""

MAX_PHASE = 15
"""Characters of a process's name, as the kernel keeps it."""


@dataclass(slots=True)
class _Record:
    points: list[Point] = field(default_factory=list)
    count: int = 0
    gap: float = 0.0
    whole: bool = True


class CurveRecorder:
    """Samples of each running job, thinned as they come."""

    def __init__(self) -> None:
        self._records: dict[int, _Record] = {}

    def sample(self, jid: int, cpu_seconds: float, rss: float, phase: str) -> None:
        """Note that the job has used `cpu_seconds`, holds `rss` bytes, and is in the compiler pass `phase`."""
        record = self._records.setdefault(jid, _Record())
        points = record.points
        point = Point(max(cpu_seconds, 0.0), max(rss, 0.0), phase[:MAX_PHASE])
        if points and point.age <= points[-1].age:
            last = points[-1]
            points[-1] = Point(last.age, max(last.size, point.size), point.phase)
            return
        if points:
            record.gap = max(record.gap, point.age - points[-1].age)
        elif point.age > BEGINNING:
            record.whole = False
        points.append(point)
        record.count += 1
        if len(points) >= KEPT:
            record.points = list(simplified(points, THINNED))

    def adopted(self, jid: int) -> None:
        """Note that the job ran before anybody measured it: it teaches no curve."""
        self._records.setdefault(jid, _Record()).whole = False

    def drop(self, jid: int) -> None:
        """Forget the job."""
        self._records.pop(jid, None)

    def finish(self, jid: int, seconds: float) -> tuple[Point, ...] | None:
        """Return the curve of a job that has ended, None if too much of its life went unseen.

        `seconds` is how long it lived by the clock. A job that ended between two samples was small: it is taken to
        have grown as fast as compilers do, for as long as it can have run.
        """
        record = self._records.pop(jid, None) or _Record()
        points = record.points
        if not record.whole or (not points and seconds > UNSEEN_SECONDS):
            return None
        if not points or points[-1].age <= 0:
            return _unseen(points, seconds)
        if record.gap > max(LEAST_GAP, GAP_SHARE * points[-1].age):
            return None
        return _completed(points, record.count)


def _unseen(points: list[Point], seconds: float) -> tuple[Point, ...]:
    """Guess a curve for a job that was over before a sample could show any CPU use."""
    age = min(max(seconds, 0.0), UNSEEN_MOST)
    held = max((p.size for p in points), default=0.0)
    phase = points[-1].phase if points else ""
    return tuple(p._replace(phase=phase) for p in flat(max(held, BASE + GROWTH * age), max(age, 0.01)).points)


def _completed(points: list[Point], samples: int) -> tuple[Point, ...]:
    """Complete the curve from birth to end. The end came half a step after the last sample, on average; a job that was
    at its largest then has grown on as it did, for a whole step to be safe."""
    first, last = points[0], points[-1]
    begun = points if first.age <= 0 else [Point(0.0, min(first.size, BASE), first.phase), *points]
    step = min(last.age / samples, UNSEEN_MOST)
    growth = 0.0
    if last.size >= max(p.size for p in points):
        before = points[-2] if len(points) > 1 else None
        rate = (last.size - before.size) / (last.age - before.age) if before else GROWTH
        growth = min(rate, GROWTH) * step
    return simplified((*begun, Point(last.age + step / 2, last.size + growth, last.phase)))
