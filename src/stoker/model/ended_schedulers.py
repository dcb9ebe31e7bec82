"""What becomes of schedulers that have ended: of too many only counts are kept, and what was built in a folder that a
further attempt makes anew is lost. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from stoker.model.events import SchedulerStarted
from stoker.model.evolve import evolve
from stoker.model.made_anew import is_made_anew
from stoker.model.state import MAX_SCHEDULERS, Retired, Scheduler, Step


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
    """The same, but that what these have built counts no more. What one that broke off had to do is still to do."""
    return {**schedulers} | {
        s.sid: evolve(s, finished=0, failed=0, killed=0, plan=s.plan if s.broken_off else None, finished_by_tool={})
        for s in gone
    }
