"""Progress as numbers: how much of the build is done, summed over its schedulers.

Unaware of screens. Scripts rely on this invariant: finished + running + on_deck + frozen <= total at every moment, and
finished == total once a build has succeeded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from stoker.model.attempts import left_by
from stoker.model.killed import failed_steps, killed_for_good, killed_in_attempt, step_runs_again
from stoker.model.remote import HOSTLESS
from stoker.model.state import BuildState, Job, Scheduler

_BROKEN_OFF = ("stopping", "stopped", "failed")


@dataclass(frozen=True, slots=True)
class Progress:
    """Counts of jobs. `total_known` is False while `total` is only a lower bound."""

    finished: int
    total: int
    running: int
    on_deck: int
    frozen: int
    failed: int
    total_known: bool
    percent: float | None
    remote: int = 0
    """Those of the running ones that another machine compiles."""
    killed: int = 0
    """Jobs that did not fail but were killed, and are to run again if the step does."""
    hostless: int = 0
    """Those of the running ones that wait for a host, their first one or another one."""
    interrupted: int = 0
    """Jobs that had begun when a stop of the build, or their scheduler's death, ended them."""
    begun: float | None = None
    """Where `percent` is make's: the percentage in its own log, which counts what has begun."""

    @property
    def local(self) -> int:
        """Those that run on this machine: as many as the level allows, at most."""
        return self.running - self.remote - self.hostless

    @property
    def never_ran(self) -> int:
        """Those of `total` that no end is known of; after a build, those that were never started."""
        return max(0, self.total - self.finished - self.failed - self.killed - self.interrupted)

    @property
    def share(self) -> float | None:
        """The share done (0..1), or None while the total is unknown."""
        if self.percent is not None:
            return self.percent / 100
        if self.total_known and self.total:
            return self.finished / self.total
        return None


def progress_of(state: BuildState) -> Progress:
    """The counts of a build, over all its schedulers."""
    running = on_deck = frozen = remote = hostless = 0
    per_scheduler: dict[int, int] = {}
    for job in state.leaving.values():
        per_scheduler[job.sid] = per_scheduler.get(job.sid, 0) + 1
    for job in state.jobs.values():
        per_scheduler[job.sid] = per_scheduler.get(job.sid, 0) + 1
        on_deck += job.state == "on_deck"
        frozen += job.state == "frozen"
        running += job.state == "running"
        hostless += job.state == "running" and job.host != "" and job.host in HOSTLESS
        remote += job.state == "running" and job.host not in HOSTLESS
    schedulers = state.schedulers.values()
    finished = state.retired.finished + sum(s.finished for s in schedulers)
    # Only the output shows that a job too short to be seen running failed.
    ended_badly = state.retired.failed + sum(s.failed for s in schedulers) + killed_for_good(state)
    failed = max(ended_badly, len(failed_steps(state)))
    total = state.retired.finished + state.retired.failed + state.retired.killed + _totals(state, per_scheduler)
    if state.outcome == "done":
        total = finished
    # A make that configure ran to try something has done nothing, and says nothing about what comes.
    known = total > 0 and all(_known(s, broken_off=state.phase in _BROKEN_OFF) for s in schedulers)
    percent, begun = (None, None) if known else _percents(state)
    known = known or state.outcome == "done"
    killed, interrupted = _killed(state), sum(s.interrupted for s in schedulers)
    counts = (finished, total, running, on_deck, frozen, failed)
    return Progress(*counts, known, percent, remote, killed, hostless, interrupted, begun)


def will_not_run(state: BuildState) -> int:
    """Return how many jobs the schedulers will not start after failures, as far as their plans say."""
    return 0 if awaits_attempt(state) else _not_started(state)


def in_next_attempt(state: BuildState) -> int:
    """Return how many jobs the schedulers will not start after kills, as far as their plans say, but the next attempt
    at the step will."""
    return _not_started(state) if awaits_attempt(state) else 0


