"""What an earlier attempt at a step has left undone, for a step that runs again. Pure.

A scheduler that broke off leaves a plan to complete. Until the next attempt's scheduler in that place has its own plan,
the old plan counts as what is left. Then the two plans show how much of the earlier work was kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile

from stoker.model.events import SchedulerStarted
from stoker.model.evolve import evolve
from stoker.model.state import Scheduler, Step

Schedulers = Mapping[int, Scheduler]

_TEMPORARY = ("tmp", "pip-")
"""How names made up by Python's tempfile and pip begin."""

_MIN_SAME, _MIN_RANDOM = 3, 4
"""Characters that the names of two temporary folders have in common at the start ("tmp"), and in how many they differ
after that: Python makes up 8 of them, pip 8 or 32, and some are equal by chance."""


def with_broken_off(schedulers: Schedulers, step: Step) -> dict[int, Scheduler]:
    """Return the same when `step` starts again: which schedulers of the previous attempt have left work behind."""
    before = [s for s in schedulers.values() if (s.step, s.attempt) == (step.index, step.attempt - 1)]
    broken = [s for s in before if s.failed or s.killed or s.interrupted or s.dropped] or [
        s for s in before if _lacks(s)
    ]
    return {**schedulers} | {s.sid: evolve(s, broken_off=True) for s in broken}


def with_scheduler(schedulers: Schedulers, new: Scheduler) -> dict[int, Scheduler]:
    """The same with one more, and whose work it goes on with. If it works where no attempt before did, nobody takes up
    what those have left."""
    before = _predecessor(schedulers, new)
    if before is not None:
        return {**schedulers, new.sid: evolve(new, goes_on_with=before.sid)}
    elsewhere = {s.sid: evolve(s, broken_off=False) for s in schedulers.values() if s.broken_off}
    return {**schedulers, **elsewhere, new.sid: new}


def with_work_lost(schedulers: Schedulers, directory: str, step: int) -> dict[int, Scheduler]:
    """The same, but that nothing is left of what a step has built in a folder."""
    gone = [s for s in schedulers.values() if s.step == step and s.directory == directory and s.ended is not None]
    return {**schedulers} | {s.sid: evolve(s, finished=0, finished_by_tool={}) for s in gone}


def redone_by(new: SchedulerStarted, schedulers: Schedulers, step: Step | None) -> list[Scheduler]:
    """Those of earlier attempts at the step whose work the new one does again, in a new temporary folder as pip's.

    `step` is as before the new one was counted.
    """
    if step is None or step.attempt == 1:
        return []
    first = new.sid - step.schedulers
    return [s for s in schedulers.values() if s.sid < first and s.finished and is_made_anew(new.directory, s.directory)]


def without_work(schedulers: Schedulers, redone: Iterable[Scheduler]) -> dict[int, Scheduler]:
    """The same, but that what these have built counts no more. What one that broke off had to do is still to do."""
    return {**schedulers} | {
        s.sid: evolve(
            s,
            finished=0,
            failed=0,
            killed=0,
            interrupted=0,
            plan=s.plan if s.broken_off else None,
            finished_by_tool={},
        )
        for s in redone
    }


def with_successor(schedulers: Schedulers, sid: int, total: int | None) -> dict[int, Scheduler]:
    """The same once scheduler `sid` is known to have `total` jobs to do: what its predecessors built and it builds
    again counts once, and they have nothing left to do."""
    new = schedulers.get(sid)
    before = _back_from(schedulers, new.goes_on_with if new is not None else None)
    if total is None or not (before and before[0].broken_off):
        return {**schedulers}
    again = _built_again(before, total)
    changed = {**schedulers}
    for s in before:
        taken = min(s.finished, again)
        changed[s.sid] = evolve(s, finished=s.finished - taken, broken_off=False)
        again -= taken
    return changed


def _predecessor(schedulers: Schedulers, new: Scheduler) -> Scheduler | None:
    """The scheduler of an earlier attempt at the same step whose work the new one goes on with, or does again.

    Of several that ran one after the other in one folder, the one in the same place of that order.
    """
    here = [s for s in schedulers.values() if s.step == new.step and _same_place(s.directory, new.directory)]
    nth = sum(s.attempt == new.attempt for s in here)
    last = max((s.attempt for s in here if s.attempt < new.attempt), default=0)
    alike = sorted((s for s in here if s.attempt == last), key=lambda s: s.sid)
    return alike[nth] if nth < len(alike) else None


def _built_again(before: Sequence[Scheduler], total: int) -> int:
    """Return how many finished jobs of one attempt after the other, the last one first, are among the `total` of the
    next."""
    done = 0
    for s in before:
        done += s.finished
        if s.plan is not None and s.plan.total is not None:
            return max(0, done + total - s.plan.total)
    return 0


def left_by(scheduler: Scheduler, totals: Mapping[int, int], schedulers: Schedulers) -> int:
    """Return the jobs that a scheduler which broke off stands for: what it has finished and what nobody has continued
    yet.

    `totals` are those of the schedulers that have not broken off.
    """
    planned = scheduler.plan.total if scheduler.plan is not None else None
    taken = sum(totals.get(s.sid, s.finished) for s in schedulers.values() if s.goes_on_with == scheduler.sid)
    return max(scheduler.finished, (planned or 0) - taken)


def _back_from(schedulers: Schedulers, sid: int | None) -> list[Scheduler]:
    """A scheduler and those whose work it went on with, the last one first."""
    chain: list[Scheduler] = []
    while sid is not None and (s := schedulers.get(sid)) is not None:
        chain.append(s)
        sid = s.goes_on_with
    return chain


def _lacks(scheduler: Scheduler) -> bool:
    planned = scheduler.plan.total if scheduler.plan is not None else None
    return planned is not None and scheduler.finished < planned


def _same_place(a: str, b: str) -> bool:
    return a == b or is_made_anew(a, b)


def is_made_anew(now: str, before: str) -> bool:
    """True when two paths are one folder to a person: they differ, and only in names that a program made up, as in
    /tmp/tmpk9j6kttq/build."""
    parts, old = now.split("/"), before.split("/")
    different = [(a, b) for a, b in zip(parts, old, strict=False) if a != b]
    temporary = any(a.startswith(_TEMPORARY) for a, _ in different)
    return len(parts) == len(old) and temporary and all(_made_up(a, b) for a, b in different)


def _made_up(a: str, b: str) -> bool:
    same = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False))))
    return len(a) == len(b) and same >= _MIN_SAME and sum(x != y for x, y in zip(a, b, strict=True)) >= _MIN_RANDOM
