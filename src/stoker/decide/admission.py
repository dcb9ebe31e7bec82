"""Who may start or go on: curves over time against the capacity, the eldest or longest first, the rest behind it.

Pure. Unaware of the emergency, of processes and of clocks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache

from stoker.decide.curves import Curve
from stoker.decide.outlook import EDGES, Outlook, Promise, from_birth, outlook
from stoker.decide.standing import climb_left, locate, rough_peak
from stoker.decide.view import Candidate, Decision, LiveJob, View
from stoker.model.units import format_bytes, format_duration

CAUTION = 1.5
"""Standard deviations of the summed doubt that stay free. The freeze before a climb covers what is rarer."""

SMALL = 0.01
"""Jobs below this share of the budget are counted with their peak for all of their life: exactness would not show."""

PATIENCE = 64
"""A job that was passed over this often goes before all that are not: nothing starves behind luckier jobs."""

THAW_SHARE = 0.3
"""Share of the reserve that thawed jobs may be promised: less than the brake's share, or it would freeze them again."""

THAW_SPACING = 2.0
"""Seconds between two thaws for memory's sake, so that the effect of one is seen before the next."""


def capacity_of(view: View) -> float:
    """Bytes that the build's jobs may hold together: what they hold and what is left, less the reserve.

    What others take on this machine shrinks it, whether or not the build's own figures are exact.
    """
    own = sum(j.rss for j in view.running) + sum(j.rss for j in view.frozen)
    return min(view.budget, own + view.available) - view.reserve


def promise_of(view: View, caution: float = CAUTION) -> Promise:
    """What the jobs that run, and those that are frozen, are expected to hold from now on."""
    promise = Promise(capacity_of(view), caution)
    small = view.budget * SMALL
    for job in view.running:
        promise.add(outlook_of(job, small))
    for job in view.frozen:
        promise.hold(job.rss)
    return promise


def outlook_of(job: LiveJob, small: float) -> Outlook:
    """What a live job is expected to hold from now on."""
    if job.curve.peak <= small and job.rss <= small:
        return _plain(rough_peak(job), max(1.0, 1.5 * (job.curve.duration - job.age)))
    return outlook(locate(job))


def outlook_at_birth(curve: Curve, small: float) -> Outlook:
    """What a candidate is expected to hold if it starts now."""
    if curve.peak <= small:
        return _plain(curve.peak * (1 + curve.spread + curve.bias), 1.5 * curve.duration)
    return from_birth(curve)


def _plain(size: float, seconds: float) -> Outlook:
    slots = _slots(math.ceil(seconds))
    return Outlook((size,) * slots, (0.0,) * slots, size)


@lru_cache(maxsize=16384)
def _slots(seconds: int) -> int:
    return next((slot for slot in range(1, len(EDGES)) if EDGES[slot] >= seconds), len(EDGES) - 1)


class Deck:
    """One round of admissions: what is promised so far, how many run, and the job that room is kept for."""

    def __init__(self, view: View, promise: Promise, slots: int) -> None:
        self.view = view
        self.small = view.budget * SMALL
        self.promise = promise
        self.slots = slots
        self.decisions: list[Decision] = []
        self.waiting: str = ""
        """The name of the job that room is kept for; empty while none waits."""

    def thaw(self, now: float) -> None:
        """Let frozen jobs go on, first those with the least climb before them: they give memory back the soonest.

        Promises may use a part of the reserve here, since what is frozen would otherwise lock up the rest. Room is
        kept for each that must wait, and nothing that starts now may delay it.
        """
        rested = now - self.view.last_freeze >= THAW_SPACING
        capacity = self.promise.capacity
        self.promise.capacity += THAW_SHARE * self.view.reserve
        waiting = []
        for job in sorted(self.view.frozen, key=lambda j: (climb_left(j), *_age_order(j))):
            if job.by_person:
                continue
            rest = outlook(locate(job))
            self.promise.hold(-job.rss)
            if rested and self.slots > 0 and self.promise.fits(rest):
                self.promise.add(rest)
                self.slots -= 1
                why = f"needs ~{format_bytes(rest.peak)}, {format_bytes(self._free())} stay free above the reserve"
                self.decisions.append(Decision("thaw", job.jid, f"thaw {job.name} ({why})"))
            else:
                self.promise.hold(job.rss)
                waiting.append((job, rest))
        self.promise.capacity = capacity
        for job, rest in waiting:
            self.promise.hold(-job.rss)
            self._keep_room(rest, job.name, job.rss)

    def admit(self, candidates: Iterable[Candidate]) -> None:
        """Admit whatever fits, in order; the first that does not fit gets room kept for it, the others fill in."""
        for candidate in candidates:
            if self.slots <= 0:
                return
            job = outlook_at_birth(candidate.curve, self.small)
            if self.promise.fits(job):
                self.promise.add(job)
                self.slots -= 1
                self.decisions.append(Decision("admit", candidate.jid, self._why_admitted(candidate, job)))
                continue
            if not candidate.held:
                self.decisions.append(Decision("hold", candidate.jid, self._why_held(candidate, job)))
            if not self.waiting:
                self._keep_room(job, candidate.name)

    def _keep_room(self, job: Outlook, name: str, held: float = 0.0) -> None:
        """As EASY backfill does: the job gets the first slot in which it fits, and nobody may take that away.

        Until then it keeps `held` bytes. If no slot is in sight, nothing else may start.
        """
        self.waiting = self.waiting or name
        slot = self.promise.earliest(job, held)
        self.promise.hold(held, slot)
        if slot is None:
            self.slots = 0
        else:
            self.promise.add(job, slot)

    def _free(self) -> float:
        return max(0.0, self.promise.free())

    def _why_admitted(self, candidate: Candidate, job: Outlook) -> str:
        need, free = format_bytes(job.peak), format_bytes(self._free()) if self.waiting else ""
        if self.waiting:
            return f"admit {candidate.name} (needs ~{need}; backfilled while {self.waiting} waits, {free} left)"
        return f"admit {candidate.name} (needs ~{need} of {format_bytes(self.promise.capacity)})"

    def _why_held(self, candidate: Candidate, job: Outlook) -> str:
        seconds = format_duration(candidate.curve.duration)
        return (
            f"hold {candidate.name} (needs ~{format_bytes(job.peak)} within {seconds}, "
            f"{format_bytes(self._free())} free above the reserve)"
        )


def in_order(candidates: Iterable[Candidate]) -> list[Candidate]:
    """The order in which candidates are tried: those passed over too often, then the longest, then the oldest.

    Long jobs first because a long job that starts last is a whole machine waiting for one core.
    """
    return sorted(candidates, key=_deck_order)


def _deck_order(candidate: Candidate) -> tuple[int, float, float, int]:
    if candidate.passed_over >= PATIENCE:
        return 0, candidate.arrived, 0.0, candidate.jid
    return 1, -candidate.curve.duration, candidate.arrived, candidate.jid


def _age_order(job: LiveJob) -> tuple[float, int]:
    return job.started, job.jid
