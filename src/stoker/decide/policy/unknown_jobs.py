"""Unknown jobs start one by one until one of their kind has shown what it needs.

A tool that no class describes may take all memory within a second, faster than it can be measured and stopped. If one
does, stopping the others is enough; if eight grow together, it is not. A compiler is slower: the brake keeps up with
it, however large it becomes. Pure; knows no process and no clock.
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
"""From this spread of size on, an expectation is only a guess. A class without figures is more certain once a job with
a similar name has ended (decide/memory/belief.py)."""

ENOUGH_ALIKE = 3
"""Finished jobs of one kind after which it is known, however much they differ: in a folder of small and large sources
each further file would otherwise wait for the one before it."""

LEAP = 2**30
"""Bytes that such a job is assumed to need at any moment of its first seconds: about what a core can fill in one
second."""

WATCHED_SECONDS = 2.0
"""How long such a job is watched. The brake handles slower ones, because it knows their growth by then."""


def is_unknown(curve: Curve) -> bool:
    """Return whether the expectation of a job is only a guess, and the job may take memory in leaps."""
    return not curve.gradual and curve.spread >= UNKNOWN_SPREAD and curve.alike < ENOUGH_ALIKE


def one_by_one(view: View, turn: Turn, now: float) -> Turn:
    """Remove from the turn the unknown jobs for which no LEAP of memory is free besides those of watched jobs."""
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
    """Say why a job waits, with its guessed size."""
    size = candidate.curve.peak
    why = f"its size is a guess: ~{format_bytes(size)}; after {first}, as such jobs start one by one"
    return Wait("unknown", why, first, size, need=size)


def _watched(running: Iterable[LiveJob], now: float) -> list[LiveJob]:
    return [job for job in running if is_unknown(job.curve) and now - job.started < WATCHED_SECONDS]
