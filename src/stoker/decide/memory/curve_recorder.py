"""Records the memory curves of running jobs, and returns each when its job has ended.

Pure. Knows no process and no clock: ages are CPU seconds, which stand still while a job is frozen or waits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from stoker.decide.memory.curves import Point, flat, simplified
from stoker.decide.memory.seen_growth import BASE, GROWTH, LEAST_SPAN, Kind, SeenGrowth
from stoker.model.tool import COMPILERS

KEPT = 64
"""Samples kept per job; at this number they are thinned to half, so an hour costs no more than a minute."""

THINNED = KEPT // 2

BEGINNING = 3.0
"""A record that begins after this age has missed the beginning."""

LEAST_GAP, GAP_SHARE = 10.0, 0.25
"""A record with a gap of so many CPU seconds, and of this share of the job's life, may have missed a peak."""

UNSEEN_SECONDS = 2.0
"""A job that ended within this time may have run between two samples; a longer one was missed for another reason."""

UNSEEN_SHARE = 0.5
"""If a job ran for at least this share of its life after its last sample, its samples show only the beginning."""

SHRUNK = 0.5
"""A compiler that holds less than this share of what it held before has ended a pass."""

SURE = 1.5
"""A job that may have held more than this multiple of what was seen of it is not measured."""

UNSEEN_MOST = 1.0
"""CPU seconds that a job can have used between two samples, which are a second apart."""

GROWS = frozenset({"cxx", "nvcc", "link"})
"""Tools that are assumed to grow where nobody looked; a script or an archiver holds next to nothing between samples."""

LEAST_AGE = 0.01
"""CPU seconds of a job that used too few to be counted: the resolution of the kernel's count."""

LEAST_HELD = 4096.0
"""Bytes of a process that shares all of its memory with others, so that none counts as its own."""

MAX_PHASE = 15
"""Characters of a process name, as stored by the kernel."""


class RecordedCurve(NamedTuple):
    """What a job held during its life. `guessed`: too little was observed, so a bound replaces the samples; `brief`:
    what was not observed is short, which makes the bound a sure one."""

    points: tuple[Point, ...]
    guessed: bool = False
    brief: bool = False


@dataclass(slots=True)
class _Record:
    points: list[Point] = field(default_factory=list)
    count: int = 0
    ran: float = 0.0
    gap: float = 0.0
    whole: bool = True


