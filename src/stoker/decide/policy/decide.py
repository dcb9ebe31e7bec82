"""The policy: takes a snapshot of build and machine, returns decisions with their reasons.

Pure: the time is an argument, and the same view gives the same decisions. Does not know how they are carried out.
"""

from __future__ import annotations

import math
from bisect import bisect_right, insort
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from stoker.decide.memory.outlook import PromisedMemory
from stoker.decide.policy.admission import AdmissionRound, in_order
from stoker.decide.policy.elsewhere import unblocked, within_slots
from stoker.decide.policy.emergency import alarm, growing_jobs, passage, patience, stall, stop
from stoker.decide.policy.situation import Situation, age_order
from stoker.decide.policy.snapshot import Candidate, Decision, LiveJob, View
from stoker.decide.policy.turn import Turn, obey, whose_turn
from stoker.decide.policy.unknown_jobs import one_by_one
from stoker.decide.policy.waits import NO_WAITS, Wait, Waits
from stoker.model.units import format_bytes


class Ruling(NamedTuple):
    """What to do now, and why all other jobs wait. The reasons are omitted when a freeze, a thaw or a shed must be
    carried out first."""

    decisions: tuple[Decision, ...]
    waits: Waits = NO_WAITS


def decide(view: View, now: float) -> tuple[Decision, ...]:
    """Decide what to do now. After a freeze, a thaw or a shed the caller takes a new snapshot and asks again."""
    return rule(view, now).decisions


def rule(view: View, now: float) -> Ruling:
    """Decide what to do now, and say why all other jobs wait."""
    level = level_of(view)
    # First the user's commands: level, pause, one job alone.
    if word := obey(view, level):
        return Ruling(word)
    if view.paused == "hard":
        paused = Wait("paused", "everything is frozen until somebody unpauses the build")
        return Ruling((), Waits(frozen=paused, on_deck=paused))
    view = unblocked(view, level)
    # Then jobs that must run alone, and whether memory matters at all.
    turn, slots = within_slots(view, whose_turn(view), level), level - len(view.running)
    if not view.guarded:
        return Ruling((*turn.holds, *_unguarded(view, turn, slots)), _waits(view, turn, _full(view, level)))
    if view.running and (stalled := stall(view)):
        turn = replace(turn, candidates=(), deck_waits=turn.deck_waits or Wait("pressure", stalled))
    turn = one_by_one(view, turn, now)
    situation = Situation(view)
    trouble = alarm(situation)
    if not trouble and (plenty := _with_plenty(situation, turn, level)) is not None:
        return Ruling((*turn.holds, *plenty), _waits(view, turn, _full(view, level)))
    # If memory may run short, brakes come before admissions, one action at a time.
    if act := stop(situation, now):
        return Ruling((act,))
    if view.running and trouble:
        short = Wait("memory", f"{trouble}; nothing starts until there is more", size=view.available)
        return Ruling((), _waits(view, turn, short))
    spare = view.spare if view.level is None else 0
    return _starts(situation, turn, now, max(1, level - spare))


def with_order(waits: Waits, view: View) -> Waits:
    """Return the reasons of a ruling; of jobs on deck that wait for a place, also whether at least as many younger ones
    as there are places go before them. For whoever announces reasons: each decision would take too long with it."""
    full, level = waits.on_deck, level_of(view)
    if full is None or not waits.for_a_place:
        return waits
    situation = Situation(view)
    others = Wait(full.cause, f"others go first (larger or longer ones); {full.why}", f"behind {full.key}")
    behind, before = dict[int, Wait](), list[float]()
    for candidate in in_order(view.candidates, situation.capacity / level, level, situation.at_work):
        if len(before) - bisect_right(before, candidate.arrived) >= level:
            behind[candidate.jid] = others
        insort(before, candidate.arrived)
    return replace(waits, of={**behind, **waits.of})


