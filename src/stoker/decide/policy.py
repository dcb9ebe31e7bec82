"""The policy: one look at the build and the machine in, decisions with their reasons out.

Pure: the time is an argument, and the same view gives the same decisions. Unaware of how they are carried out.
"""

from __future__ import annotations

from stoker.decide.admission import Deck, in_order, promise_of
from stoker.decide.emergency import brake, relieve
from stoker.decide.outlook import Promise
from stoker.decide.view import Candidate, Decision, LiveJob, View
from stoker.model.units import format_bytes


def decide(view: View, now: float) -> tuple[Decision, ...]:
    """What to do now. After a freeze, a thaw or a shed the caller reads the world again and asks again."""
    if view.paused == "hard":
        return tuple(Decision("freeze", j.jid, f"freeze {j.name} (paused: 0 of {len(view.running)} may run)") for j in view.running)
    level = level_of(view)
    for act in (_over_level(view, level), _one(relieve(view, now))):
        if act:
            return act
    if not view.running and not view.frozen and not view.candidates:
        return ()
    promise = promise_of(view)
    stop = _one(brake(view, promise))
    if stop or any(j.alone for j in view.running):
        return stop
    return _starts(view, now, level, promise)


def level_of(view: View) -> int:
    """How many jobs may run: a person's number, else as many as there are cores for them."""
    return max(1, int(view.cpu_slots) if view.level is None else view.level)


def _one(decision: Decision | None) -> tuple[Decision, ...]:
    return (decision,) if decision else ()


def _over_level(view: View, level: int) -> tuple[Decision, ...]:
    """A person's lower number takes effect at once: the youngest are frozen, never the oldest."""
    excess = len(view.running) - level
    if view.level is None or excess <= 0:
        return ()
    youngest = sorted(view.running, key=lambda j: (j.started, j.jid), reverse=True)[:excess]
    why = f"level {level}, {len(view.running)} were running"
    return tuple(Decision("freeze", j.jid, f"freeze {j.name} ({why})") for j in youngest)


def _starts(view: View, now: float, level: int, promise: Promise) -> tuple[Decision, ...]:
    """Thaws and admissions, and at least one job that runs whenever there is any."""
    slots = level - len(view.running)
    together = [c for c in view.candidates if not c.alone]
    if slots <= 0 or not (view.frozen or (view.candidates and view.paused == "no")):
        return ()
    deck = Deck(view, promise, slots)
    deck.thaw(now)
    if view.paused == "no":
        deck.admit(in_order(together))
    if view.running or any(d.action in ("admit", "thaw") for d in deck.decisions):
        return tuple(deck.decisions)
    return _first(view, together)


def _first(view: View, together: list[Candidate]) -> tuple[Decision, ...]:
    """Nothing runs and nothing fits: the oldest goes on or starts all the same, or a job that must be alone."""
    frozen = [j for j in view.frozen if not j.by_person]
    if frozen:
        job: LiveJob = min(frozen, key=lambda j: (j.started, j.jid))
        return (Decision("thaw", job.jid, f"thaw {job.name} (nothing else runs; {format_bytes(view.available)} available)"),)
    if view.paused != "no" or not view.candidates:
        return ()
    alone = min(together or view.candidates, key=lambda c: (c.arrived, c.jid))
    why = f"nothing else runs; needs ~{format_bytes(alone.curve.peak)}, {format_bytes(view.available)} available"
    return (Decision("admit", alone.jid, f"admit {alone.name} ({why})"),)
