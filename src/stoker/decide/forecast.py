"""The remaining time of a build whose graph is known, as a band: what is left in each group, and how sure that is.

Pure. Unaware of where expectations come from, of ninja, of clocks and of screens.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

from stoker.decide.path import Schedule, Stage
from stoker.model.events import Estimated

Z_80_PERCENT = 1.28
"""Standard deviations on either side of the mean that hold 80 % of a normal distribution."""

MACHINE_DOUBT = 0.06
"""Relative doubt of whatever the cores and the memory limit: other work on the machine, caches, the disk."""

_NORMAL = NormalDist()


class Batch(NamedTuple):
    """Jobs of one group that are expected alike, all running or all still to start.

    `sources` names what their expectations have in common with others', and with that an error. `seconds` and
    `square` sum their expected seconds and the squares of those, `longest` is the largest, `spread` the relative
    standard deviation of each. `memory` sums the bytes that each holds times the seconds for which it does.
    """

    sources: tuple[str, ...]
    jobs: int
    seconds: float
    square: float
    longest: float
    spread: float
    memory: float = 0.0


class Group(NamedTuple):
    """What is left of jobs that wait for the same groups, by their numbers, and are waited for by the same."""

    batches: Sequence[Batch]
    deps: Sequence[int]


def forecast(
    groups: Sequence[Group],
    doubts: Mapping[str, float],
    width: float,
    memory: float = math.inf,
    unrest: float = 0.0,
) -> Estimated:
    """Middle and 80 % band of the seconds left, on `width` cores and with `memory` bytes for jobs.

    `doubts` has for each source how far all expectations that name it may be off together (standard deviation of
    the logarithm). Such errors do not average out; those of single jobs do, but for the jobs on the longest path.
    `unrest` is how far the machine's speed may be from what it was (also of the logarithm).
    """
    stages = [_stage(group) for group in groups]
    schedule = Schedule(stages)
    span = schedule.span(width, memory)
    middle = span.likely
    if middle <= 0.0:
        return Estimated(0.0, 0.0, 0.0)
    chain = [groups[number] for number in schedule.chain()]
    bound = schedule.path / middle  # how much the longest path decides, beside the number of cores
    shared = (1.0 - bound) * _shared_doubt(groups, doubts) + bound * _shared_doubt(chain, doubts)
    deviation = math.hypot(
        middle * math.expm1(shared),
        _chance_of_work(groups) / width,
        bound * _chance_of_path(chain),
        span.doubt,
        MACHINE_DOUBT * (middle - schedule.path),
        middle * math.expm1(unrest),
    )
    factor = (1.0 + deviation / middle) ** Z_80_PERCENT
    low = middle / factor
    if low < schedule.path:
        low = min(middle, max(low, _least_path(groups, doubts) * math.exp(-Z_80_PERCENT * unrest)))
    return Estimated(middle, low, middle * factor)


def expected_longest(jobs: Iterable[tuple[float, float, int]]) -> float:
    """The duration of the longest of independent jobs, given as (expected seconds, relative spread, how many).

    Never below the largest expectation. Of many alike the longest takes well more than their mean; so for every
    number of jobs, taken from the largest down, at least those are as large as the last of them.
    """
    found, count = 0.0, 0
    for seconds, spread, number in sorted(jobs, key=_by_length, reverse=True):
        count += number
        found = max(found, seconds * _excess(round(spread, 2), count))
    return found


def _by_length(job: tuple[float, float, int]) -> tuple[float, float]:
    """Alike in all but a rounding error is alike: then the less certain ones come first."""
    seconds, spread, _ = job
    return round(math.log(seconds), 6) if seconds > 0 else -math.inf, spread


@lru_cache(maxsize=1024)
def _excess(spread: float, count: int) -> float:
    """How much longer than their mean the longest of `count` log-normal durations is expected to be."""
    width = math.sqrt(math.log1p(spread**2))
    return max(1.0, math.exp(width * _extreme(count) - width**2 / 2))


@lru_cache(maxsize=1024)
def _extreme(count: int) -> float:
    """The mean of the largest of `count` standard normal values (Blom's approximation)."""
    return _NORMAL.inv_cdf((count - 0.375) / (count + 0.25))


def _stage(group: Group) -> Stage:
    work = memory = 0.0
    jobs: list[tuple[float, float, int]] = []
    for b in group.batches:
        work += b.seconds
        memory += b.memory
        jobs.append((b.longest, b.spread, 1))
        if b.jobs > 1:
            jobs.append((b.seconds / b.jobs, b.spread, b.jobs))
    return Stage(work, min(expected_longest(jobs), work), memory, group.deps)


def _least_path(groups: Sequence[Group], doubts: Mapping[str, float]) -> float:
    """The longest path if all jobs are on the short side of what they may take. Certain ones take what they take."""
    stages: list[Stage] = []
    for group in groups:
        longest = 0.0
        for b in group.batches:
            off = math.hypot(b.spread, *(doubts.get(source, 0.0) for source in b.sources))
            longest = max(longest, b.longest * math.exp(-Z_80_PERCENT * off))
        stages.append(Stage(longest, longest, 0.0, group.deps))
    return Schedule(stages).path


def _shared_doubt(groups: Iterable[Group], doubts: Mapping[str, float]) -> float:
    """How far all jobs' seconds together may be off, with some sources off one way and some the other."""
    weights: dict[str, float] = {}
    seconds = 0.0
    for group in groups:
        for b in group.batches:
            seconds += b.seconds
            for source in b.sources:
                weights[source] = weights.get(source, 0.0) + b.seconds
    off = (weight * doubts.get(source, 0.0) for source, weight in weights.items())
    return math.hypot(*off) / seconds if seconds > 0.0 else 0.0


def _chance_of_work(groups: Sequence[Group]) -> float:
    """Standard deviation of all jobs' seconds together, if each is off by itself."""
    return math.sqrt(sum(b.spread**2 * b.square for group in groups for b in group.batches))


def _chance_of_path(chain: Iterable[Group]) -> float:
    """The same of the longest path. The longest of many is surer than each: the next one is hardly shorter."""
    total = 0.0
    for group in chain:
        offs = ((b.spread * b.longest) ** 2 / (1.0 + max(0.0, _extreme(b.jobs))) for b in group.batches)
        total += max(offs, default=0.0)
    return math.sqrt(total)
