"""The brakes: freeze before growth that would not fit, freeze when memory runs out, and, as a last resort, shed.

Pure. Knows nothing of admissions, processes or clocks. Returns one action at a time: a new snapshot is taken before the
next.
"""

from __future__ import annotations

from collections.abc import Sequence

from stoker.decide.policy.ample import is_ample
from stoker.decide.policy.situation import LOOK_AHEAD, Situation, age_order
from stoker.decide.policy.snapshot import Decision, LiveJob, View
from stoker.model.units import format_bytes

EARLY_AHEAD = 1
"""LOOK_AHEAD if one of the jobs was admitted early: it exists to use what others leave free until it is stopped. While
memory may run short there are four ticks per second, and a stopped job does not grow."""

BRAKE_SHARE = 0.5
"""The brake may use this share of the reserve, which promises may not: so it acts only when promises failed."""

GROWING = 0.001
"""A job that grows by less than this share of the budget within LOOK_AHEAD is not what fills the memory."""

SHED_AHEAD = 0.4
"""Share of a second's growth that must be left before a job is shed for it. When memory falls fast it is read every few
hundredths of a second (decide/memory/alert.py); until then the oldest job may still reach its peak."""

WORTH = 0.1
"""A job that holds less than this share of the oldest job's growth until then is not shed: that would not help."""

LAST_SHARE = 0.25
"""Share of the floor that must remain after a moment of further growth: the kernel's own share of a limit (page tables,
buffers) is not in the figures."""

PATIENCE_SECONDS = 30.0
"""How long everything waits frozen if ending a job would also cost the work of the others: other programs on the
machine may give memory back. If none does, waiting longer would not help either."""

FREEZE_SPACING, SHED_SPACING = 0.5, 1.5
"""Seconds from a freeze, and from a shed, until the next shed: the end of growth shows at once, freed memory a little
later."""


def stop(situation: Situation, now: float) -> Decision | None:
    """Return the job that must stop now because of memory, and why; None if there is none."""
    return relieve(situation, now) or brake(situation)


def relieve(situation: Situation, now: float) -> Decision | None:
    """Freeze the youngest growing job when memory is below the floor; as a last resort, shed.

    Jobs that do not grow continue: their memory will fall or they will end, which is what frees memory.
    """
    view = situation.view
    reason = alarm(situation)
    if not reason:
        return None
    growing = growing_jobs(situation)
    if growing:
        job = growing[-1]
        return Decision("freeze", job.jid, f"{reason}; this one holds {format_bytes(job.rss)} and grows on")
    if view.ramdisk.rise > GROWING * view.budget and len(view.running) > 1:
        job, rise = situation.by_age[-1], format_bytes(view.ramdisk.rise)
        why = f"{reason}; the RAM disk grew by {rise} in a second, and any job may be what fills it"
        return Decision("freeze", job.jid, why)
    rested = now - view.last_freeze >= FREEZE_SPACING and now - view.last_shed >= SHED_SPACING
    growth = _sinks(situation) if rested and view.frozen else 0.0
    if not growth:
        return None
    if view.costly:
        if len(view.running) == 1 and view.available >= view.floor:  # they would not wait (`patience`)
            return None
        job = situation.by_age[0]
        why = f"{reason}; ending a job costs what others have built, so all wait {PATIENCE_SECONDS:.0f} s for memory"
        return Decision("freeze", job.jid, why)
    worth = [j for j in view.frozen if j.rss >= WORTH * growth]
    if not worth:
        return None
    job = max(worth, key=lambda j: (not j.by_person, *age_order(j)))
    why = f"{reason}; nothing but the oldest still grows; gives back {format_bytes(job.rss)}, runs again later"
    return Decision("shed", job.jid, why)


def patience(view: View, frozen: Sequence[LiveJob], now: float) -> tuple[Decision, ...] | None:
    """If all are frozen because ending a job is costly, wait for a while, then shed the youngest.

    `frozen` are the jobs that may continue; any other job, even one that must stay frozen, may be shed for the oldest
    of them. None if they need not wait: there is memory, or no job whose end would free some for another.
    """
    if not (view.costly and frozen and len(view.frozen) > 1 and view.available < view.floor):
        return None
    if now - max(view.last_freeze, view.last_shed) < PATIENCE_SECONDS:
        return ()
    oldest = min(frozen, key=age_order)
    job = max((j for j in view.frozen if j.jid != oldest.jid), key=lambda j: (not j.by_person, *age_order(j)))
    why = (
        f"{format_bytes(view.available)} left, and none came back in {PATIENCE_SECONDS:.0f} s; "
        f"gives back {format_bytes(job.rss)}, runs again later"
    )
    return (Decision("shed", job.jid, why),)


def _sinks(situation: Situation) -> float:
    """Return the bytes that the oldest job takes until the next tick if that uses up what is left; otherwise 0, because
    it may end or shrink by then."""
    view = situation.view
    growth = max((situation.growth(j, SHED_AHEAD) for j in situation.by_age[:1]), default=0.0)
    sinks = growth > GROWING * view.budget and view.available - growth < LAST_SHARE * view.floor
    return growth if sinks else 0.0


