"""Estimates the remaining time of a build, as a middle and a band: a rule of three over expected seconds, not jobs.

The remaining work, in expected seconds of single jobs, is divided by the number of jobs that have run at once so far;
the result is never less than the longest chain of groups of jobs that wait for each other. Pure. Knows no clock, no
ninja and no screen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from stoker.decide.time_left.durations import OUTLIVED, ExpectedJob
from stoker.model.events import Estimated
from stoker.model.state import BuildState, SchedulerPlan

ORDER = 0.25
"""Where between the best and the worst case a scheduler ends that knows nothing of durations: over 200 random builds on
1 to 64 cores, simulated as ninja would run them, the mean error is then below 6 % at every width."""

PULL_FROM, PULL_NONE, LEAST_PULL, MOST_APART = 0.1, 0.4, -0.25, 2.0
"""How far the middle is drawn towards the rule of three over jobs, by the share of the build that is done: fully up to
PULL_FROM, where weights are no better guess; not at all at PULL_NONE; and then slightly away from it, because class
factors are still drawn towards the factor of all jobs. Over 13 first builds the powers that fit best were 0.6 at 10 to
25 %, 0 at 25 to 40, -0.4 at 40 to 60 and -0.2 from there on, within 0.2 whichever build was left out. For PyTorch the
rule is off by a factor of 35, so at most a factor of MOST_APART counts.

That is for jobs in the scheduler's order. If jobs are on deck, the longest of them are started first, and a rule that
counts them says twice too much at first: then only what is left of kinds of which no job has ended is drawn to it."""

WEIGHED_BAND, REMEMBERED_BAND = math.sqrt(2.0), 1.3
"""How far the band reaches in either direction, as factors, if nothing of what is left is remembered and if all of it
is, once NARROW_FROM of the build is done. Four of five middles were then off by up to 1.5 over first builds; by 1.1
over recorded second ones, and 1.3 over simulated ones, on 16 cores."""

UNSEEN_BAND = 2.0
"""How much further the band reaches in either direction if all that is left is of kinds of which no job has ended:
generators ran for a third of a build, and the compilations after them were expected to take 1.7 times too long."""

NARROW_FROM, LEAST_SHARE = 0.2, 0.01
"""Before that the band is wider, as a power: 1.7 in either direction at an eighth. It is less than the quarter from
which on the band should be narrow, because the share is an estimate, too. No share counts as smaller than the second
value."""

MOST_EARLY = 3.0
"""The highest power for what is remembered: how long these jobs take is known before any has ended, and what is not is
the load of the machine. The band is then from less than half of the middle to 2.2 times that."""

LEAST_ENDED = 4
"""Without history, the number of jobs that must have ended before the band is as narrow as the share allows: in a small
build one job is a large share, and says nothing about the others. After one job the band says nothing; after two it
reaches a factor of four in either direction."""

REMEMBERED = ("history", "log")
"""The sources that say how long this very job took before."""

COUNTED_SPREAD, GUESSED_SPREAD = 1.5, 1.8
"""The band if jobs are merely counted: a factor of 1.5 in either direction covers jobs of different length, once
NARROW_FROM is done. Make's percentage only guesses how many jobs are left."""


@dataclass(slots=True)
class Left:
    """The remaining work of a build, in seconds of single jobs, summed up job by job.

    `remembered` is the seconds of jobs that have been built before, `unseen` those of kinds of which no job has ended.
    `longer` and `shorter` are by how many seconds those may be off whose folders have not shown what their jobs take.
    `held` is the bytes that jobs hold times their seconds, of each job `most` bytes at most: one that is expected to
    hold more than there is runs alone; `longest` and `work` hold, for each group of the plans, its longest job and the
    sum of its jobs.
    """

    seconds: float = 0.0
    remembered: float = 0.0
    unseen: float = 0.0
    longer: float = 0.0
    shorter: float = 0.0
    held: float = 0.0
    most: float = math.inf
    longest: dict[int, float] = field(default_factory=dict)
    work: dict[int, float] = field(default_factory=dict)

    def add(
        self, job: ExpectedJob, group: int, seconds: float, held: float, *, seen: bool = True, unsure: float = 1.0
    ) -> None:
        """Add a job of the group `group` that needs `seconds` and holds `held` bytes on average; `seen`: whether a job
        of its kind has ended, or seconds are stated; `unsure`: the factor by which all of its folder may be off."""
        self.seconds += seconds
        self.unseen += seconds * (not seen)
        self.longer += seconds * (unsure - 1.0)
        self.shorter += seconds * (1.0 - 1.0 / unsure)
        self.remembered += seconds * (job.of.by in REMEMBERED)
        self.held += seconds * min(held, self.most)
        self.work[group] = self.work.get(group, 0.0) + seconds
        self.longest[group] = max(self.longest.get(group, 0.0), seconds)


