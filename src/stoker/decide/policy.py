"""The policy: one look at the build and the machine in, decisions with their reasons out.

Pure: the time is an argument, and the same view gives the same decisions. Unaware of how they are carried out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from stoker.decide.admission import Deck, in_order
from stoker.decide.emergency import alarm, climbing, passage, stop
from stoker.decide.situation import Situation, age_order
from stoker.decide.turn import Turn, obey, whose_turn
from stoker.decide.view import Candidate, Decision, View
from stoker.model.units import format_bytes


def decide(view: View, now: float) -> tuple[Decision, ...]:
    """What to do now. After a freeze, a thaw or a shed the caller reads the world again and asks again."""
    level = level_of(view)
    if word := obey(view, level):
        return word
    if view.paused == "hard":
        return ()
    turn, slots = whose_turn(view), level - len(view.running)
    if not view.guarded:
        return (*turn.told, *_unguarded(view, turn, slots))
    situation = Situation(view)
    trouble = alarm(situation)
    if not trouble and (plenty := _with_plenty(situation, turn, level)) is not None:
        return (*turn.told, *plenty)
    if act := stop(situation, now):
        return (act,)
    if view.running and trouble:
        return ()
    spare = view.spare if view.level is None else 0
    return (*turn.told, *_starts(situation, turn, now, max(1, level - spare)))


def spare_places(cores: float) -> int:
    """Jobs beyond the cores while memory is plenty and the level automatic: some job always starts, ends or reads.

    As many as ninja starts when it is told no number (its GuessParallelism): one with up to two cores, else two. Where
    memory is short they would only share the cores and hold their memory for longer.
    """
    return 1 if cores <= 2 else 2


def level_of(view: View) -> int:
    """How many jobs may run at most: a person's number, else as many as the cores are for, and the spare ones."""
    return max(1, int(view.cpu_slots) if view.level is None else view.level)


def _with_plenty(situation: Situation, turn: Turn, level: int) -> tuple[Decision, ...] | None:
    """Admissions where memory is no matter: the peaks of all that run and of all that start fit at the same time.

    None if that cannot be said at a glance, or if there is more to decide than whom to admit.
    """
    view, peaks = situation.view, situation.peaks()
    if view.frozen or not peaks.fit():
        return None
    slots = level - len(view.running)
    waiting = turn.candidates if slots > 0 else ()
    decisions: list[Decision] = []
    for candidate in in_order(waiting, situation.capacity / level, level)[: max(0, slots)]:
        peaks.add(candidate.curve)
        if not peaks.fit():
            return None
        need, free = format_bytes(candidate.curve.peak), format_bytes(peaks.room)
        decisions.append(Decision("admit", candidate.jid, f"needs ~{need}, {free} stay free"))
    return tuple(decisions)


def _unguarded(view: View, turn: Turn, slots: int) -> tuple[Decision, ...]:
    """Memory is ignored, as a person said: up to the level all go on, the oldest first, and then all start."""
    why = f"memory is ignored, {format_bytes(view.available)} available"
    thawed = [Decision("thaw", j.jid, why) for j in sorted(turn.frozen, key=age_order)[: max(0, slots)]]
    left = slots - len(thawed)
    waiting = in_order(turn.candidates, math.inf, left) if left > 0 else []
    return (*thawed, *(Decision("admit", c.jid, why) for c in waiting[:left]))


def _starts(situation: Situation, turn: Turn, now: float, level: int) -> tuple[Decision, ...]:
    """Thaws and admissions, and at least one job that runs whenever there is any."""
    view = situation.view
    slots = level - len(view.running)
    if slots <= 0 or not (turn.frozen or turn.candidates):
        return ()
    deck = Deck(situation, slots, now)
    deck.thaw(turn.frozen)
    if not deck.decisions:
        deck.let_pass(turn.frozen, passage(situation) - sum(situation.climb_left(j) for j in climbing(situation)))
    waiting = in_order(turn.candidates, situation.capacity / level, level)
    deck.admit(waiting)
    if view.running or any(d.action in ("admit", "thaw") for d in deck.decisions):
        return tuple(deck.decisions)
    return _first(view, turn, waiting)


def _first(view: View, turn: Turn, waiting: Sequence[Candidate]) -> tuple[Decision, ...]:
    """Nothing runs and nothing fits: the oldest goes on, or the first in order starts all the same."""
    if turn.frozen:
        job = min(turn.frozen, key=age_order)
        why = f"nothing else runs; {format_bytes(view.available)} available"
        return (Decision("thaw", job.jid, why),)
    first = waiting[0]
    why = f"nothing else runs; needs ~{format_bytes(first.curve.peak)}, {format_bytes(view.available)} available"
    return (Decision("admit", first.jid, why),)