def spare_places(cores: float) -> int:
    """Return how many jobs may run beyond the number of cores while memory is plenty and the level automatic: some job
    is always starting, ending or reading.

    As many as ninja starts without a -j (its GuessParallelism): one with up to two cores, otherwise two. If memory is
    short, they would only share the cores and hold their memory for longer.
    """
    return 1 if cores <= 2 else 2


def level_of(view: View) -> int:
    """Return the maximum number of jobs at once: the user's number, or what the cores can run plus spare places."""
    return max(1, int(view.cpu_slots) if view.level is None else view.level)


def _with_plenty(situation: Situation, turn: Turn, level: int) -> tuple[Decision, ...] | None:
    """Admit while memory does not matter: the peaks of all running and all starting jobs fit at the same time. First
    come jobs that another machine returned, and jobs that a user command no longer stops.

    A job that a user froze counts with its peak, and stays frozen.

    None if this quick test fails, or if there is more to decide than which jobs to admit.
    """
    view, peaks = situation.view, situation.peaks()
    for job in view.frozen:
        peaks.add(job.curve, job.rss)
    if not (all(j.returned or j.by_word or j.by_person for j in view.frozen) and peaks.fit()):
        return None
    slots = level - len(view.running)
    back = sorted(turn.frozen, key=age_order)[: max(0, slots)]
    decisions = [Decision("thaw", j.jid, f"needs ~{format_bytes(j.curve.peak)}, memory is plenty") for j in back]
    slots -= len(back)
    waiting = turn.candidates if slots > 0 else ()
    for candidate in in_order(waiting, situation.capacity / level, level, situation.at_work)[: max(0, slots)]:
        peaks.add(candidate.curve)
        if not peaks.fit():
            return None
        need, spare = format_bytes(candidate.curve.peak), format_bytes(peaks.room)
        decisions.append(Decision("admit", candidate.jid, f"needs ~{need}, leaves {spare} unpromised"))
    return tuple(decisions)


def _unguarded(view: View, turn: Turn, slots: int) -> tuple[Decision, ...]:
    """Thaw jobs up to the level, oldest first, and then start others: a user has switched the memory guard off."""
    why = f"memory is ignored, {format_bytes(view.available)} left"
    thawed = [Decision("thaw", j.jid, why) for j in sorted(turn.frozen, key=age_order)[: max(0, slots)]]
    left = slots - len(thawed)
    waiting = in_order(turn.candidates, math.inf, left) if left > 0 else []
    return (*thawed, *(Decision("admit", c.jid, why) for c in waiting[:left]))


def _full(view: View, level: int) -> Wait:
    """Say that as many jobs run as allowed, and if that is fewer than the level, what one more would need."""
    places, more = "the only place is taken" if level == 1 else f"all {level} places are taken", ""
    if level < level_of(view):
        extra = level_of(view) - level
        filled = "the extra place is filled" if extra == 1 else f"{extra} extra places are filled"
        places, more = "each core has its job", f"; {filled} only if all peaks fit at once"
    tokens = f", {view.tokens} more used by tools inside jobs" if view.tokens else ""
    busy = view.cores_taken and view.level is None  # a user's number says enough
    others = "; other programs keep the cores busy" if busy else ""
    return Wait("place", f"{places}{tokens}{others}{more}", key=f"{level} {view.tokens} {busy}")


def _short_too(promise: PromisedMemory, turn: Turn, full: Wait) -> dict[int, Wait]:
    """Return the reason of candidates that a free place alone would not start, as memory is too short for their peak.

    They share one, so that a wide build whose places are taken says little.
    """
    if turn.deck_waits is not None or not turn.candidates:
        return {}
    room = max(0.0, promise.free())
    places = full.why.partition(";")[0]
    why = f"{format_bytes(room)} unpromised above the reserve, less than its peak; {places}"
    short = Wait("memory", why, size=room)
    return {c.jid: short for c in turn.candidates if c.curve.peak > room}


def _waits(view: View, turn: Turn, rest: Wait, of: Mapping[int, Wait] | None = None) -> Waits:
    """Say why each job waits: a user command, another job's turn, a reason of its own, or `rest`."""
    by_hand = Wait("person", "frozen by hand; it goes on when it is thawed by hand")
    single = {**turn.single, **(of or {}), **{j.jid: by_hand for j in view.frozen if j.by_person}}
    return Waits(single, turn.frozen_wait or rest, turn.deck_waits or rest)


