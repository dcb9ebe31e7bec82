"""How long a build will still take, as a middle and a band: a rule of three over expected seconds instead of jobs.

What is left, in expected seconds of single jobs, over the number of jobs that have run at once so far; but never less
than the longest chain of groups of jobs that wait for each other. Pure. Unaware of clocks, of ninja and of screens.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from stoker.decide.time_left.durations import OUTLIVED, OUTLIVED_STATED, Class, Durations, ExpectedJob
from stoker.model.events import Estimated
from stoker.model.state import BuildState

ORDER = 0.25
"""Where between the best case and the worst a scheduler ends that knows nothing of durations: over 200 random builds on
1 to 64 cores, played as ninja would, the mean error is then below 6 % at every width."""

Z_80_PERCENT = 1.28
"""Standard deviations on either side of the mean that hold 80 % of a normal distribution."""

LEAST_DOUBT = 0.12
"""The band never claims more: other work on the machine, the disk, and the last jobs of a build, which differ."""

WEIGHED_DOUBT, SINGLE_DOUBT = 0.8, 0.3
"""How far single jobs are from what is expected of their class, where only weights are known and where seconds were
stated: this averages out over many."""

NARROW_FROM, NARROW = 0.25, 2.0
"""From this share of the build on the high end is at most so many times the low one, if earlier estimates of this build
were no further off. Before that the band widens with BAND_POWER of the share."""

BAND_POWER = 0.75

WIDENED = 2.0
"""How much wider the band may be, as a power, where they were."""

KEPT_ESTIMATES = 64

COUNTED_SPREAD = 1.5
"""Where jobs or percent are merely counted: half as much again either way covers jobs of unlike length."""


@dataclass(slots=True)
class Left:
    """What is left of a build, in seconds of single jobs, summed up job by job.

    `longest` and `work` have for each group of the plans its longest job and all of them; `held` is the bytes that
    jobs hold times their seconds.
    """

    seconds: float = 0.0
    variance: float = 0.0
    held: float = 0.0
    by_class: dict[Class, float] = field(default_factory=dict)
    longest: dict[int, float] = field(default_factory=dict)
    work: dict[int, float] = field(default_factory=dict)

    def add(self, of: Class, group: int, seconds: float, held: float) -> None:
        """Count in a job of the group `group` that needs `seconds` and holds `held` bytes on average."""
        self.seconds += seconds
        single = WEIGHED_DOUBT if of.by == "size" else SINGLE_DOUBT
        self.variance += (single * seconds) ** 2
        self.held += seconds * held
        self.by_class[of] = self.by_class.get(of, 0.0) + seconds
        self.work[group] = self.work.get(group, 0.0) + seconds
        if seconds > self.longest.get(group, 0.0):
            self.longest[group] = seconds


def remainder(job: ExpectedJob, age: float, durations: Durations) -> float:
    """Return the seconds that a job still needs which has run for `age` seconds."""
    outlived = OUTLIVED if job.of.by == "size" else OUTLIVED_STATED
    return max(durations.seconds(job) - age, outlived * age)


def longest_path(left: Left, deps: Sequence[Sequence[int]], width: float = math.inf) -> float:
    """Return the seconds of the longest chain of groups; `deps` are for each group the numbers of those before it, all
    lower.

    A group takes as long as its longest job, and at least as long as all its jobs on `width` places.
    """
    ends: list[float] = []
    for group, before in enumerate(deps):
        own = max(left.longest.get(group, 0.0), left.work.get(group, 0.0) / width)
        ends.append(max((ends[d] for d in before), default=0.0) + own)
    return max(ends, default=0.0)


def ways_to_end(left: Left, deps: Sequence[Sequence[int]]) -> list[float]:
    """Return for each group the seconds of the longest chain of groups that waits for it; `deps` as above."""
    ways = [0.0] * len(deps)
    for group in range(len(deps) - 1, -1, -1):
        through = ways[group] + left.longest.get(group, 0.0)
        for before in deps[group]:
            ways[before] = max(ways[before], through)
    return ways


def time_left(
    left: Left,
    deps: Sequence[Sequence[int]],
    durations: Durations,
    *,
    width: float,
    done: float,
    memory: float = math.inf,
    off: Callable[[float], float] = lambda _seconds: 0.0,
) -> Estimated:
    """Estimate how long it takes where `width` jobs, 1 or more, run at once and hold at most `memory` bytes.

    `done` seconds of jobs are behind: the band narrows with the share that is done. `off` says by how much earlier
    estimates were off if so many seconds are left (PastEstimates.off).
    """
    if left.seconds <= 0.0:
        return Estimated(0.0, 0.0, 0.0)
    work = left.seconds / width
    best = max(work, longest_path(left, deps, width), left.held / memory)
    worst = max(best, work + (1.0 - 1.0 / width) * longest_path(left, deps))
    middle = best + ORDER * (worst - best)
    narrow = _narrow(done / (done + left.seconds))
    doubt = min(Z_80_PERCENT * _doubt(left, durations), narrow)
    factor = math.exp(max(doubt, min(Z_80_PERCENT * off(middle), WIDENED * narrow)))
    return Estimated(middle, max(0.0, min(middle / factor, middle - 1.0)), max(middle * factor, middle + 1.0))


def _doubt(left: Left, durations: Durations) -> float:
    """Standard deviation of the logarithm: what a class's jobs have in common does not average out."""
    shared = sum(seconds * durations.doubt(of) for of, seconds in left.by_class.items()) / left.seconds
    return math.hypot(shared, math.sqrt(left.variance) / left.seconds, LEAST_DOUBT)


