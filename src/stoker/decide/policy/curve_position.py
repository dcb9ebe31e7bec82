"""Finds a running job's position on its curve from what it does: its age, its memory, its compiler pass.

Pure. Knows nothing of other jobs or of decisions.
"""

from __future__ import annotations

from stoker.decide.memory.curves import Curve, Point, flat
from stoker.decide.memory.outlook import Standing
from stoker.decide.policy.snapshot import LiveJob

FALLEN = 0.6
"""A job that holds less than this share of its largest observed size has passed its peak: nvcc's cicc falls to a third
of its peak within a second or two."""

NOTABLE = 0.45
"""Only a maximum of at least this share of the expected peak counts as the peak: cudafe++ also rises and falls before
cicc begins, to about a fifth of what cicc needs."""

SPENT = 0.02
"""A shell that holds less than this share of what its job held at most has nothing of it left."""

SHELLS = frozenset(["sh", "bash", "dash", "ash"])
"""What runs a compiler's command and outlives the compiler by a moment; on a busy machine, by seconds."""

DRIVERS = frozenset(["c++", "g++", "cc", "gcc", "as"])
"""What still writes an object once cc1plus has ended. Below nvcc they also come before its large pass, for each GPU."""

PACE_LIMITS = (0.5, 2.0)
"""A pace outside these limits is treated as a misjudged position rather than as a fact."""

SETTLED = 0.4
"""Share of the spreads that remains once the peak has been seen, because size and pace have both been measured."""

OVERTIME = 0.05
"""A job that outlives its curve is expected to take this share of its age longer."""

BEYOND = 2.0
"""A job this many spreads above its expected peak is not the kind of job that was expected."""

STRANGE = 0.4
"""Spread of the remaining size and time of such an unexpected job."""

LEVEL = 0.02
"""A job that holds what was expected and has grown by less than this share of it in a second counts as not growing."""

LATE_GROWTH = 0.4
"""A job that outlives its curve while it grows is unexpected, too, and may keep growing for this share of its age: by
age alone it is as likely as not to take as long again, and compilers stop growing before they end."""

FAR_ENOUGH = 0.25
"""Share of the curve's duration with which the initially assumed pace is weighted."""

STRAY = 2.5
"""By which factor a job's position may plausibly be ahead of, or behind, its age."""

STILL_RISING = 0.5
"""Spreads by which a job is expected to exceed what it holds as long as it shows no sign of falling."""


def locate(job: LiveJob) -> Standing:
    """Return the job's position on its curve, and how uncertain the rest still is."""
    curve = job.curve
    if _is_spent(job):
        return _overtime(job)
    # After the peak, size and pace have both been measured; before it they are estimated from age, memory and pass.
    if _is_past_peak(job):
        return _after_peak(job)
    spread = _spread(job)
    # A job that is near its expected peak and does not fall is larger than expected.
    scale = max(1.0, job.rss * (1 + STILL_RISING * spread) / curve.peak) if curve.peak > 0 else 1.0
    position = _position(job, scale)
    # One that should have ended continues for a little while.
    if position >= curve.duration:
        return _overtime(job)
    # Its average pace so far, drawn towards 1 while it has not come far.
    weight = FAR_ENOUGH * curve.duration
    pace = _limited((position + weight) / (job.age + weight)) if weight > 0 else 1.0
    return Standing(
        curve, position, pace * job.width, scale, spread, curve.time_spread, curve.bias, job.rss, job.cores / job.width
    )


def _spread(job: LiveJob) -> float:
    """Return how far its sizes may be from its curve: more once it exceeds what the curve allows for, less while it has
    stopped growing."""
    curve = job.curve
    beyond = job.rss > curve.peak * (1 + curve.bias) * (1 + BEYOND * curve.spread)
    spread = max(curve.spread, STRANGE) if beyond else curve.spread
    level = job.age > 0 and job.rss >= curve.peak and job.rise < LEVEL * job.rss
    return SETTLED * spread if level else spread


def _is_spent(job: LiveJob) -> bool:
    """Return whether only the shell of a job is left after its compiler has ended, or the driver and the assembler.
    That needs no curve that falls: many curves end at their peak."""
    if job.rss >= SPENT * job.peak_rss or not _has_peaked(job):
        return False
    return job.phase in SHELLS or (job.phase in DRIVERS and all(p.phase != "cicc" for p in job.curve.points))


def _has_peaked(job: LiveJob) -> bool:
    return job.peak_rss >= NOTABLE * job.curve.peak / (1 + job.curve.bias)


def _is_past_peak(job: LiveJob) -> bool:
    return job.rss < FALLEN * job.peak_rss and _has_peaked(job) and job.curve.sizes[-1] < job.curve.peak


def _after_peak(job: LiveJob) -> Standing:
    """Derive size and pace from the peak that was seen, and from when it was seen."""
    curve = job.curve
    scale = job.peak_rss / curve.peak if curve.peak > 0 else 1.0
    pace = _limited(curve.peak_age / job.peak_age) if job.peak_age > 0 and curve.peak_age > 0 else 1.0
    position = max(curve.peak_age + (job.age - job.peak_age) * pace, _end_of_peak(curve))
    if position >= curve.duration:
        return _overtime(job)
    size, time, bias = curve.spread * SETTLED, curve.time_spread * SETTLED, curve.bias * SETTLED
    return Standing(curve, position, pace * job.width, scale, size, time, bias, job.rss, job.cores / job.width)


def _end_of_peak(curve: Curve) -> float:
    """Return the age at which the curve has fallen from its peak."""
    return next(
        (p.age for p in curve.points if p.age > curve.peak_age and p.size < FALLEN * curve.peak), curve.peak_age
    )


def _position(job: LiveJob, scale: float) -> float:
    """Estimate the position by age, then by where the rising curve holds as much memory, then by the running pass."""
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
    """Return the last age before the peak at which the curve holds no more than `rss`."""
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
    """Expect a job that should have ended to continue unchanged for a little while, or, if it grows, to grow for
    longer."""
    if job.rise > 0 and job.rss >= job.peak_rss:
        more = LATE_GROWTH * job.age
        growing = Curve((Point(0.0, job.rss), Point(more, job.rss + job.rise * more)))
        return Standing(growing, 0.0, job.cores, 1.0, STRANGE, STRANGE, 0.0, job.rss)
    remaining = max(1.0, OVERTIME * job.age)
    return Standing(flat(job.rss, remaining), 0.0, 1.0, 1.0, 0.1, 0.0, 0.0, job.rss)


def _limited(pace: float) -> float:
    return min(max(pace, PACE_LIMITS[0]), PACE_LIMITS[1])