def _starts(situation: Situation, turn: Turn, now: float, level: int) -> Ruling:
    """Thaw and admit; if there are jobs at all, at least one runs."""
    view = situation.view
    slots = level - len(view.running)
    if slots <= 0 or not (turn.frozen or turn.candidates):
        full = _full(view, level)
        # Of the next seconds, which the brakes have asked for: the whole promise would cost as much as all else here.
        short = _short_too(situation.soon, turn, full) if turn.candidates else {}
        return Ruling(turn.holds, _waits(view, turn, full, short))
    admissions = AdmissionRound(situation, slots, level, now)
    admissions.thaw(turn.frozen)
    if not admissions.decisions:
        admissions.let_pass(
            turn.frozen, passage(situation) - sum(situation.growth_left(j) for j in growing_jobs(situation))
        )
    waiting = in_order(turn.candidates, situation.capacity / level, level, situation.at_work)
    admissions.admit(waiting)
    rest = admissions.rest or _full(view, level)
    short = {} if admissions.rest else _short_too(admissions.promise, turn, rest)
    waits = _waits(view, turn, rest, {**short, **admissions.waits})
    if view.running or any(d.action in ("admit", "thaw") for d in admissions.decisions):
        return Ruling((*turn.holds, *admissions.decisions), waits)
    if (patient := patience(view, turn.frozen, now)) is not None:
        costly = Wait("memory", "no memory is left, and ending a job would cost what the others have built")
        return Ruling((*turn.holds, *patient), _waits(view, turn, costly))
    if lacking := _lacks_what_a_person_holds(situation, turn, waiting):
        # The others may wait for it, as it is to run alone; this reason is its own.
        return Ruling(turn.holds, _waits(view, turn, lacking, {_next(turn, waiting).jid: lacking}))
    return Ruling((*turn.holds, _start_next(view, _next(turn, waiting))), waits)


def _lacks_what_a_person_holds(situation: Situation, turn: Turn, waiting: Sequence[Candidate]) -> Wait | None:
    """Return why nothing runs if the first in order would only fit without what jobs hold that a user froze.

    Started nevertheless it would use up the memory, and a job would be shed for it: the one that is to stay frozen.
    """
    view = situation.view
    by_hand = [j for j in view.frozen if j.by_person]
    held = sum(j.rss for j in by_hand)
    job = _next(turn, waiting)
    need = situation.growth_left(job) if isinstance(job, LiveJob) else situation.outlook_at_birth(job).peak
    room = view.available - view.floor
    if not room < need <= room + held:
        return None
    names, one = ", ".join(j.name for j in by_hand), len(by_hand) == 1
    holds, thawed = ("holds", "it is thawed") if one else ("hold", "they are thawed")
    return Wait("person", f"{names}, frozen by hand, {holds} {format_bytes(held)}; this one fits when {thawed}")


def _next(turn: Turn, waiting: Sequence[Candidate]) -> LiveJob | Candidate:
    """Return the job that goes first while nothing runs: the oldest frozen one, or else the first in order."""
    return min(turn.frozen, key=age_order) if turn.frozen else waiting[0]


def _start_next(view: View, job: LiveJob | Candidate) -> Decision:
    """Thaw or start the next job although it does not fit: nothing else runs."""
    beside, left = _nobody_beside(alone=job.alone), f"{format_bytes(view.available)} left"
    if isinstance(job, LiveJob):
        return Decision("thaw", job.jid, f"{beside}; {left}")
    return Decision("admit", job.jid, f"{beside}; needs ~{format_bytes(job.curve.peak)}, {left}")


def _nobody_beside(*, alone: bool) -> str:
    """Say why a job that does not fit may run: it was to be alone, and the others were frozen for it; or it just is."""
    return "runs alone" if alone else "nothing else runs"
