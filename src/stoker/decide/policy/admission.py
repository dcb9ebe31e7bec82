"""Decides who may start or continue: compares curves over time with the capacity, and keeps room for jobs that wait.

Pure. Knows nothing of the emergency, processes or clocks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from stoker.decide.memory.curves import Curve
from stoker.decide.memory.outlook import Outlook
from stoker.decide.policy.emergency import BRAKE_SHARE, EARLY_AHEAD, leeway, stop
from stoker.decide.policy.situation import LOOK_AHEAD, Situation, age_order
from stoker.decide.policy.snapshot import Candidate, Decision, LiveJob
from stoker.decide.policy.waits import Wait
from stoker.model.units import format_bytes, format_duration

PATIENCE, PATIENCE_PER_PLACE = 64, 4
"""A job that was passed over this often, or this often per place, goes before all that were not, except urgent ones.
With more places, more jobs pass in the same time."""

STARVED = 4
"""A job that was passed over this many times as often goes before urgent jobs too, so that no stream of them starves
it."""

BACKFILL_DEPTH = 64
"""How many different expectations may fail to fit in one tick: of jobs larger than a fair share of the memory, and
again of all others. Batch schedulers have such a limit too (Slurm tests 500 jobs a round). Large jobs come first in
order and each has its own history: with a single limit, small jobs that fit into the rest would never be tried."""

RETRY_DEPTH = 8
"""How many candidates per tick may fit but be rejected because they would be stopped at once. The cause is mostly the
same for all."""

URGENT = 0.8
"""A job is urgent when it takes this share of the time that all running and waiting jobs together still take. Below 1,
because neither time is known exactly and a place where the job fits may take a while to come."""

GUESS, RARE = 0.5, 3.5
"""A duration is a guess from this relative standard deviation on, and may be off by so many of them: of hundreds of
files, a few take dozens of times as long as most."""

FEW = 0.05
"""Light jobs of guessed durations go early if they take no more than this share of the remaining time: a large share
would delay all others, and a small one costs little."""

GROWTH_WEIGHT = 1.3
"""How much each second before a large job's peak counts against it, in seconds of its duration (docs/policy.md)."""

SPREAD = 0.45
"""Share of the remaining time over which large jobs are spread out in the order. Sorted by their figures alone, jobs of
one kind would start together, peak together, and leave memory idle together."""

GOLDEN = (5**0.5 - 1) / 2
"""The fractional parts of its multiples fill the range from 0 to 1 evenly, wherever the count begins."""

THAW_SHARE = 0.3
"""Share of the reserve that may be promised to thawed jobs: less than the brake's share, or the brake would freeze them
again."""

THAW_SPACING = 2.0
"""Seconds after a freeze before anything thaws, so that the effect of the freeze is visible."""


_SHORT = "too little memory"

_RESTS = Wait("rest", "goes on soon; first the last freeze must show its effect")


