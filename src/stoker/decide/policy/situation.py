"""The figures derived once from a snapshot: every job's position, the promised memory, the capacity.

Pure. Does not know what will be decided.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property, lru_cache

from stoker.decide.memory.curves import Curve
from stoker.decide.memory.outlook import (
    AS_NOW,
    EDGES,
    SLOTS,
    Outlook,
    PromisedMemory,
    Standing,
    even,
    from_birth,
    outlook,
)
from stoker.decide.policy.curve_position import locate
from stoker.decide.policy.snapshot import Candidate, LiveJob, View

CAUTION = 1.4
"""Standard deviations of the summed uncertainty that promises keep free. The brake covers rarer cases: more caution
leaves cores idle, less makes the brake act all the time (docs/policy.md has the figures)."""

LOOK_AHEAD = AS_NOW
"""Seconds of growth that must always fit, and slots of the promise for that. nvcc's cicc grows by up to 0.2 GiB/s;
there is a tick every second."""

SURGE = 1.0
"""Seconds for which a growing job is assumed to keep growing, whatever its curve says: four ticks."""

UNTRUSTED = 0.3
"""From this spread on, a job's measured growth says more than its curve."""

SMALL = 0.01
"""Jobs below this share of the budget count with their peak for their whole life: more precision would not matter."""


class Situation:
    """A view, and everything that follows from it before a decision."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.small = view.budget * SMALL
        self._standings: dict[int, Standing] = {}
        self._outlooks: dict[int, Outlook] = {}

    def if_running(self, jobs: Iterable[LiveJob]) -> Situation:
        """Return the same situation as if these jobs ran: thawed ones, or candidates as they would start."""
        jobs, view = tuple(jobs), self.view
        running = {j.jid for j in jobs}
        frozen = tuple(j for j in view.frozen if j.jid not in running)
        waiting = tuple(c for c in view.candidates if c.jid not in running) if self.on_deck else view.candidates
        after = Situation(replace(view, running=(*view.running, *jobs), frozen=frozen, candidates=waiting))
        after._standings, after._outlooks = self._standings, self._outlooks
        after._running_promise = self._running_promise.copied()
        for job in jobs:
            after._running_promise.add(after.outlook(job))
        return after

    @cached_property
    def by_age(self) -> list[LiveJob]:
        """The running jobs, oldest first."""
        return sorted(self.view.running, key=age_order)

    @cached_property
    def capacity(self) -> float:
        """Bytes that the build's jobs may hold together: what they hold plus what is available, minus the reserve and
        the expected growth of a RAM disk.

        Whatever else grows on this machine reduces it, whether or not the build's own figures are exact.
        """
        own = sum(j.rss for j in self.view.running) + sum(j.rss for j in self.view.frozen) + self.on_deck
        return min(self.view.budget, own + self.view.available) - self.view.kept

    @cached_property
    def on_deck(self) -> float:
        """Bytes held by candidates that were stopped only after they had begun."""
        return sum([c.rss for c in self.view.candidates])

    @cached_property
    def at_work(self) -> float:
        """CPU seconds that live jobs are expected to need until they end."""
        live = (*self.view.running, *self.view.frozen)
        return sum([max(0.0, j.curve.duration - j.age) for j in live])

    @cached_property
    def promise(self) -> PromisedMemory:
        """What all live jobs are expected to hold from now on if no other job is started or thawed; admissions add to
        it."""
        promise = self._running_promise.copied()
        self._add_standing(promise, SLOTS)
        return promise

    @cached_property
    def soon(self) -> PromisedMemory:
        """The promise for LOOK_AHEAD slots, and nothing after them: all that the brakes ask for.

        With thirty jobs it takes a quarter of the time. Only where jobs wait is the whole promise asked for as well.
        """
        if "promise" in self.__dict__:
            return self.promise
        promise = PromisedMemory(self.capacity, CAUTION)
        for job in self.view.running:
            promise.add(self.outlook_soon(job))
        self._add_standing(promise, LOOK_AHEAD)
        return promise

    def _add_standing(self, promise: PromisedMemory, slots: int) -> None:
        """Add what does not run: it keeps what it holds."""
        for job in self.view.frozen:
            promise.hold(job.rss, slots)
        if self.on_deck:
            promise.hold(self.on_deck, slots)

    @cached_property
    def _running_promise(self) -> PromisedMemory:
        promise = PromisedMemory(self.capacity, CAUTION)
        for job in self.view.running:
            promise.add(self.outlook(job))
        return promise

    def peaks(self) -> Peaks:
        """Return the summed peaks of all running jobs, next to what the jobs on deck hold."""
        peaks = Peaks(self.capacity - self.on_deck)
        for job in self.view.running:
            peaks.add(job.curve, job.rss)
        return peaks

    def standing(self, job: LiveJob) -> Standing:
        """Return the job's position on its curve."""
        known = self._standings.get(job.jid)
        if known is None:
            known = self._standings[job.jid] = locate(job)
        return known

    def outlook(self, job: LiveJob) -> Outlook:
        """Return what a live job is expected to hold if it continues now."""
        known = self._outlooks.get(job.jid)
        if known is None:
            known = self._outlooks[job.jid] = self._look_out(job)
        return known

    def outlook_soon(self, job: LiveJob) -> Outlook:
        """Return what a live job is expected to hold in the next LOOK_AHEAD slots if it continues now."""
        return self._outlooks.get(job.jid) or self._look_out(job, LOOK_AHEAD)

    def is_small(self, job: LiveJob) -> bool:
        """Return whether it counts with its peak for its whole life."""
        return job.curve.peak <= self.small and job.rss <= self.small

    def _look_out(self, job: LiveJob, slots: int = SLOTS) -> Outlook:
        if self.is_small(job):
            curve = job.curve
            most = max(job.rss, curve.still(job.age) * _safe(curve))
            return _plain(most, max(1.0, _MORE * (curve.duration - job.age)))
        return outlook(self.standing(job), slots)

    def outlook_at_birth(self, candidate: Candidate) -> Outlook:
        """Return what a candidate is expected to hold if it starts now."""
        curve = candidate.curve
        if curve.peak <= self.small:
            return _plain(curve.peak * _safe(curve), _MORE * curve.duration)
        return from_birth(curve, candidate.width)

    def growth_left(self, job: LiveJob, *, doubt: bool = True) -> float:
        """Return by how much the job may still grow until its end; without `doubt`, by how much it is expected to."""
        at = self.standing(job)
        expected = max(0.0, at.curve.still(at.position) * at.scale * (1 + at.bias) - job.rss)
        return expected * (1 + at.spread) if doubt else expected

    def most(self, job: LiveJob) -> float:
        """Return how much a live job needs up to, as reasons say it: never less than its expected peak."""
        return max(self.outlook(job).peak, job.rss + self.growth_left(job, doubt=False))

    def growth(self, job: LiveJob, seconds: float) -> float:
        """Return by how much the job may grow within so many seconds, at most LOOK_AHEAD, by its curve or by its latest
        growth rate."""
        at = self.standing(job)
        by_curve = at.curve.largest(at.position, at.position + seconds * at.pace * at.awake) * at.scale - job.rss
        return max(by_curve, self._rise(job) * min(seconds, SURGE))

    def surge(self, jobs: Iterable[LiveJob]) -> float:
        """Return by how much these jobs together may grow before a tick's actions take effect."""
        rises = ((job.rise * self._weight(job), job.cores) for job in jobs if job.rise)
        return _shared(rises, self.view.cores) * SURGE

    @cached_property
    def running_surge(self) -> float:
        """The surge of all running jobs."""
        return self.surge(self.view.running)

    def measured_growth(self) -> tuple[int, float]:
        """Return how many running jobs were last measured to grow, and the bytes per second that they can add."""
        rises = [(job.rise, job.cores) for job in self.view.running if job.rise and not job.stale]
        return len(rises), _shared(rises, self.view.cores)

    def _rise(self, job: LiveJob) -> float:
        """Return the bytes per second by which the job has just grown, weighted by how uncertain its curve is."""
        return job.rise * job.cores * self._weight(job) if job.rise else 0.0

    def _weight(self, job: LiveJob) -> float:
        """Return how much of its growth counts, 0 to 1: its curve may know better.

        0 until it is measured again after a stop: otherwise it would be stopped again for what it did before.
        """
        return 0.0 if job.stale else min(1.0, self.standing(job).spread / UNTRUSTED)


