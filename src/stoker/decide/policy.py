"""The policy: one look at the build and the machine in, decisions with their reasons out.

Pure: the time is an argument, and the same view gives the same decisions. Unaware of how they are carried out.
"""

from __future__ import annotations

from stoker.decide.admission import Deck, in_order
from stoker.decide.emergency import alarm, brake, climbing, passage, relieve
from stoker.decide.situation import Situation, age_order
from stoker.decide.view import Candidate, Decision, View
from stoker.model.units import format_bytes


def decide(view: View, now: float) -> tuple[Decision, ...]:
    """What to do now. After a freeze, a thaw or a shed the caller reads the world again and asks again."""
    if view.paused == "hard":
        return tuple(
            Decision("freeze", j.jid, f"freeze {j.name} (paused: 0 of {len(view.running)} may run)")
            for j in view.running
        )
    level, situation = level_of(view), Situation(view)
    trouble = alarm(view)
    if not trouble and (plenty := _with_plenty(situation, level)) is not None:
        return plenty
    for act in (_over_level(situation, level), _one(relieve(situation, now)), _one(brake(situation))):
        if act:
            return act
    if view.running and (trouble or any(j.alone for j in view.running)):
        return ()
    return _starts(situation, now, level)


def _with_plenty(situation: Situation, level: int) -> tuple[Decision, ...] | None:
    """Admissions where memory is no matter: the peaks of all that run and of all that start fit at the same time.

    None if that cannot be said at a glance, or if there is more to decide than whom to admit.
    """
    view, peaks = situation.view, situation.peaks()
    slots = level - len(view.running)
    over = slots < 0 and view.level is not None
    if over or view.frozen or not peaks.fit() or _any_alone(view):
        return None
    decisions: list[Decision] = []
    waiting = view.candidates if slots > 0 and view.paused == "no" else ()
    for candidate in in_order(waiting, situation.capacity / level, level)[: max(0, slots)]:
        peaks.add(candidate.curve)
        if not peaks.fit():
            return None
        need, free = format_bytes(candidate.curve.peak), format_bytes(peaks.room)
        decisions.append(Decision("admit", candidate.jid, f"admit {candidate.name} (needs ~{need}, {free} stay free)"))
    return tuple(decisions)


def _any_alone(view: View) -> bool:
    return any(j.alone for j in view.running) or any(c.alone for c in view.candidates)


def level_of(view: View) -> int:
    """How many jobs may run: a person's number, else as many as there are cores for them."""
    return max(1, int(view.cpu_slots) if view.level is None else view.level)


def _one(decision: Decision | None) -> tuple[Decision, ...]:
    return (decision,) if decision else ()


def _over_level(situation: Situation, level: int) -> tuple[Decision, ...]:
    """A person's lower number takes effect at once: the youngest are frozen, never the oldest."""
    excess = len(situation.view.running) - level
    if situation.view.level is None or excess <= 0:
        return ()
    why = f"level {level}, {len(situation.view.running)} were running"
    return tuple(Decision("freeze", j.jid, f"freeze {j.name} ({why})") for j in situation.by_age[-excess:])


def _starts(situation: Situation, now: float, level: int) -> tuple[Decision, ...]:
    """Thaws and admissions, and at least one job that runs whenever there is any."""
    view = situation.view
    slots = level - len(view.running)
    together = [c for c in view.candidates if not c.alone]
    if slots <= 0 or not (view.frozen or (view.candidates and view.paused == "no")):
        return ()
    deck = Deck(situation, slots)
    deck.thaw(now)
    if not deck.decisions:
        deck.let_pass(now, passage(view) - sum(situation.climb_left(j) for j in climbing(situation)))
    if view.paused == "no":
        deck.admit(in_order(together, situation.capacity / level, level))
    if view.running or any(d.action in ("admit", "thaw") for d in deck.decisions):
        return tuple(deck.decisions)
    return _first(view, together)


def _first(view: View, together: list[Candidate]) -> tuple[Decision, ...]:
    """Nothing runs and nothing fits: the oldest goes on or starts all the same, or a job that must be alone."""
    frozen = [j for j in view.frozen if not j.by_person]
    if frozen:
        job = min(frozen, key=age_order)
        why = f"nothing else runs; {format_bytes(view.available)} available"
        return (Decision("thaw", job.jid, f"thaw {job.name} ({why})"),)
    if view.paused != "no" or not view.candidates:
        return ()
    first = min(together or view.candidates, key=lambda c: (c.arrived, c.jid))
    why = f"nothing else runs; needs ~{format_bytes(first.curve.peak)}, {format_bytes(view.available)} available"
    return (Decision("admit", first.jid, f"admit {first.name} ({why})"),)
