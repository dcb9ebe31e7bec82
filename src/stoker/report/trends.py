"""The builds of one folder, one behind the other: how long each took, and against those before. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from stoker.model.progress import progress_of
from stoker.model.state import BuildState

BEFORE = 5
"""Earlier builds of the same command that one is held against."""

LIKE = 0.8
"""Share of the jobs that an earlier build must have had at least, and the other way round, to be held against."""


@dataclass(frozen=True, slots=True)
class TrendLine:
    """One build: its figures, and its time as a share of the median of the like ones before; None where none was."""

    id: str
    name: str
    command: tuple[str, ...]
    started: float
    outcome: str
    seconds: float
    jobs: int
    peak: int
    cache_hits: float | None
    share: float | None


def trend(states: Sequence[BuildState]) -> list[TrendLine]:
    """Return a line for each build that has ended, in the order in which they began."""
    lines: list[TrendLine] = []
    for state in sorted((s for s in states if s.over and s.ended is not None), key=lambda s: s.started):
        seconds = max(0.0, (state.ended or state.started) - state.started)
        jobs = progress_of(state).finished
        like = [
            one.seconds
            for one in lines
            if one.outcome == "done" and one.command == state.command and _alike(one.jobs, jobs)
        ][-BEFORE:]
        before = median(like) if like and state.outcome == "done" else 0.0
        lines.append(
            TrendLine(
                state.id,
                state.name,
                state.command,
                state.started,
                state.outcome or "",
                seconds,
                jobs,
                state.memory.build_peak,
                None if state.cache is None else state.cache.rate,
                seconds / before if before > 0 else None,
            )
        )
    return lines


def _alike(a: int, b: int) -> bool:
    return a > 0 and b > 0 and min(a, b) >= LIKE * max(a, b)