class CurveRecorder:
    """Samples of each running job, thinned as they arrive. `grown` is what measured jobs show about unseen ones."""

    def __init__(self) -> None:
        self._records: dict[int, _Record] = {}
        self.grown = SeenGrowth()

    def sample(self, jid: int, cpu_seconds: float, rss: float, phase: str, ran: float) -> None:
        """Note that the job has used `cpu_seconds`, holds `rss` bytes, and is in the compiler pass `phase`.

        `ran` is how many seconds by the clock it has run for, without the time on deck; 0 until it is released.
        """
        record = self._records.setdefault(jid, _Record())
        record.ran = max(record.ran, ran)
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

    def finish(self, jid: int, kind: Kind, seconds: float) -> RecordedCurve | None:
        """Return the curve of a job that has ended, None if too much of its life was not observed.

        `seconds` is how long it ran in wall-clock time. A job that ended between two samples was small: the guess is
        that it grew as fast as jobs of its kind do, for as long as it can have run.
        """
        record = self._records.pop(jid, None) or _Record()
        points, tool = record.points, kind[0]
        if not record.whole or (not points and seconds > UNSEEN_SECONDS):
            return None
        seen = record.ran > 0 and seconds - record.ran < UNSEEN_SHARE * seconds
        brief = not seen and seconds <= UNSEEN_MOST
        if points and points[-1].age > 0 and not brief:
            if record.gap > max(LEAST_GAP, GAP_SHARE * points[-1].age):
                return None
            missed = self._missed_peak(points, kind) if tool in GROWS and record.count < KEPT else 0.0
            if seen and missed:
                return RecordedCurve(_level(points, missed, points[-1].age), guessed=True, brief=True)
            if not seen and (unseen := seconds - record.ran) <= UNSEEN_SECONDS:
                return self._bound_of_rest(points, kind, unseen)
            completed = self._completed(record, kind, seconds)
            beyond = max(p.size for p in completed) > SURE * max(p.size for p in points)
            return RecordedCurve(completed, guessed=not seen or beyond, brief=seen)
        if points and seen and tool not in GROWS:
            return RecordedCurve(_level(points, max(LEAST_HELD, *(p.size for p in points)), LEAST_AGE))
        return self._bound(points, kind, seconds)

    def never_seen(self, kind: Kind, seconds: float) -> RecordedCurve:
        """Return the curve of a job that only its scheduler's record reports: it ran between two looks."""
        return self._bound([], kind, seconds)

    def _missed_peak(self, points: list[Point], kind: Kind) -> float:
        """Return what a compiler held at most if its peak fell between two samples, 0 if the samples show its growth.

        They lie before and behind the peak if most of its life is between them and it was small again at the second:
        the assembler ran by then, or only the driver was left. A compiler that computed, and of which only the driver
        was ever seen, has held more in between as well.
        """
        course = list(pairwise((Point(0.0, 0.0, ""), *points)))
        largest = max(p.size for p in points)
        if kind[0] in COMPILERS and largest < BASE and points[-1].age >= LEAST_SPAN:
            gap = max(after.age - before.age for before, after in course)
            return self._grown(points, BASE, kind, min(gap, UNSEEN_MOST), points[-1].age)
        for before, after in course:
            gap, held = after.age - before.age, max(before.size, BASE)
            if gap > UNSEEN_SHARE * points[-1].age and after.size < SHRUNK * held:
                return self._grown(points, held, kind, min(gap, UNSEEN_MOST), points[-1].age)
        return 0.0

    def _bound(self, points: list[Point], kind: Kind, seconds: float) -> RecordedCurve:
        """Bound what a job held that was over before a sample could show any CPU use."""
        age = min(max(seconds, 0.0), UNSEEN_MOST)
        level = _level(points, self._grown(points, BASE, kind, age, age), max(age, LEAST_AGE))
        return RecordedCurve(level, guessed=True, brief=seconds <= UNSEEN_MOST)

    def _bound_of_rest(self, points: list[Point], kind: Kind, seconds: float) -> RecordedCurve:
        """Bound what a job held that was measured at first, and then not for so many seconds until its end."""
        held, age = max(p.size for p in points), points[-1].age + seconds
        bound = self._grown(points, held, kind, seconds, age)
        return RecordedCurve(_level(points, bound, age), guessed=True, brief=True)

    def _grown(self, points: list[Point], start: float, kind: Kind, unseen: float, age: float) -> float:
        """Return what a job that lived for `age` seconds held at most if it grew from `start` for so many `unseen`
        seconds: no more than similar jobs, and no less than was seen."""
        if kind[0] not in GROWS:
            return max([start, *(p.size for p in points)])
        bound = min(start + self.grown.rate(kind) * unseen, self.grown.most(kind, age))
        return max([bound, *(p.size for p in points)])

    def _completed(self, record: _Record, kind: Kind, seconds: float) -> tuple[Point, ...]:
        """Complete the curve from birth to end. The end came half a step after the last sample, on average, or as much
        later as the job ran on; one that was at its largest then has grown on as it did until its end."""
        points = record.points
        first, last = points[0], points[-1]
        begun = points if first.age <= 0 else [Point(0.0, min(first.size, BASE), first.phase), *points]
        step = min(last.age / record.count, UNSEEN_MOST)
        held = last.size
        if held >= max(p.size for p in points):
            unseen = max(step / 2, min(seconds - record.ran, UNSEEN_MOST))
            held = max(held, min(held + self._last_rate(points, kind) * unseen, self.grown.most(kind, last.age)))
        return simplified((*begun, Point(last.age + step / 2, held, last.phase)))

    def _last_rate(self, points: list[Point], kind: Kind) -> float:
        """Return the bytes per CPU second that a job took at last, as far as its samples show it."""
        if len(points) > 1:
            before, last = points[-2:]
            return min((last.size - before.size) / (last.age - before.age), GROWTH)
        # A single one shows only a mean: compilers read sources first, and grow faster later.
        return self.grown.rate(kind) if kind[0] in GROWS else 0.0


def _level(points: list[Point], held: float, seconds: float) -> tuple[Point, ...]:
    """Return a curve that holds the same all the time, in the pass that was last seen."""
    phase = points[-1].phase if points else ""
    return tuple(p._replace(phase=phase) for p in flat(held, seconds).points)