class AdmissionRound:
    """One round of admissions: the memory promised so far, the free places, and the job that room is kept for.

    Starts or thaws no job that the next tick, given the same numbers, would have to stop.
    """

    def __init__(self, situation: Situation, slots: int, level: int, now: float) -> None:
        """`slots` of the `level` places are free."""
        self.situation = situation
        self.view = situation.view
        self.promise = situation.promise
        self.slots = slots
        self.now = now
        self._share = situation.capacity / level
        self._patience = patience(level)
        self.decisions: list[Decision] = []
        self.waiting: str = ""
        """The name of the job that room is kept for; empty while none waits."""
        self._closed = False
        """Whether a job waits that fits beside nothing."""
        self.waits: dict[int, Wait] = {}
        """Why each job that was tried waits."""
        self.rest: Wait | None = None
        """Why no other job was tried; None: there was no free place."""
        self._early: Decision | None = None
        self._started: list[LiveJob] = []
        self._leeway = leeway(situation)

    def thaw(self, frozen: Iterable[LiveJob]) -> None:
        """Thaw frozen jobs. Room is kept for each one that must wait, and nothing that starts now may delay it.

        First, and at once, those that a user command had stopped, oldest first; then those with the least left to
        grow, because they give memory back soonest.
        """
        rested = self.now - self.view.last_freeze >= THAW_SPACING
        waiting = []
        for job in sorted(frozen, key=self._thaw_order):
            rest = self.situation.outlook(job)
            self.promise.hold(-job.rss)
            if self.slots > 0 and self._may_go_on(job, rest):
                self.promise.add(rest)
                self._leeway -= self.situation.growth(job, LOOK_AHEAD)
                self.slots -= 1
                if not (job.by_word or rested):
                    # Its place and memory stay reserved: a job that starts there now would be in its way.
                    self.waits[job.jid] = _RESTS
                    continue
                self._started.append(job)
                need, spare = format_bytes(self.situation.most(job)), format_bytes(self._spare())
                why = f"needs up to {need}, leaves {spare} unpromised above the reserve"
                self.decisions.append(Decision("thaw", job.jid, why))
            else:
                self.promise.hold(job.rss)
                waiting.append((job, rest))
        for job, rest in waiting:
            if self.slots > 0:
                why, most = self._why_stays(job, rest), self.situation.most(job)
                self.waits[job.jid] = Wait("memory", why, size=self._above_reserve(), need=most)
            self.promise.hold(-job.rss)
            self._keep_room(rest, job.name, job.rss)

    def _thaw_order(self, job: LiveJob) -> tuple[bool, float, float, int]:
        return not job.by_word, 0.0 if job.by_word else self.situation.growth_left(job), *age_order(job)

    def _may_go_on(self, job: LiveJob, rest: Outlook) -> bool:
        """Return whether a frozen job may continue. Promises to frozen jobs may use a part of the reserve; otherwise
        the memory that they hold would stay locked up.

        A job that ran until a user command stopped it need only pass the brake, as it did before.
        """
        capacity, reserve = self.promise.capacity, self.view.reserve
        line = capacity + self.view.ramdisk.growth + BRAKE_SHARE * reserve
        if job.by_word and self.promise.fits_soon(rest, LOOK_AHEAD, line):
            return not self._stopped_again(job)
        if self.situation.growth(job, LOOK_AHEAD) > self._leeway:
            return False
        return self.promise.fits(rest, capacity=capacity + THAW_SHARE * reserve) and not self._stopped_again(job)

    def _stopped_again(self, job: LiveJob) -> str:
        """Say why the next tick would stop some job if this one also runs now; empty if it would not."""
        act = stop(self.situation.if_running((*self._started, job)), self.now)
        return "" if act is None else act.why

    def let_pass(self, frozen: Sequence[LiveJob], room: float) -> None:
        """If nothing fits, thaw the frozen job with the least left to grow, if `room` suffices for it to pass its peak.

        After its peak it gives back more than that.
        """
        if not frozen or self.now - self.view.last_freeze < THAW_SPACING:
            return
        growth, *_, job = min((self.situation.growth_left(j), *age_order(j), j) for j in frozen)
        if growth <= room and not self._stopped_again(job):
            need, left = format_bytes(growth), format_bytes(self.view.available)
            why = f"needs up to {need} more to pass its peak, {left} left"
            self.decisions.append(Decision("thaw", job.jid, why))
            self.slots = 0

    def admit(self, candidates: Iterable[Candidate]) -> None:
        """Admit every candidate that fits, in order; the first that does not fit is held with room kept for it, and
        later ones are backfilled.

        If none can start, the first begins early rather than leave a core idle.
        """
        self._admit_what_fits(candidates)
        early = self._early
        if early is not None and not any(d.action in ("admit", "thaw") for d in self.decisions):
            self.decisions = [*(d for d in self.decisions if d.jid != early.jid), early]

    def _admit_what_fits(self, candidates: Iterable[Candidate]) -> None:
        refused: dict[Outlook, Wait] = {}
        in_vain = {True: 0, False: 0}
        retries = 0
        for candidate in candidates:
            if self.slots <= 0:
                return
            if retries >= RETRY_DEPTH or in_vain[False] > BACKFILL_DEPTH:
                self.rest = self._kept()
                return
            large = candidate.curve.peak > self._share
            # Beside a job that waits for the whole memory, large ones would only be frozen for what runs.
            if in_vain[large] > BACKFILL_DEPTH or (large and self._closed):
                self.rest = self._kept()
                continue
            # Try each distinct expectation once per tick; one that was refused is refused again at no cost.
            job, again = self.situation.outlook_at_birth(candidate), ""
            if job not in refused and self._fits(candidate, job):
                again = self._stopped_again(born := self._newborn(candidate))
                if not again:
                    self._admit(candidate, born, job)
                    continue
                retries += 1
            if job not in refused:
                refused[job] = self._refusal(candidate, job, again)
                in_vain[large] += 1
            self.waits[candidate.jid] = refused[job]
            # Room is kept only for the first that must wait; later ones are backfilled where they fit.
            if not self.waiting:
                self._wait(candidate, job, again)

    def _wait(self, candidate: Candidate, job: Outlook, again: str) -> None:
        """Hold the first candidate that does not fit, keep room for it if possible, and see if it may begin early."""
        if not candidate.held:
            self.decisions.append(Decision("hold", candidate.jid, self._why_held(candidate, job, again)))
        self._early = self._may_begin(candidate, job)
        if candidate.first or candidate.passed_over >= self._patience or self._may_ever_fit(job):
            self._take_back(candidate)
            self._keep_room(job, candidate.name, candidate.rss)

    def _fits(self, candidate: Candidate, job: Outlook) -> bool:
        """Return whether it fits; the memory that it holds already is promised to it, and is part of its need."""
        self._take_back(candidate)
        fits = self.promise.fits(job)
        if candidate.rss:
            self.promise.hold(candidate.rss)
        return fits

    def _take_back(self, candidate: Candidate) -> None:
        """Withdraw the promise of what it holds, because its whole need is promised next."""
        if candidate.rss:
            self.promise.hold(-candidate.rss)

    def _admit(self, candidate: Candidate, born: LiveJob, job: Outlook) -> None:
        self._take_back(candidate)
        self.promise.add(job)
        self._started.append(born)
        self.slots -= 1
        self.decisions.append(Decision("admit", candidate.jid, self._why_admitted(candidate, job)))

    def _newborn(self, candidate: Candidate, *, early: bool = False) -> LiveJob:
        """Return the candidate as a live job, as the next tick will see it once it runs."""
        c = candidate
        return LiveJob(c.jid, c.name, self.now, 0.0, c.rss, c.curve, c.rss, width=c.width, alone=c.alone, early=early)

    def _may_begin(self, candidate: Candidate, job: Outlook) -> Decision | None:
        """Return its admission next to a single running job, if there is room for what it holds in the next second
        while that job continues.

        It will then be frozen, unless the other job's memory falls sooner; while frozen it holds nothing that the other
        is expected to need. Uncertainty is ignored: if the other needs more, the work done so far is lost. That risk is
        worth taking for half of a machine but not for a twentieth: where many jobs run, a job that must run again alone
        costs more.
        """
        if len(self.view.running) != 1 or self.view.frozen or not self._may_ever_fit(job):
            return None
        room = self.promise.capacity - max(self.promise.mean)
        if max(job.mean[:EARLY_AHEAD], default=0.0) > room or self._stopped_again(self._newborn(candidate, early=True)):
            return None
        need, left = _need_text(candidate, job), format_bytes(room)
        why = f"fits for now: needs up to {need}, may hold {left} until the other shrinks"
        return Decision("admit", candidate.jid, why, early=True)

    def _may_ever_fit(self, job: Outlook) -> bool:
        """Return whether an otherwise empty machine is expected to hold it. A job that never fits starts when nothing
        else runs; until it has waited long enough, no other job has to wait for it."""
        return job.peak <= self.view.budget - self.view.kept

    def _keep_room(self, job: Outlook, name: str, held: float = 0.0) -> None:
        """Keep room as EASY backfill does: the job gets the first slot in which it fits, and no other job may take it.

        Until then it keeps `held` bytes. If there is no such slot within the horizon, the job fits beside nothing and
        starts once nothing else runs: until then others may start only if they are not large, and end before what runs.
        """
        self.waiting = self.waiting or name
        slot = self.promise.earliest(job, held)
        self.promise.hold(held, slot)
        if slot is None:
            self._closed = True
            self.promise.close(self.promise.end())
        else:
            self.promise.add(job, slot)

    def _spare(self) -> float:
        """Return the bytes that may still be promised, after the uncertainty of other jobs' needs."""
        return max(0.0, self.promise.free())

    def _refusal(self, candidate: Candidate, job: Outlook, again: str) -> Wait:
        if self.waiting and not again:
            return self._kept()
        room = self.view.available if again else self._spare()
        return Wait("memory", self._why_held(candidate, job, again), size=room, need=_need(candidate, job))

    def _kept(self) -> Wait:
        """Say why jobs after the first one that waits do not fit, or may not start."""
        left = self._above_reserve()
        for_whom = f"{self.waiting}, and for what runs" if self.waiting else "what runs, and for those before it"
        why = f"memory is kept for {for_whom}; {format_bytes(left)} left above the reserve"
        return Wait("room", why, self.waiting, left)

    def _why_stays(self, job: LiveJob, rest: Outlook) -> str:
        """Say why a frozen job stays frozen."""
        most, left = self.situation.most(job), self._above_reserve()
        why, kept = ("running jobs go first", ", kept for them") if left >= rest.peak - job.rss else (_SHORT, "")
        need = f"it holds {format_bytes(job.rss)} and needs up to {format_bytes(most)}"
        return f"{why}; {need}, {format_bytes(left)} left above the reserve{self._for_ramdisk()}{kept}"

    def _above_reserve(self) -> float:
        """Return the bytes available now beyond the reserve; some may be promised to running jobs."""
        return max(0.0, self.view.available - self.view.kept)

    def _why_admitted(self, candidate: Candidate, job: Outlook) -> str:
        need, spare = _need_text(candidate, job), format_bytes(self._spare()) if self.waiting else ""
        if self.waiting:
            return f"needs up to {need}; backfilled while {self.waiting} waits, leaves {spare} unpromised"
        return f"needs up to {need} of {format_bytes(self.promise.capacity)}"

    def _why_held(self, candidate: Candidate, job: Outlook, again: str) -> str:
        if again:
            return f"would have to be stopped at once: {again}"
        when = f"within {format_duration(candidate.curve.duration)}" if candidate.curve.duration >= 1 else "at once"
        return (
            f"needs up to {_need_text(candidate, job)} {when}, "
            f"{format_bytes(self._spare())} unpromised above the reserve{self._for_ramdisk()}"
        )

    def _for_ramdisk(self) -> str:
        """Say how much is kept for the RAM disk, if anything is."""
        growth = self.view.ramdisk.growth
        return f" and {format_bytes(growth)} for the RAM disk" if growth else ""