def _narrow(share: float) -> float:
    """Return the logarithm of the widest factor either way once this share of the build is done, if all goes well."""
    early = math.pow(NARROW_FROM / max(share, 1e-6), BAND_POWER)
    return math.log(NARROW) / 2 * max(1.0, early)


class PastEstimates:
    """The estimates of a build so far, thinned out as they become many."""

    def __init__(self) -> None:
        self._made: list[tuple[float, float]] = []
        self._apart = 0.0

    def add(self, clock: float, seconds: float) -> None:
        """Note that `seconds` were left at `clock`, the seconds for which the build has been at work."""
        if not self._made or clock >= self._made[-1][0] + self._apart:
            self._made.append((clock, seconds))
        if len(self._made) >= KEPT_ESTIMATES:
            self._made = self._made[::2]
            self._apart = clock / len(self._made)

    def off(self, clock: float, seconds: float) -> float:
        """Return by how much they were off if `seconds` are left now (root of the mean square of the logarithms).

        Each counts by the share of its time that has passed: the rest is an estimate itself. A second is no error.
        """
        squares = known = 0.0
        for then, said in self._made:
            passed = max(0.0, clock - then)
            weight = passed / (passed + seconds + 1.0)
            squares += weight * math.log((said + 1.0) / (passed + seconds + 1.0)) ** 2
            known += weight
        return math.sqrt(squares / known) if known else 0.0


def counted(state: BuildState, now: float) -> Estimated | None:
    """Estimate the time left where nobody knows who waits for whom: percent and jobs go on as they did so far."""
    tops = [s for s in state.schedulers.values() if s.ended is None and s.parent is None]
    elapsed = now - min((s.started for s in tops), default=now)
    shares: list[float] = []
    for s in tops:
        if s.plan is not None and s.plan.percent:
            shares.append(s.plan.percent / 100)
        elif s.plan is not None and s.plan.total:
            shares.append((s.finished + s.failed) / s.plan.total)
    if not shares or len(shares) < len(tops) or min(shares) <= 0.0:
        return None
    left = max(0.0, elapsed * (1.0 / min(shares) - 1.0))
    return Estimated(round(left, 1), round(left / COUNTED_SPREAD, 1), round(left * COUNTED_SPREAD, 1))
