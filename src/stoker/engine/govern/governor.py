"""Asks the policy who may run, at every birth, exit and tick, and makes the gate carry out its decisions.

Unaware of how jobs are found, of the journal's file and of viewers.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from stoker.decide.policy.calm import is_calm
from stoker.decide.policy.decide import level_of, rule, with_order
from stoker.decide.policy.snapshot import Decision, View
from stoker.decide.policy.waits import NO_WAITS, Wait, Waits
from stoker.engine.govern.deck import Chains, DeckView
from stoker.engine.govern.gate_driver import GateDriver
from stoker.engine.govern.hosted_gate import without_starting
from stoker.engine.govern.jobserver import Jobserver
from stoker.engine.govern.level_control import LevelControl
from stoker.engine.govern.memory_watch import MemoryWatch
from stoker.engine.jobs.managed_job import Life, ManagedJob
from stoker.engine.jobs.remote_watch import RemoteWatch
from stoker.engine.jobs.table import JobExpectations, JobTable
from stoker.model import events as ev
from stoker.model.units import format_bytes

MAX_ROUNDS = 200
"""Rounds of asking and acting per tick; more than any machine has jobs to freeze one by one."""

MOST_TOO_LARGE = 3
"""Jobs of a build of which a warning says that they alone need more than the budget."""


@dataclass(frozen=True, slots=True)
class Precautions:
    """How jobs of these outputs run after they were killed. `alone`: first and alone, since nobody knows what they
    need.

    `first`: first, next to what fits, since their need is known. `one_by_one`: one job at a time, whatever it is.
    """

    alone: frozenset[str] = frozenset()
    first: frozenset[str] = frozenset()
    one_by_one: bool = False


class Governor:
    """Decides about the jobs of one build."""

    def __init__(
        self,
        jobs: JobTable,
        expected: JobExpectations,
        level: LevelControl,
        memory: MemoryWatch,
        gate: GateDriver,
        chains: Chains,
        remote: RemoteWatch,
        jobserver: Jobserver | None = None,
    ) -> None:
        self.deck = DeckView(jobs, expected, chains, remote)
        self._jobs = jobs
        self._level = level
        self._memory = memory
        self._gate = gate
        self._remote = remote
        self._jobserver = jobserver
        self._precautions = Precautions()
        self._costly = False
        self._last_freeze = self._last_shed = -math.inf
        self._waits = NO_WAITS
        self._too_large: set[int] = set()

    # -- what counts -------------------------------------------------------------------------------------------

    def take_precautions(self, precautions: Precautions) -> None:
        """Apply these precautions from now on."""
        self._precautions = precautions
        self._level.serialise(one_by_one=precautions.one_by_one)

    def set_costly(self, *, costly: bool) -> None:
        """Note whether a package builder such as pip runs above a scheduler: it starts all over when a job has been
        ended."""
        self._costly = costly

    def name(self, job: ManagedJob) -> None:
        """The output of the job has become known: precautions may apply to it."""
        job.alone = job.alone or job.job.output in self._precautions.alone
        job.first = job.first or job.job.output in self._precautions.first

    def receive(self, jobs: Sequence[ManagedJob]) -> list[ev.Event]:
        """Decide about new jobs, oldest first, and hold those that may not run."""
        if not jobs:
            return []
        for job in jobs:
            self.name(job)
            self._gate.prefer(job)
            self._jobs.add(job)
        places = self._has_places()
        if not places:
            self._gate.hold(jobs)
        decided = self.step() if places or self._memory.tight() else []
        self._gate.hold(jobs)
        return [*(event for job in jobs for event in self._jobs.announce(job)), *decided]

    def _has_places(self) -> bool:
        return self._level.paused == "no" and len(self._jobs.having(Life.RUNNING)) < self._level.level

    def is_calm(self) -> bool:
        """Say whether births and ends may be answered a moment later, by what is known of memory and of the jobs."""
        level, memory = self._level, self._memory
        # A client of a cache's server, or of another machine, hands its work over within milliseconds.
        hands_over = self._jobs.launched or self._gate.hosted.used
        if self._gate.open or level.paused != "no" or level.one_by_one or hands_over or memory.tight():
            return False
        jobs = [(job.tool, self._jobs.curve(job)) for job in self._jobs.counting()]
        return is_calm(memory.last.available - memory.reserve, level.cores, jobs)

    # -- deciding ----------------------------------------------------------------------------------------------

    def snapshot(self) -> View:
        """Return the state of the world for a decision."""
        memory, level = self._memory.renew(), self._level
        orders, thresholds, sample = level.orders, level.limits.thresholds, self._memory.sample
        stall = sample.pressure_memory if sample is not None else None
        taken = self._jobserver.used if self._jobserver is not None else 0
        by_person = None if orders.level is None else max(1, orders.level - taken)
        slots = self._remote.slots if self._jobs.launched else 0
        return View(
            budget=memory.limit,
            available=memory.available,
            reserve=thresholds.reserve_of(memory.limit),
            floor=thresholds.floor_of(memory.limit),
            cpu_slots=max(1.0, level.slots - taken),
            level=1 if level.one_by_one else by_person,
            paused=orders.paused,
            pressure=stall.some if stall is not None else None,
            pressure_own=stall is not None and stall.own,
            running=self.deck.live(Life.RUNNING),
            frozen=self.deck.live(Life.FROZEN),
            candidates=self.deck.candidates(),
            last_freeze=self._last_freeze,
            last_shed=self._last_shed,
            guarded=orders.guarded,
            ramdisk=self._memory.ramdisk,
            pressure_line=level.pressure_line,
            spare=level.spare,
            tokens=taken,
            costly=self._costly,
            remote_slots=slots,
            remote_jobs=self.deck.remote_jobs() if slots else 0,
            remote_waiting=self.deck.waiting_for_a_host() if self._jobs.launched else 0,
            cores_taken=level.core_watch.taken,
            cores=level.cores,
        )

    def step(self) -> list[ev.Event]:
        """Ask and act until there are no more decisions, reading memory again each time."""
        if self._gate.open:
            self._settle_hosted(())
            return []
        events: list[ev.Event] = []
        before = self._waits
        for _ in range(MAX_ROUNDS):
            view = self.snapshot()
            decided, self._waits = rule(view, time.monotonic())
            decisions = without_starting(decided, self._jobs) if decided else decided
            self._signal(decisions)
            for decision in decisions:
                events += self._carry_out(decision)
            if _settled(view, decisions):
                break
        self._settle_hosted(self._jobs)
        self._offer_slots()
        # At once, unlike other reasons: a job that has ended runs alone on no screen, and its banner is gone already.
        return [*events, *self.reasons()] if _alone_in(before) != _alone_in(self._waits) else events

    def _settle_hosted(self, jobs: Iterable[ManagedJob]) -> None:
        if self._gate.hosted.used:
            self._gate.hosted.settle(jobs)

    def _offer_slots(self) -> None:
        """Offer slots as spare only while nobody on deck wants them."""
        if self._jobserver is not None:
            spare = self._level.level - len(self._jobs.having(Life.RUNNING)) - self._jobserver.used
            wanted = self._level.paused != "no" or self._jobs.on_deck() or self._jobs.having(Life.FROZEN)
            self._jobserver.offer(0 if spare <= 0 or wanted or self._memory.tight() else spare)

    # -- carrying out ------------------------------------------------------------------------------------------

    def _signal(self, decisions: Iterable[Decision]) -> None:
        """Stop or continue all jobs of these decisions at once: a pause must not take one scan per job."""
        for action, act in (("freeze", self._gate.freeze), ("thaw", self._gate.thaw)):
            act([job for d in decisions if d.action == action and (job := self._jobs.get(d.jid))])

    def _carry_out(self, decision: Decision) -> list[ev.Event]:
        job = self._jobs.get(decision.jid)
        if job is None:
            return []
        if decision.action == "hold":
            job.held, job.candidate = True, None
            return [_decided(job, decision)]
        acts = {"admit": self._admit, "freeze": self._freeze, "thaw": self._thaw, "shed": self._shed}
        return acts[decision.action](job, decision)

    def _admit(self, job: ManagedJob, decision: Decision) -> list[ev.Event]:
        newborn = job.life is Life.NEWBORN
        reasons = [_decided(job, decision)] if job.held or self._memory.tight() else []
        job.admitted, job.early = time.monotonic(), decision.early
        self.deck.pass_over(job)
        moved = self._gate.release(job)
        return [*self._warn_if_too_large(job), *reasons, *moved] if moved or newborn else []

    def _warn_if_too_large(self, job: ManagedJob) -> list[ev.Event]:
        """Return a warning if this job alone needed more than the budget in an earlier build."""
        curve, budget = self._jobs.curve(job), self._memory.last.limit
        if not curve.source.startswith("history") or curve.peak <= budget:
            return []
        text = f"alone needs ~{format_bytes(curve.peak)}, more than the budget of {format_bytes(budget)}"
        return self._warn(job, f"{text}; it runs alone and is expected to exceed it")

    def _warn_if_over(self) -> list[ev.Event]:
        """Return a warning if the budget is exceeded while one job runs: nothing is left that could be stopped for
        it."""
        memory = self._memory.last
        if memory.used <= memory.limit:
            return []
        running = self._jobs.having(Life.RUNNING)
        if len(running) != 1:
            return []
        (job,) = running
        text = f"runs alone and holds {format_bytes(job.rss)}"
        if frozen := self._jobs.having(Life.FROZEN):
            kept, those = format_bytes(sum(other.rss for other in frozen)), _frozen_text(len(frozen))
            text = f"holds {format_bytes(job.rss)} and is the only one that runs, {those} {kept}"
        text += f": {format_bytes(memory.used)} are used"
        return self._warn(job, f"{text}, more than the budget of {format_bytes(memory.limit)}")

    def _warn(self, job: ManagedJob, text: str) -> list[ev.Event]:
        """Say it once of a job, and of a few jobs only."""
        if job.jid in self._too_large or len(self._too_large) >= MOST_TOO_LARGE:
            return []
        self._too_large.add(job.jid)
        return [ev.Noticed("warning", f"{job.job.label} {text}")]

    def _freeze(self, job: ManagedJob, decision: Decision) -> list[ev.Event]:
        # What a pause or a level froze is reported with that; a freeze for a job alone is an entry, and so is its end.
        job.moved_by = ("word" if decision.announced else "alone") if decision.by_word else ""
        if not decision.by_word:
            self._last_freeze = time.monotonic()
        moved = self._gate.moved(job, Life.FROZEN)
        return [moved] if decision.announced else [_decided(job, decision), moved]

    def _thaw(self, job: ManagedJob, decision: Decision) -> list[ev.Event]:
        before = job.moved_by
        if job.by_word or before == "fallback":
            job.moved_by = ""
        if before == "alone":
            decision = replace(decision, why=f"nothing runs alone any more; {decision.why}")
        moved = self._gate.moved(job, Life.RUNNING)
        return [moved] if before in ("word", "fallback") else [_decided(job, decision), moved]

    def _shed(self, job: ManagedJob, decision: Decision) -> list[ev.Event]:
        self._last_shed = time.monotonic()
        return [self._gate.kill(job, "shed", why=decision.why), _decided(job, decision)]

    def drop(self, sid: int, failed: str, why: str) -> tuple[list[ManagedJob], list[ev.Event]]:
        """The scheduler will start nothing more, since `failed` has: end the jobs that it started only because of the
        window."""
        waiting = self.deck.too_many(sid, failed)
        self._gate.drop(waiting)
        what = "drop 1 job on deck" if len(waiting) == 1 else f"drop {len(waiting)} jobs on deck"
        return waiting, [ev.Decided("governor", what, why)] if waiting else []

    # -- what to announce --------------------------------------------------------------------------------------

    def news(self) -> list[ev.Event]:
        """Announce jobs whose expected peak has clearly changed, and why jobs wait, if the reason is new."""
        moved = []
        for job in self.deck.outdated():
            moved.append(self._jobs.describe(job))
            if job.wait is not None and job.wait.need:
                job.wait = None  # its figures are of the moment before
        return [*self._warn_if_over(), *moved, *self.reasons()]

    def reasons(self) -> list[ev.Event]:
        """Announce why jobs wait on deck or frozen, by the last decision, if that is new."""
        if self._gate.open:
            return []
        # Only where jobs on deck wait for a place does the order need another snapshot.
        ordered = self._waits.for_a_place and self._jobs.on_deck()
        waits = with_order(self._waits, self.snapshot()) if ordered else self._waits
        return [*_new_reasons(self._jobs, waits)]


def _alone_in(waits: Waits) -> list[str]:
    """Return for which job that runs alone others wait, on deck and frozen."""
    return [wait.key for wait in (waits.on_deck, waits.frozen) if wait is not None and wait.cause == "alone"]


def _frozen_text(count: int) -> str:
    return "1 frozen job holds" if count == 1 else f"{count} frozen jobs hold"


def _settled(view: View, decisions: tuple[Decision, ...]) -> bool:
    """Say whether asking again would change nothing: only admissions, and no place or no candidate left."""
    if any(d.action not in ("admit", "hold") for d in decisions):
        return False
    admitted = sum(d.action == "admit" for d in decisions)
    full = len(view.running) + admitted >= level_of(view)
    return admitted == 0 or full or admitted == len(view.candidates)


def _decided(job: ManagedJob, decision: Decision) -> ev.Decided:
    return ev.Decided("governor", f"{decision.action} {job.job.label}", decision.why)


def _new_reasons(jobs: Iterable[ManagedJob], waits: Waits) -> list[ev.JobsWaiting]:
    """Return what is new about why these jobs wait; each job keeps what was announced."""
    news: dict[Wait, list[int]] = {}
    for job in jobs:
        wait = _reason(job, waits)
        if wait is not None and wait.is_news_after(job.wait):
            job.wait = wait
            news.setdefault(wait, []).append(job.jid)
    return [ev.JobsWaiting(tuple(jids), wait.cause, wait.why) for wait, jids in news.items()]


def _reason(job: ManagedJob, waits: Waits) -> Wait | None:
    if not (job.is_stopped and job.counts):
        return None
    return waits.of.get(job.jid) or (waits.on_deck if job.life is Life.ON_DECK else waits.frozen)
