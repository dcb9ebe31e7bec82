"""One snapshot, worked out once: where every job stands, what is promised, how much may be held.

Pure. Unaware of what will be decided.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property, lru_cache

from stoker.decide.memory.curves import Curve
from stoker.decide.memory.outlook import EDGES, Outlook, PromisedMemory, Standing, even, from_birth, outlook
from stoker.decide.policy.curve_position import locate
from stoker.decide.policy.snapshot import Candidate, LiveJob, View

CAUTION = 1.4
"""Standard deviations of the summed doubt that promises keep free. The freeze before a growth covers what is rarer:
more caution leaves cores idle, less makes the brake work all the time (docs/policy.md has the figures)."""

SURGE = 1.0
"""Seconds for which a job that grows is taken to go on so, whatever its curve says: four ticks come in them."""

UNTRUSTED = 0.3
"""Spread from which on what a job does says more than its curve."""

SMALL = 0.01
"""Jobs below this share of the budget are counted with their peak for all of their life: exactness would not show."""


class Situation:
    """A view, and what follows from it before anything is decided."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.small = view.budget * SMALL
        self._standings: dict[int, Standing] = {}
        self._outlooks: dict[int, Outlook] = {}

    def letting_go(self, jobs: Iterable[LiveJob]) -> Situation:
        """Return the same situation if these had been let go: of those that are frozen, or as they would be born."""
        jobs, view = tuple(jobs), self.view
        gone = {j.jid for j in jobs}
        frozen = tuple(j for j in view.frozen if j.jid not in gone)
        waiting = tuple(c for c in view.candidates if c.jid not in gone) if self.on_deck else view.candidates
        after = Situation(replace(view, running=(*view.running, *jobs), frozen=frozen, candidates=waiting))
        after._standings, after._outlooks = self._standings, self._outlooks
        after._running_promise = self._running_promise.copied()
        for job in jobs:
            after._running_promise.add(after.outlook(job))
        return after

    @cached_property
    def by_age(self) -> list[LiveJob]:
        """Running jobs, the oldest first."""
        return sorted(self.view.running, key=age_order)

    @cached_property
    def capacity(self) -> float:
        """Bytes that the build's jobs may hold together: what they hold and what is left, less the reserve and what a
        RAM disk may grow by.

        What others take on this machine shrinks it, whether or not the build's own figures are exact.
        """
        own = sum(j.rss for j in self.view.running) + sum(j.rss for j in self.view.frozen) + self.on_deck
        return min(self.view.budget, own + self.view.available) - self.view.kept

    @cached_property
    def on_deck(self) -> float:
        """Bytes held by those that were stopped only after they had begun."""
        return sum([c.rss for c in self.view.candidates])

    @cached_property
    def at_work(self) -> float:
        """CPU seconds that live jobs are expected to take until they end."""
        live = (*self.view.running, *self.view.frozen)
        return sum([max(0.0, j.curve.duration - j.age) for j in live])

    @cached_property
    def promise(self) -> PromisedMemory:
        """What all live jobs are expected to hold from now on, as long as nobody is let go; admissions add to it."""
        promise = self._running_promise.copied()
        for job in self.view.frozen:
            promise.hold(job.rss)
        if self.on_deck:
            promise.hold(self.on_deck)
        return promise

    @cached_property
    def _running_promise(self) -> PromisedMemory:
        promise = PromisedMemory(self.capacity, CAUTION)
        for job in self.view.running:
            promise.add(self.outlook(job))
        return promise

    def peaks(self) -> Peaks:
        """Sum up the peaks of all that runs, beside what those on deck hold."""
        peaks = Peaks(self.capacity - self.on_deck)
        for job in self.view.running:
            peaks.add(job.curve, job.rss)
        return peaks

    def standing(self, job: LiveJob) -> Standing:
        """Return where the job stands on its curve."""
        known = self._standings.get(job.jid)
        if known is None:
            known = self._standings[job.jid] = locate(job)
        return known

    def outlook(self, job: LiveJob) -> Outlook:
        """Return what a live job is expected to hold if it goes on now."""
        known = self._outlooks.get(job.jid)
        if known is None:
            known = self._outlooks[job.jid] = self._look_out(job)
        return known

    def _look_out(self, job: LiveJob) -> Outlook:
        if job.curve.peak <= self.small and job.rss <= self.small:
            curve = job.curve
            most = max(job.rss, curve.still(job.age) * _safe(curve))
            return _plain(most, max(1.0, _MORE * (curve.duration - job.age)))
        return outlook(self.standing(job))

    def outlook_at_birth(self, candidate: Candidate) -> Outlook:
        """Return what a candidate is expected to hold if it starts now."""
        curve = candidate.curve
        if curve.peak <= self.small:
            return _plain(curve.peak * _safe(curve), _MORE * curve.duration)
        return from_birth(curve, candidate.width)

    def growth_left(self, job: LiveJob, *, doubt: bool = True) -> float:
        """Return by how much the job may still grow until its end, with its doubt, or is just expected to."""
        at = self.standing(job)
        expected = max(0.0, at.curve.still(at.position) * at.scale * (1 + at.bias) - job.rss)
        return expected * (1 + at.spread) if doubt else expected

    def growth(self, job: LiveJob, seconds: float) -> float:
        """Return by how much the job may grow within so many seconds: by its curve, or because it has just grown so."""
        at = self.standing(job)
        by_curve = at.curve.largest(at.position, at.position + seconds * at.pace) * at.scale - job.rss
        return max(by_curve, self._rise(job) * min(seconds, SURGE))

    def surge(self, jobs: Iterable[LiveJob]) -> float:
        """Return by how much these jobs together may grow before a tick and its acts have had their effect."""
        return sum(self._rise(job) for job in jobs) * SURGE

    def _rise(self, job: LiveJob) -> float:
        """Bytes a second by which the job has just grown, as far as its curve is not to be trusted.

        Nothing before it was measured anew since its last stop: it would be stopped again for what it did before that.
        """
        if job.stale or not job.rise:
            return 0.0
        return job.rise * job.width * min(1.0, self.standing(job).spread / UNTRUSTED)