def _shared(rises: Iterable[tuple[float, float]], cores: float) -> float:
    """Return the bytes per second by which jobs grow at most, given the bytes per CPU second and the cores of each.

    More jobs than cores cannot all compute at once: the fastest growing get the cores.
    """
    growth = 0.0
    for rise, wanted in sorted(rises, reverse=True):
        used = min(wanted, cores)
        growth, cores = growth + rise * used, cores - used
    return growth


class Peaks:
    """Sums of peaks, as if all came at once and stayed: a quick and safe test."""

    def __init__(self, capacity: float) -> None:
        self._capacity = capacity
        self._sum = 0.0
        self._variance = 0.0

    def add(self, curve: Curve, held: float = 0.0) -> None:
        """Add a job. If it holds more than expected already, that counts instead, with a margin."""
        peak = max(curve.peak * (1 + curve.bias), _HELD * held)
        self._sum += peak
        self._variance += (curve.spread * peak) ** 2

    @property
    def room(self) -> float:
        """Bytes of the capacity that remain."""
        return self._capacity - self._sum - _PLENTY * math.sqrt(self._variance)

    def fit(self) -> bool:
        """Return whether everything added fits, with a wide safety margin."""
        return self.room >= 0


_PLENTY = 3.0
"""Standard deviations kept free when only peaks are compared."""

_HELD = 1.3
"""A job above its expected peak counts with this multiple of what it holds."""

_MORE = 1.5
"""A small job counts for this multiple of its expected duration."""


def _safe(curve: Curve) -> float:
    return 1 + curve.spread + curve.bias


def _plain(size: float, seconds: float) -> Outlook:
    return even(size, _slots(math.ceil(seconds)))


@lru_cache(maxsize=16384)
def _slots(seconds: int) -> int:
    return next((slot for slot in range(1, len(EDGES)) if EDGES[slot] >= seconds), len(EDGES) - 1)


def age_order(job: LiveJob) -> tuple[float, int]:
    """Sort key: jobs by age, the oldest first."""
    return job.started, job.jid
