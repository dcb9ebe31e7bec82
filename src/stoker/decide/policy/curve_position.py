"""Where a running job stands on its curve, judged by what it does: its age, its memory, its pass.

Pure. Unaware of other jobs and of decisions.
"""

from __future__ import annotations

from stoker.decide.memory.curves import Curve, Point, flat
from stoker.decide.memory.outlook import Standing
from stoker.decide.policy.snapshot import LiveJob

FALLEN = 0.6
"""A job that holds less than this share of the most it was seen to hold has its peak behind it: nvcc's cicc falls to
a third of its peak within a second or two."""

NOTABLE = 0.45
"""Only a peak of at least this share of the expected one counts as the peak: cudafe++ too rises and falls before
cicc begins, to about a fifth of what cicc needs."""

PACE_LIMITS = (0.5, 2.0)
"""A pace outside these is taken for a misjudged position rather than for a fact."""

SETTLED = 0.4
"""Share of the spreads that is left once the peak has been seen: size and pace have both been measured then."""

OVERTIME = 0.05
"""A job that outlives its curve is expected to take this share of its age more."""

BEYOND = 2.0
"""Spreads above its expected peak from which on a job is not the one that was expected."""

STRANGE = 0.4
"""Spread of what is to come of a job that is not the one that was expected, in size and in time."""

LEVEL = 0.02
"""A job that holds what was expected, and has grown by less than this share of it in a second, does not grow now."""

LATE_GROWTH = 0.4
"""A job that outlives its curve while it grows is such a one too, and may grow for this much of its age more: by its
age alone as much again is as likely as not, and compilers stop growing before they end."""

FAR_ENOUGH = 0.25
"""Share of the curve's duration that weighs as much as the pace assumed before anything was measured."""

STRAY = 2.5
"""How many times sooner or later than its curve says a job may plausibly stand somewhere."""

STILL_RISING = 0.5
"""Spreads by which a job is expected to go beyond what it holds while it shows no sign of falling."""


def locate(job: LiveJob) -> Standing:
    """Find the job's place on its curve, and what is still uncertain about the rest."""
    curve = job.curve
    # Behind the peak both size and pace have been measured; before it they are estimated from age, memory and pass.
    if _is_past_peak(job):
        return _after_peak(job)
    spread = _spread(job)
    # A job that has come near its expected peak and does not fall is a larger job than expected.
    scale = max(1.0, job.rss * (1 + STILL_RISING * spread) / curve.peak) if curve.peak > 0 else 1.0
    position = _position(job, scale)
    # One that should have ended goes on for a little while.
    if position >= curve.duration:
        return _overtime(job)
    # The pace that brought it there, drawn towards 1 while it has not come far.
    weight = FAR_ENOUGH * curve.duration
    pace = _limited((position + weight) / (job.age + weight)) if weight > 0 else 1.0
    return Standing(curve, position, pace * job.width, scale, spread, curve.time_spread, curve.bias, job.rss)


def _spread(job: LiveJob) -> float:
    """Return how far its sizes may be from its curve: a good deal once it is beyond what that curve allows for, and
    less while it has stopped growing."""
    curve = job.curve
    beyond = job.rss > curve.peak * (1 + curve.bias) * (1 + BEYOND * curve.spread)
    spread = max(curve.spread, STRANGE) if beyond else curve.spread
    level = job.age > 0 and job.rss >= curve.peak and job.rise < LEVEL * job.rss
    return SETTLED * spread if level else spread


def _is_past_peak(job: LiveJob) -> bool:
    curve = job.curve
    return (
        job.rss < FALLEN * job.peak_rss
        and job.peak_rss >= NOTABLE * curve.peak / (1 + curve.bias)
        and curve.sizes[-1] < curve.peak
    )


def _after_peak(job: LiveJob) -> Standing:
    """Take the size from the peak that was seen, and the pace from when it was seen."""
    curve = job.curve
    scale = job.peak_rss / curve.peak if curve.peak > 0 else 1.0
    pace = _limited(curve.peak_age / job.peak_age) if job.peak_age > 0 and curve.peak_age > 0 else 1.0
    position = max(curve.peak_age + (job.age - job.peak_age) * pace, _end_of_peak(curve))
    if position >= curve.duration:
        return _overtime(job)
    size, time, bias = curve.spread * SETTLED, curve.time_spread * SETTLED, curve.bias * SETTLED
    return Standing(curve, position, pace * job.width, scale, size, time, bias, job.rss)


def _end_of_peak(curve: Curve) -> float:
    """Return the age at which the curve has come down from its peak."""
    return next(
        (p.age for p in curve.points if p.age > curve.peak_age and p.size < FALLEN * curve.peak), curve.peak_age
    )


def _position(job: LiveJob, scale: float) -> float:
    """Place it by its age, then where the rising curve shows the memory that is held, then within the pass that
    runs."""
    curve, position = job.curve, job.age
    if position <= curve.peak_age or job.rss > curve.still(position) * scale:
        position = _plausible(_on_rise(curve, job.rss / scale), job.age)
    span = curve.phase_span(job.phase, position) if job.phase else None
    if span is None:
        return position
    in_phase = min(max(position, span[0]), span[1])
    return in_phase if in_phase == _plausible(in_phase, job.age) else position


def _plausible(position: float, age: float) -> float:
    return min(max(position, age / STRAY), age * STRAY + 1)


def _on_rise(curve: Curve, rss: float) -> float:
    """Return the last age before the peak at which the job would hold no more than `rss`."""
    later_age, later_size = curve.peak_age, curve.peak
    if rss >= later_size:
        return later_age
    for age, size in zip(reversed(curve.ages), reversed(curve.sizes), strict=True):
        if age >= later_age:
            continue
        if size <= rss:
            rise = later_size - size
            return age + (later_age - age) * ((rss - size) / rise if rise > 0 else 0.0)
        later_age, later_size = age, size
    return 0.0


def _overtime(job: LiveJob) -> Standing:
    """Expect a job that should have ended to go on as it is for a little while, or to grow on for longer."""
    if job.rise > 0 and job.rss >= job.peak_rss:
        more = LATE_GROWTH * job.age
        growing = Curve((Point(0.0, job.rss), Point(more, job.rss + job.rise * more)))
        return Standing(growing, 0.0, job.width, 1.0, STRANGE, STRANGE, 0.0, job.rss)
    remaining = max(1.0, OVERTIME * job.age)
    return Standing(flat(job.rss, remaining), 0.0, 1.0, 1.0, 0.1, 0.0, 0.0, job.rss)


def _limited(pace: float) -> float:
    return min(max(pace, PACE_LIMITS[0]), PACE_LIMITS[1])
