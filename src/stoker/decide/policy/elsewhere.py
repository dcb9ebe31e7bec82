"""Limits jobs that other machines compile: no more of them start than those machines have slots.

Such a job begins on this machine with preprocessing, and takes a place of the level until it waits for its host; from
then on it takes none. A job beyond the number of slots would only occupy a place and wait. Pure; knows no engine and no
process.
"""

from __future__ import annotations

from dataclasses import replace

from stoker.decide.policy.admission import in_order
from stoker.decide.policy.snapshot import View
from stoker.decide.policy.turn import Turn
from stoker.decide.policy.waits import Wait


def unblocked(view: View, level: int) -> View:
    """Count one running job less if all running jobs are idle while a returned one is stopped.

    The stopped one may hold what the others wait for: icecream's place on this machine, or a lock of distcc's.
    """
    stuck = any(j.returned for j in view.frozen) and all(j.idle for j in view.running)
    return replace(view, running=view.running[: level - 1]) if stuck else view


def within_slots(view: View, turn: Turn, level: int) -> Turn:
    """Remove from the turn the jobs, last in order, for which no other machine has a free slot.

    While no slot is known, none is removed: their engine then compiles them here, within the level. But never do more
    wait for a host than the level allows: they take no place, and may all begin here at once.
    """
    remote = [c for c in turn.candidates if c.remote]
    slots = view.remote_slots - view.remote_jobs if view.remote_slots else len(remote)
    waiting = level - view.remote_waiting if view.remote_waiting else len(remote)
    free = max(0, min(slots, waiting))
    if len(remote) <= free:
        return turn
    later = {c.jid for c in in_order(remote, view.budget / level, level)[free:]}
    wait = _taken(view.remote_slots) if slots <= waiting else _no_host_yet(view.remote_waiting)
    candidates = tuple(c for c in turn.candidates if c.jid not in later)
    return replace(turn, candidates=candidates, single={**turn.single, **dict.fromkeys(later, wait)})


def _taken(slots: int) -> Wait:
    every = "the only slot" if slots == 1 else f"all {slots} slots"
    return Wait("host", f"{every} of other machines are taken", key=str(slots))


def _no_host_yet(waiting: int) -> Wait:
    already = "1 job already waits" if waiting == 1 else f"{waiting} jobs already wait"
    return Wait("host", f"{already} for a host", key=f"{waiting} waiting")