class Peaks:
    """Sums of peaks, as if all came at once and stayed: a test that is quick to pass, and safe."""

    def __init__(self, capacity: float) -> None:
        self._capacity = capacity
        self._sum = 0.0
        self._variance = 0.0

    def add(self, curve: Curve, held: float = 0.0) -> None:
        """Add a job. What it holds already counts more where that is more than was expected of it."""
        peak = max(curve.peak * (1 + curve.bias), _HELD * held)
        self._sum += peak
        self._variance += (curve.spread * peak) ** 2

    @property
    def room(self) -> float:
        """Bytes of the capacity that are left."""
        return self._capacity - self._sum - _PLENTY * math.sqrt(self._variance)

    def fit(self) -> bool:
        """Return whether everything that was added fits, with much caution."""
        return self.room >= 0


_PLENTY = 3.0
"""Standard deviations kept free where only peaks are compared."""

_HELD = 1.3
"""A job beyond its expected peak is taken for this much more than it holds."""

_MORE = 1.5
"""A small job is counted for this much longer than it is expected to run."""


def _safe(curve: Curve) -> float:
    return 1 + curve.spread + curve.bias


def _plain(size: float, seconds: float) -> Outlook:
    return even(size, _slots(math.ceil(seconds)))


@lru_cache(maxsize=16384)
def _slots(seconds: int) -> int:
    return next((slot for slot in range(1, len(EDGES)) if EDGES[slot] >= seconds), len(EDGES) - 1)


def age_order(job: LiveJob) -> tuple[float, int]:
    """Sort jobs by their age, the oldest first."""
    return job.started, job.jid
