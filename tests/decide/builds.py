"""Curves, jobs and views for the tests of the policy, with figures that are easy to add in the head."""

from __future__ import annotations

import re
from collections.abc import Sequence

from stoker.decide.memory.curves import Curve, Point
from stoker.decide.policy.admission import PATIENCE, STARVED
from stoker.decide.policy.decide import decide
from stoker.decide.policy.snapshot import Candidate, Decision, LiveJob, View
from stoker.model.events import Paused

GIB = 2**30

OVERDUE = STARVED * PATIENCE
"""How often a job is passed over, with up to sixteen places, before it goes even before urgent ones."""


def curve(*points: tuple[float, float], spread: float = 0.0, time_spread: float = 0.0, bias: float = 0.0) -> Curve:
    """A curve of (seconds, GiB)."""
    return Curve(tuple(Point(age, size * GIB) for age, size in points), spread, time_spread, bias)


def kernel(peak: float = 6.0, tail: float = 2.0) -> Curve:
    """What nvcc does: a climb to the peak at 60 s, a fall within 2 s, a tail until 180 s."""
    return curve((0, 0.1), (10, 0.8), (60, peak), (62, tail), (180, tail))


def light(peak: float = 0.5, seconds: float = 10.0) -> Curve:
    return curve((0, peak), (seconds, peak))


def live(
    jid: int, shape: Curve, age: float = 0.0, *, started: float | None = None, rss: float | None = None
) -> LiveJob:
    """A job that does just what its curve says; ages of smaller jids are greater."""
    held = shape.value(age) if rss is None else rss * GIB
    seen = max(held, shape.largest(0, age)) if rss is None else held
    seen_at = min(shape.peak_age, age)
    return LiveJob(jid, f"job{jid}.o", float(jid) if started is None else started, age, held, shape, seen, seen_at)


def candidate(jid: int, shape: Curve, *, passed_over: int = 0, alone: bool = False, held: bool = False) -> Candidate:
    return Candidate(jid, f"job{jid}.o", float(jid), shape, passed_over, alone, held)


def view(
    running: Sequence[LiveJob] = (),
    candidates: Sequence[Candidate] = (),
    frozen: Sequence[LiveJob] = (),
    *,
    ram: float = 32.0,
    cores: float = 16,
    level: int | None = None,
    paused: Paused = "no",
    available: float | None = None,
    pressure: float | None = None,
    last_freeze: float = -1000.0,
    last_shed: float = -1000.0,
    guarded: bool = True,
) -> View:
    """A machine of `ram` GiB on which nothing else runs: reserve 2 GiB, floor 0.5 GiB."""
    used = sum(j.rss for j in (*running, *frozen)) / GIB
    left = ram - used if available is None else available
    return View(
        budget=ram * GIB,
        available=left * GIB,
        reserve=2 * GIB,
        floor=0.5 * GIB,
        cpu_slots=cores,
        level=level,
        paused=paused,
        pressure=pressure,
        running=tuple(running),
        frozen=tuple(frozen),
        candidates=tuple(candidates),
        last_freeze=last_freeze,
        last_shed=last_shed,
        guarded=guarded,
    )


def acts(decisions: tuple[Decision, ...], action: str) -> list[int]:
    """The jobs that this is done to, in order."""
    return [d.jid for d in decisions if d.action == action]


def asked(seen: View, now: float = 100.0) -> tuple[Decision, ...]:
    """What is decided; every decision must say why with at least one number."""
    decisions = decide(seen, now)
    for decision in decisions:
        assert re.search(r"\d", decision.why), decision.why
    return decisions
