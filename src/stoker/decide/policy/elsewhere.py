"""Jobs whose launcher has other machines compile them: no more are let go than those machines have slots.

Such a job begins here, with its preprocessing, and takes a place of the level until it waits for its host; then it
takes none. One more than there are slots would only take a place, and wait. Pure; unaware of engines and of processes.
"""

from __future__ import annotations

from dataclasses import replace

from stoker.decide.policy.admission import in_order
from stoker.decide.policy.snapshot import View
from stoker.decide.policy.turn import Turn
from stoker.decide.policy.waits import Wait


def unblocked(view: View, level: int) -> View:
    """Count one job less as running where all that do are idle, and one that was given back is stopped.

    That one may hold what they wait for: a place that icecream has on this machine, a lock of distcc's.
    """
    stuck = any(j.returned for j in view.frozen) and all(j.idle for j in view.running)
    return replace(view, running=view.running[: level - 1]) if stuck else view


def within_slots(view: View, turn: Turn, level: int) -> Turn:
    """Take out of the turn those for which no slot of another machine is free, the last in order.

    While no slot is known none is taken out: their engine has them compiled here, within the level.
    """
    remote = [c for c in turn.candidates if c.remote]
    free = view.remote_slots - view.remote_jobs
    if not view.remote_slots or len(remote) <= free:
        return turn
    later = {c.jid for c in in_order(remote, view.budget / level, level)[max(0, free) :]}
    slots = "the only slot" if view.remote_slots == 1 else f"all {view.remote_slots} slots"
    wait = Wait("host", f"{slots} of other machines are taken", key=str(view.remote_slots))
    candidates = tuple(c for c in turn.candidates if c.jid not in later)
    return replace(turn, candidates=candidates, single={**turn.single, **dict.fromkeys(later, wait)})
