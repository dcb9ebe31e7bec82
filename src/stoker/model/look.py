"""Where a build stood when a person looked at it. Pure. Unaware of screens and of files."""

from __future__ import annotations

from dataclasses import dataclass

from stoker.model.killed import attempt_of
from stoker.model.progress import progress_of
from stoker.model.state import BuildState


@dataclass(frozen=True, slots=True)
class Look:
    """Counts of a build at one instant; `time` is in Unix seconds of the machine that builds.

    `freezes`: how often stoker has frozen a job; `killed`: jobs that were killed in any attempt; `attempt`: which
    attempt at its step runs, from 1.
    """

    time: float
    done: int = 0
    failed: int = 0
    freezes: int = 0
    killed: int = 0
    attempt: int = 1


def look_of(state: BuildState, now: float) -> Look:
    """Return where a build stands at Unix time `now`."""
    progress = progress_of(state)
    killed = sum(lost.count for lost in state.lost.values())
    return Look(now, progress.finished, progress.failed, state.restraint.frozen, killed, attempt_of(state))
