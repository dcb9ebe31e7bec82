"""What becomes of schedulers that have ended: of too many only counts are kept, and what was built in a folder that a
further attempt makes anew is lost. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile

from stoker.model.events import SchedulerStarted
from stoker.model.evolve import evolve
from stoker.model.state import MAX_SCHEDULERS, Retired, Scheduler, Step

TEMPORARY = ("tmp", "pip-")
"""How names begin that Python's tempfile and pip make up."""

MIN_SAME, MIN_RANDOM = 3, 4
"""Characters that the names of two temporary folders share at their start at least ("tmp"), and in how many they differ
behind that: Python makes up 8 of them, pip 8 or 32, and some are equal by chance."""


def with_oldest_retired(schedulers: dict[int, Scheduler], retired: Retired) -> tuple[dict[int, Scheduler], Retired]:
    """Bound the list: of too many schedulers the oldest ended one keeps only its counts."""
    ended = [s for s in schedulers.values() if s.ended is not None]
    if len(schedulers) > MAX_SCHEDULERS and ended:
        oldest = min(ended, key=lambda s: s.sid)
        del schedulers[oldest.sid]
        retired = Retired(
            retired.finished + oldest.finished, retired.failed + oldest.failed, retired.killed + oldest.killed
        )
    return schedulers, retired


def lost(schedulers: Mapping[int, Scheduler], step: Step | None, new: SchedulerStarted) -> list[Scheduler]:
    """Those of earlier attempts at the step whose work the new one does again, in a new temporary folder as pip's.

    `step` as before the new one was counted.
    """
    if step is None or step.attempt == 1:
        return []
    first = new.sid - step.schedulers
    return [s for s in schedulers.values() if s.sid < first and s.finished and is_made_anew(new.directory, s.directory)]


def without(schedulers: Mapping[int, Scheduler], gone: list[Scheduler]) -> dict[int, Scheduler]:
    """The same, but that what these have built counts no more."""
    return {**schedulers} | {
        s.sid: evolve(s, finished=0, failed=0, killed=0, plan=None, finished_by_tool={}) for s in gone
    }


def is_made_anew(now: str, before: str) -> bool:
    """True when two paths differ, and only in names that a program made up, as in /tmp/tmpk9j6kttq/build."""
    parts, old = now.split("/"), before.split("/")
    different = [(a, b) for a, b in zip(parts, old, strict=False) if a != b]
    temporary = any(a.startswith(TEMPORARY) for a, _ in different)
    return len(parts) == len(old) and temporary and all(_made_up(a, b) for a, b in different)


def _made_up(a: str, b: str) -> bool:
    same = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False))))
    return len(a) == len(b) and same >= MIN_SAME and sum(x != y for x, y in zip(a, b, strict=True)) >= MIN_RANDOM