def brake(situation: Situation) -> Decision | None:
    """Freeze the job with the most left to grow if the next seconds would not fit or no job could finish."""
    view, order = situation.view, situation.by_age
    if len(order) < 2:
        return None
    # No running job is stopped for what a RAM disk may hold later: once it does, less is available anyway.
    line = situation.capacity + view.ramdisk.growth + BRAKE_SHARE * view.reserve
    if is_ample(situation, line):
        return None
    early = any(j.early for j in order[1:])
    if early:
        ahead, most = EARLY_AHEAD, max(situation.soon.mean[:EARLY_AHEAD])
    else:
        ahead, most = LOOK_AHEAD, max(situation.soon.upper(slot) for slot in range(LOOK_AHEAD))
    short = _shortage(situation, ahead, doubt=not early)
    if most <= line and not short:
        return None
    growths = [(j.early, situation.growth_left(j), *age_order(j), j) for j in growing_jobs(situation)]
    if sum(growth for _, growth, *_ in growths) <= passage(situation):
        return None
    job = max(growths)[-1]
    held, need = format_bytes(job.rss), format_bytes(situation.most(job))
    why = _excess(most, max(situation.soon.mean[:ahead]), ahead, line, BRAKE_SHARE * view.reserve)
    why = why if most > line else short
    return Decision("freeze", job.jid, f"{why}; this one holds {held}, needs up to {need}")


def _excess(most: float, expected: float, ahead: int, line: float, extra: float) -> str:
    """Say that the jobs may hold too much soon: the sum includes doubt, so it may exceed that of their peaks. `extra`:
    how much of `line` is half of the reserve."""
    doubt = f" ({format_bytes(expected)} expected)" if most > expected else ""
    over = "just over" if format_bytes(most) == format_bytes(line) else "more than"
    allowed = f"the {format_bytes(line - extra)} allowed to them and half of the reserve, {format_bytes(extra)}"
    return f"the jobs may hold up to {format_bytes(most)} within {ahead} s{doubt}, {over} {allowed}"


def growing_jobs(situation: Situation) -> list[LiveJob]:
    """Return the running jobs, except the oldest, that are about to grow noticeably."""
    least = GROWING * situation.view.budget
    return [j for j in situation.by_age[1:] if situation.growth(j, LOOK_AHEAD) > least]


def passage(situation: Situation) -> float:
    """Return the bytes by which jobs may still grow while the rest is stopped: those nearest to their peak pass,
    because each frees more after it than it takes.

    What the oldest may need is not available to them, because it is never stopped. If it will need more than there is,
    they may use everything until then: only the memory that they free can save a job from being shed.
    """
    room = _room(situation.view)
    free = room - _growth_of_oldest(situation)
    return free if free > 0 else max(0.0, room)


def leeway(situation: Situation, ahead: int = LOOK_AHEAD, *, doubt: bool = True) -> float:
    """Return the bytes left for others to grow within so many seconds if the oldest gets all that it may need."""
    return _room(situation.view) - _growth_of_oldest(situation, doubt=doubt) - _growth_of_others(situation, ahead)


def _growth_of_others(situation: Situation, ahead: int) -> float:
    """Return how much more all but the oldest will hold within so many seconds; jobs that end or shrink count."""
    order, all_of_them = situation.by_age, situation.soon.mean
    held = sum(j.rss for j in (*order[1:], *situation.view.frozen)) + situation.on_deck
    oldest = situation.outlook_soon(order[0]).mean[:ahead] if order else ()
    most = max(all_of_them[slot] - (oldest[slot] if slot < len(oldest) else 0.0) for slot in range(ahead))
    return max(most - held, situation.surge(order[1:]))


def _room(view: View) -> float:
    return view.available - view.floor


def _growth_of_oldest(situation: Situation, *, doubt: bool = True) -> float:
    return max((situation.growth_left(j, doubt=doubt) for j in situation.by_age[:1]), default=0.0)


def _shortage(situation: Situation, ahead: int, *, doubt: bool) -> str:
    """Say why not all live jobs could reach their peak and finish; empty if they could.

    The oldest grows all the time, the others for `ahead` seconds until they can be stopped. After that this is the
    banker's algorithm: one by one, the smallest remaining need first; each frees what it holds.
    """
    room, view = _room(situation.view), situation.view
    left = leeway(situation, ahead, doubt=doubt)
    if left < 0:
        return f"{format_bytes(-left)} too little for the oldest job to reach its peak"
    jobs = [*view.running, *(j for j in view.frozen if not j.by_person)]
    for need, held in sorted((situation.growth_left(j, doubt=doubt), j.rss) for j in jobs):
        if need > room:
            return f"{format_bytes(need - room)} too little for all to end one after the other"
        room += held
    return ""


def alarm(situation: Situation) -> str:
    """Say in numbers what is wrong with the machine's memory; empty if nothing is."""
    view, surge = situation.view, situation.running_surge
    left, last = format_bytes(view.available), LAST_SHARE * view.floor
    if view.available < view.floor:
        return f"{left} left, below the floor of {format_bytes(view.floor)}"
    if view.available - surge < last:
        why = f"{format_bytes(last)} must remain and {_growth_text(situation)}"
        return f"{left} left, too little for one more second: {why}"
    return ""


def stall(view: View) -> str:
    """Say why nothing new starts although it may fit: tasks stall on memory because of this build; empty if not.

    The machine's pressure may have any cause. It counts only while memory is short by the build's own budget.
    """
    if view.pressure is None or view.pressure < view.pressure_line:
        return ""
    share = f"{view.pressure:.0f} % of the time, from {view.pressure_line:.0f} % on nothing new starts"
    if view.pressure_own:
        return f"the build's own control group stalls on memory {share}"
    if view.available < view.reserve:
        left, reserve = format_bytes(view.available), format_bytes(view.reserve)
        return f"{left} left, less than the reserve of {reserve}, and the machine stalls on memory {share}"
    return ""


def _growth_text(situation: Situation) -> str:
    """Say how fast the jobs could grow with the cores to themselves, in all, by what each last added."""
    count, growth = situation.measured_growth()
    who = "1 job" if count == 1 else f"{count} jobs"
    return f"{who} can add up to {format_bytes(growth)} per second"