def longest_path(left: Left, deps: Sequence[Sequence[int]], width: float = math.inf) -> float:
    """Return the seconds of the longest chain of groups; `deps` holds, for each group, the numbers of the groups that
    it waits for, all lower.

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
    *,
    width: float,
    done: float,
    ended: int,
    rule: float = 0.0,
    longest_first: bool = False,
    memory: float = math.inf,
) -> Estimated:
    """Estimate the remaining time if `width` jobs, 1 or more, run at once and hold at most `memory` bytes.

    `done` seconds of jobs are done, and `ended` whole jobs; `rule` is the result of the rule of three over jobs
    (seconds), 0 if it has none. `longest_first`: of the jobs on deck, the one with the longest way to the end
    starts first.
    """
    if left.seconds <= 0.0:
        return Estimated(0.0, 0.0, 0.0)
    work = left.seconds / width
    best = max(work, longest_path(left, deps, width), left.held / memory)
    worst = max(best, work + (1.0 - 1.0 / width) * longest_path(left, deps))
    middle = best + ORDER * (worst - best)
    share = done / (done + left.seconds)
    unknown, unseen = 1.0 - left.remembered / left.seconds, left.unseen / left.seconds
    if rule > 0.0:
        pull = min(1.0, max(LEAST_PULL, (PULL_NONE - share) / (PULL_NONE - PULL_FROM)))
        counts = unseen if longest_first else unknown
        middle *= min(MOST_APART, max(1.0 / MOST_APART, rule / middle)) ** (pull * counts)
    early = max(_early(share, unknown), 1.0 + unknown * (max(1.0, LEAST_ENDED / max(1, ended)) ** 2 - 1.0))
    factor = UNSEEN_BAND**unseen * (REMEMBERED_BAND * (WEIGHED_BAND / REMEMBERED_BAND) ** unknown) ** early
    # That all jobs take longer than expected, and that those of one folder do, are independent of each other.
    scale = middle / left.seconds
    up = math.hypot(middle * (factor - 1.0), left.longer * scale)
    down = math.hypot(middle * (1.0 - 1.0 / factor), left.shorter * scale)
    return Estimated(middle, max(0.0, middle - max(down, 1.0)), middle + max(up, 1.0))


def _early(share: float, unknown: float) -> float:
    """Return the power if the share `unknown` of what is left is not remembered."""
    early = _earliness(share)
    return min(early, MOST_EARLY) + unknown * max(0.0, early - MOST_EARLY)


def _earliness(share: float) -> float:
    """Return the power by which the band is wider while little is done."""
    return max(1.0, NARROW_FROM / max(share, LEAST_SHARE))


def counted(state: BuildState, now: float) -> Estimated | None:
    """Estimate the remaining time without a dependency graph: percent and jobs continue at the pace so far."""
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
    if len(tops) == 1 and tops[0].plan is not None and tops[0].plan.percent:
        return _of_make(state, tops[0].plan, elapsed, left, now)
    factor = COUNTED_SPREAD ** _earliness(min(shares))
    return Estimated(round(left, 1), round(left / factor, 1), round(left * factor, 1))


def _of_make(state: BuildState, plan: SchedulerPlan, elapsed: float, left: float, now: float) -> Estimated | None:
    """Correct `left`, the seconds that follow from make's percentage after `elapsed` seconds.

    Percent are a guess at what is left: targets that are up to date advance them at once, and the last ones may stand
    for many jobs. So the jobs that have begun, or wait on deck, take as long as those before them; and percent that
    have stood still for long do so for a while.
    """
    factor = GUESSED_SPREAD ** _earliness(elapsed / (elapsed + left))
    ended = state.retired.finished + sum(s.finished + s.failed for s in state.schedulers.values())
    if state.jobs and not ended:
        return None
    if state.jobs:
        left = max(left, elapsed * len(state.jobs) / ended)
        factor **= max(1.0, LEAST_ENDED / ended) ** 2
    stood = now - plan.since if plan.since is not None else 0.0
    left = max(left, OUTLIVED * stood)
    return Estimated(round(left, 1), round(left / factor, 1), round(max(left * factor, stood), 1))
