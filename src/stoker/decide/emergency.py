"""The brakes: freezing before a climb that would not fit, freezing when memory sinks, and the last resort.

Pure. Unaware of admissions, of processes and of clocks. One act at a time: the world is read again before the next.
"""

from __future__ import annotations

from stoker.decide.outlook import Promise
from stoker.decide.standing import climb_left, locate
from stoker.decide.view import Decision, LiveJob, View
from stoker.model.units import format_bytes

LOOK_AHEAD = 4
"""Seconds of climbing that must always fit. nvcc's cicc climbs by up to 0.2 GiB/s; a look is taken every second."""

BRAKE_SHARE = 0.5
"""The brake may use this share of the reserve, which promises may not: so it acts only when promises have failed."""

GROWING = 0.001
"""A job that grows by less than this share of the budget in these seconds is not what fills the memory."""

PRESSURE = 20.0
"""Percent of time stalled for memory that counts as an emergency of its own (systemd-oomd's default is 60)."""

SHED_SPACING = 2.0
"""Seconds from a freeze or a shed until the next shed: memory that was given back must have been seen."""


def relieve(view: View, now: float) -> Decision | None:
    """When memory is below the floor or stalls the machine: freeze the youngest that grows; at the very last, shed.

    What does not grow goes on: it will fall or end, and that is what gives memory back.
    """
    reason = _alarm(view)
    if not reason:
        return None
    order = sorted(view.running, key=_age_order)
    growing = [j for j in order[1:] if _growth(j, LOOK_AHEAD) > GROWING * view.budget]
    if growing:
        job = growing[-1]
        return Decision("freeze", job.jid, f"freeze {job.name} ({reason}; it holds {format_bytes(job.rss)} and grows)")
    victims = sorted(view.frozen, key=_age_order)
    rested = now - max(view.last_shed, view.last_freeze) >= SHED_SPACING
    sinking = len(order) == 1 and _growth(order[0], LOOK_AHEAD) > 0
    if not (victims and rested and sinking):
        return None
    job = victims[-1]
    why = f"{reason}; only the oldest runs and still grows; gives back {format_bytes(job.rss)}, runs alone later"
    return Decision("shed", job.jid, f"shed {job.name} ({why})")


def brake(view: View, promise: Promise) -> Decision | None:
    """Freeze the job with most of its climb to come, if the next seconds would not fit.

    The second test is a banker's: whatever else happens, the oldest job must be able to climb to its peak beside
    what all others hold now. So there is always one job that can finish and give its memory back.
    """
    order = sorted(view.running, key=_age_order)
    if len(order) < 2:
        return None
    line = promise.capacity + BRAKE_SHARE * view.reserve
    most = max(promise.upper(slot) for slot in range(LOOK_AHEAD))
    room = view.available - (1 - BRAKE_SHARE) * view.reserve
    oldest_need = climb_left(order[0])
    if most <= line and oldest_need <= room:
        return None
    climbs = {j.jid: climb_left(j) for j in order[1:] if _growth(j, LOOK_AHEAD) > GROWING * view.budget}
    if not climbs:
        return None
    job = max((j for j in order[1:] if j.jid in climbs), key=lambda j: (climbs[j.jid], *_age_order(j)))
    if most > line:
        why = f"{format_bytes(most)} expected within {LOOK_AHEAD} s, {format_bytes(line)} allowed"
    else:
        why = f"the oldest needs {format_bytes(oldest_need)} more, {format_bytes(max(0.0, room))} free"
    return Decision("freeze", job.jid, f"freeze {job.name} ({why}; it would climb by {format_bytes(climbs[job.jid])})")


def _alarm(view: View) -> str:
    if view.available < view.floor:
        return f"{format_bytes(view.available)} left, below the floor of {format_bytes(view.floor)}"
    if view.pressure is not None and view.pressure >= PRESSURE:
        return f"memory pressure {view.pressure:.0f} %, from {PRESSURE:.0f} % on it is an emergency"
    return ""


def _growth(job: LiveJob, seconds: int) -> float:
    """Bytes by which a job is expected to grow within so many seconds."""
    at = locate(job)
    return max(0.0, at.curve.largest(at.position, at.position + seconds * at.pace) * at.scale - job.rss)


def _age_order(job: LiveJob) -> tuple[float, int]:
    return job.started, job.jid
