"""Jobs of which nothing is known: they start one by one until one of their kind has shown what it needs.

A tool that no class describes may take all memory within a second, faster than it can be measured and stopped. One at a
time can be met by stopping the others; eight that grow together cannot. Pure; unaware of processes and of clocks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from stoker.decide.memory.curves import Curve
from stoker.decide.policy.snapshot import Candidate, LiveJob, View
from stoker.decide.policy.turn import Turn, arrival
from stoker.decide.policy.waits import Wait
from stoker.model.units import format_bytes

UNKNOWN_SPREAD = 0.75
"""Spread of size from which on an expectation is no more than a guess. Compilers' classes are surer than that before
anything was measured; a class without figures is once a job with a name like this one has ended
(decide/memory/belief.py)."""

LEAP = 2**30
"""Bytes that such a job is taken to need at any moment of its first seconds: about what a core can fill in one."""

WATCHED_SECONDS = 2.0
"""How long such a job is watched. The brake meets one that is slower, as it knows by then how that grows."""


def is_unknown(curve: Curve) -> bool:
    """Return whether what is expected of a job is only a guess."""
    return curve.spread >= UNKNOWN_SPREAD


def one_by_one(view: View, turn: Turn, now: float) -> Turn:
    """Take out of the turn those unknown jobs for which no leap is free beside those that are watched."""
    unknown = sorted((c for c in turn.candidates if is_unknown(c.curve)), key=arrival)
    watched = _watched(view.running, now)
    leaps = int(max(0.0, view.available - view.kept) / LEAP) - len(watched)
    later = unknown[max(leaps, 0 if watched else 1) :]
    if not later:
        return turn
    kept_back = {c.jid for c in later}
    first = watched[0].name if watched else unknown[0].name
    waits = {c.jid: _waits_for(first, c) for c in later}
    candidates = tuple(c for c in turn.candidates if c.jid not in kept_back)
    return replace(turn, candidates=candidates, single={**turn.single, **waits})


def _waits_for(first: str, candidate: Candidate) -> Wait:
    """Say why a job waits, with the size that is not known better."""
    size = candidate.curve.peak
    why = f"its size is a guess: ~{format_bytes(size)}; {first} goes first, and shows what such a job needs"
    return Wait("unknown", why, first, size)


def _watched(running: Iterable[LiveJob], now: float) -> list[LiveJob]:
    return [job for job in running if is_unknown(job.curve) and now - job.started < WATCHED_SECONDS]