def _need_text(candidate: Candidate, job: Outlook) -> str:
    return format_bytes(_need(candidate, job))


def _need(candidate: Candidate, job: Outlook) -> float:
    """Return how much a candidate may need; never less than its expected peak."""
    return max(job.peak, candidate.curve.peak)


def in_order(candidates: Sequence[Candidate], share: float, level: int, at_work: float = 0.0) -> list[Candidate]:
    """Return the candidates in the order in which to try them; `at_work` is the CPU seconds that live jobs still take.

    0. Jobs that were killed: they run again first.
    1. Jobs passed over so often that they would starve.
    2. Jobs that take about as long as all running and waiting jobs take together: started later, such a job would keep
       the whole machine waiting for one core. The longest first, counting the jobs that wait for it. A light job whose
       duration is a guess counts with what it might take, if there are few such jobs: one may take minutes.
    3. Jobs passed over too often, by age. Towards the end of a build these may be all that is left: the order alone
       lets most of the deck pass a large job whose turn comes late. Before urgent ones, they would all go by age.
    4. Jobs larger than a fair `share` of the memory. They need memory until their peak, and a job whose memory falls
       early lets others grow sooner: so the time after the peak counts for a job, the time before it against it. An
       offset by job number spreads them out, so that kinds are mixed at any time.
    5. The rest by the longest chain of jobs that begins with them, if a graph shows it: links, generators and long jobs
       late in the order leave cores idle at the end. Otherwise by age rather than length, because only jobs that leave
       the deck make room for jobs not yet seen.
    """
    together = (sum(c.curve.duration for c in candidates) + at_work) / level
    most = patience(level)
    guessed = sum([c.curve.duration for c in candidates if _is_guess(c.curve, share)])
    light = share if guessed <= FEW * together * level else 0.0
    return sorted(candidates, key=lambda c: _deck_order(c, _tail(c, light), share, together, most))


