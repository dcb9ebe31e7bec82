"""How long a build will still take, as a band: from what is left to do and how long such jobs have taken so far.

Pure: the state and the time come in, an estimate goes out. Unaware of processes, clocks and screens.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from stoker.decide.pace import RELATIVE_SECONDS
from stoker.model.events import Estimated
from stoker.model.state import BuildState, Scheduler, ToolStats

UNSEEN_SPREAD = 3.0
"""A tool without a finished job may take this many times its guess, or as little as a fraction of it."""

LEARNING_SPREAD = 0.6
"""Relative half-width of the band after one finished job; it narrows with the square root of their number."""

LEAST_SPREAD = 0.08
"""The band never claims more than this: the last jobs of a build differ from the first."""

Z_80_PERCENT = 1.28
"""Standard deviations on either side of the mean that hold 80 % of a normal distribution."""

OVERDUE_SHARE = 0.3
"""A job older than expected is taken to need this share of its age again: compile times have long tails."""

PERCENT_SPREAD = 1.5
"""CMake counts steps, not seconds; half as much again either way covers targets of unlike weight."""

RECENT_POINTS = 60
"""Timeline points whose mean tells how many jobs really run at once."""


def estimate(state: BuildState, now: float) -> Estimated | None:
    """The remaining time at Unix time `now`, or None while nothing is known to base it on."""
    schedulers = [s for s in state.schedulers.values() if s.ended is None]
    by_percent = _by_percent(schedulers, now)
    if by_percent is not None:
        return by_percent
    if not schedulers or any(s.plan is None or s.plan.total is None for s in schedulers):
        return None
    if not any(stats.count for stats in state.tool_stats.values()):
        return None
    left = _left_by_tool(schedulers)
    if not left:
        return Estimated(0.0, 0.0, 0.0)
    width = _width(state, schedulers)
    times = [_remaining(state, now, left, width, end) for end in ("middle", "low", "high")]
    return Estimated(*(round(t, 1) for t in times))


def _by_percent(schedulers: list[Scheduler], now: float) -> Estimated | None:
    """Make tells no total, but CMake's makefiles print a percentage: the rest goes on as what was, roughly."""
    tops = [s for s in schedulers if s.parent is None]
    if len(tops) != 1 or tops[0].plan is None or not tops[0].plan.percent:
        return None
    percent = tops[0].plan.percent
    left = (now - tops[0].started) * (100.0 - percent) / percent
    return Estimated(round(left, 1), round(left / PERCENT_SPREAD, 1), round(left * PERCENT_SPREAD, 1))


def _left_by_tool(schedulers: list[Scheduler]) -> dict[str, int]:
    """Jobs that have not ended yet, running ones among them. What no tool accounts for counts as "other"."""
    left: dict[str, int] = {}
    for s in schedulers:
        if s.plan is None or s.plan.total is None:
            continue
        total_left = s.plan.total - s.finished - s.failed
        known = {t: n - s.finished_by_tool.get(t, 0) for t, n in s.plan.tools.items()}
        for tool, n in known.items():
            n = min(max(0, n), max(0, total_left))
            total_left -= n
            left[tool] = left.get(tool, 0) + n
        if total_left > 0:
            left["other"] = left.get("other", 0) + total_left
    return {tool: n for tool, n in left.items() if n > 0}


def _width(state: BuildState, schedulers: list[Scheduler]) -> float:
    """How many jobs run at once: the recent mean, since a scheduler often has fewer ready than it may run."""
    recent = [p.running for p in state.timeline[-RECENT_POINTS:] if p.running > 0]
    mean = sum(recent) / len(recent) if recent else float(len(state.jobs))
    allowed = sum(s.width or state.cores or 1 for s in schedulers)
    return max(1.0, min(mean, float(allowed)))


def _remaining(state: BuildState, now: float, left: Mapping[str, int], width: float, end: str) -> float:
    """Work over width, but never less than the longest job that must still run to its end."""
    seconds = {tool: _seconds(state.tool_stats, tool, n, end) for tool, n in left.items()}
    waiting = dict(left)
    running: list[float] = []
    for job in state.leaving.values():
        if job.tool in seconds:
            waiting[job.tool] -= 1
    for job in state.jobs.values():
        if job.tool in seconds:
            waiting[job.tool] -= 1
            running.append(_residual(seconds[job.tool], max(0.0, now - job.started)))
    to_start = {tool: n for tool, n in waiting.items() if n > 0}
    work = sum(running) + sum(n * seconds[tool] for tool, n in to_start.items())
    longest = max([*running, *(seconds[tool] for tool in to_start)], default=0.0)
    return max(work / width, longest)


def _residual(expected: float, age: float) -> float:
    """What a running job still needs. One that has outlived its expectation is of the slow kind, and goes on."""
    return max(expected - age, OVERDUE_SHARE * age)


def _seconds(stats: Mapping[str, ToolStats], tool: str, left: int, end: str) -> float:
    """Seconds of one of `left` jobs of `tool`: the mean so far, moved to the wanted end of the band.

    The band holds what is not known of the mean (few jobs seen) and the luck of the draw (few jobs left).
    """
    own = stats.get(tool)
    if own is not None and own.count:
        mean = own.seconds_sum / own.count
        variance = max(0.0, own.seconds_square_sum / own.count - mean**2)
        drawn = Z_80_PERCENT * math.sqrt(variance * (1 / own.count + 1 / left)) / mean if mean else 0.0
        spread = max(LEAST_SPREAD, math.hypot(LEARNING_SPREAD / math.sqrt(own.count), drawn))
        return mean * {"middle": 1.0, "low": 1.0 / (1.0 + spread), "high": 1.0 + spread}[end]
    guess = _compile_seconds(stats) * RELATIVE_SECONDS.get(tool, 1.0)
    return guess * {"middle": 1.0, "low": 1.0 / UNSEEN_SPREAD, "high": UNSEEN_SPREAD}[end]


def _compile_seconds(stats: Mapping[str, ToolStats]) -> float:
    """What a C++ compile takes on this machine, inferred from whatever has finished."""
    total = sum(s.seconds_sum / RELATIVE_SECONDS.get(tool, 1.0) for tool, s in stats.items())
    count = sum(s.count for s in stats.values())
    return total / count if count else 0.0