def awaits_attempt(state: BuildState) -> bool:
    """Whether the step is to run again because jobs were killed in this attempt, as far as is known."""
    return step_runs_again(state) and bool(killed_in_attempt(state))


def _not_started(state: BuildState) -> int:
    """Those that wait for what failed or was killed, or all the others where a scheduler starts nothing more."""
    begun = Counter(job.sid for job in (*state.jobs.values(), *state.leaving.values()) if job.state != "on_deck")
    return sum(
        max(0, _planned(s) - s.finished - s.failed - s.killed - begun[s.sid]) if s.stops or s.drains else s.blocked
        for s in state.schedulers.values()
        if s.ended is None
    )


def frozen_by_person(state: BuildState) -> list[Job]:
    """Return the jobs that a person froze, oldest first: until they are thawed, the build cannot end. None in a pause,
    which says that of all jobs."""
    if state.over or state.level.paused != "no":
        return []
    jobs = sorted(state.jobs.values(), key=lambda job: job.started)
    return [job for job in jobs if job.state == "frozen" and job.moved_by == "person"]


def stalled_by(state: BuildState) -> list[Job]:
    """Return the same if nothing runs and all else waits."""
    going_on = (job.state == "running" or (job.state == "on_deck" and not job.waits) for job in state.jobs.values())
    return [] if state.leaving or any(going_on) else frozen_by_person(state)


def not_run(state: BuildState) -> int:
    """Return how many jobs of an ended build were never started; 0 if that is not known."""
    p = progress_of(state)
    return p.never_ran if p.total_known and state.over else 0


def _planned(scheduler: Scheduler) -> int:
    return (scheduler.plan.total or 0) if scheduler.plan is not None else 0


def _killed(state: BuildState) -> int:
    """Those of this attempt. Of jobs too short to be seen running, only the output shows it."""
    counted = state.retired.killed + sum(s.killed for s in state.schedulers.values())
    in_output = len(state.failures) - len(failed_steps(state))
    return max(counted - killed_for_good(state), in_output)


def _totals(state: BuildState, live: Mapping[int, int]) -> int:
    """Jobs of all schedulers. Those of an attempt that broke off stand for what the next one has not taken up yet."""
    over, of = state.phase in _BROKEN_OFF, state.schedulers
    taken_up = {s.goes_on_with for s in of.values()}  # what these had left is in a later plan, however the build ended
    totals = {
        s.sid: _total(s, live.get(s.sid, 0), broken_off=over and s.sid not in taken_up)
        for s in of.values()
        if not s.broken_off
    }
    return sum(totals.values()) + sum(left_by(s, totals, of) for s in of.values() if s.broken_off)


def _known(scheduler: Scheduler, *, broken_off: bool) -> bool:
    """A make never reports how much there is to do: only one that completed has shown it."""
    if scheduler.plan is not None and scheduler.plan.total is not None:
        return True
    return scheduler.ended is not None and not (scheduler.broken_off or (broken_off and scheduler.tool == "make"))


def _total(scheduler: Scheduler, live: int, *, broken_off: bool) -> int:
    """A scheduler's total is never below what it has already shown.

    A ninja that succeeded has no more to do, whatever was planned: restat rules prune jobs.
    """
    seen = scheduler.finished + scheduler.failed + scheduler.killed + scheduler.interrupted + live
    planned = scheduler.plan.total if scheduler.plan is not None else None
    incomplete = scheduler.failed or scheduler.killed or scheduler.interrupted or broken_off
    ended_well = scheduler.ended is not None and not incomplete
    return seen if planned is None or ended_well else max(planned, seen)


def _percents(state: BuildState) -> tuple[float | None, float | None]:
    """Return what is done and what has begun by make's own percentage, when one make at the top of the build prints
    it."""
    live = [s for s in state.schedulers.values() if s.ended is None and s.parent is None]
    if len(live) == 1 and live[0].plan is not None:
        return live[0].plan.percent, live[0].plan.begun
    return None, None