def patience(level: int) -> int:
    """Return how often a job is passed over before it goes first, except for urgent ones."""
    return max(PATIENCE, PATIENCE_PER_PLACE * level)


def _is_guess(curve: Curve, light: float) -> bool:
    """Whether nobody knows how long such a job takes, and it stays below `light` bytes."""
    return curve.time_spread >= GUESS and curve.peak <= light


def _tail(candidate: Candidate, light: float) -> float:
    """Return the seconds until a job and all that waits for it have ended, if it starts now."""
    curve = candidate.curve
    possible = curve.duration * math.exp(RARE * curve.time_spread) if _is_guess(curve, light) else curve.duration
    return max(possible, candidate.chain or 0.0)


def _deck_order(
    candidate: Candidate, tail: float, share: float, together: float, most: int
) -> tuple[int, float, float, int]:
    curve = candidate.curve
    if candidate.first:
        rank, key = 0, 0.0
    elif candidate.passed_over >= STARVED * most:
        rank, key = 1, 0.0
    elif tail > URGENT * together:
        rank, key = 2, -tail
    elif candidate.passed_over >= most:
        rank, key = 3, 0.0
    elif curve.peak > share:
        offset = SPREAD * together * (candidate.jid * GOLDEN % 1.0)
        rank, key = 4, GROWTH_WEIGHT * curve.peak_age - curve.duration + offset
    else:
        rank, key = 5, -(candidate.chain or 0.0)
    return rank, key, candidate.arrived, candidate.jid
