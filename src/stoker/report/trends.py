"""The builds of one folder in sequence: how long each took, compared with earlier ones. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median

from stoker.model.progress import progress_of
from stoker.model.state import BuildState

BEFORE = 5
"""Earlier builds of the same command that one is held against."""

LIKE = 0.8
"""Share of the jobs that an earlier build must have had at least, and the other way round, to be held against."""


@dataclass(frozen=True, slots=True)
class TrendLine:
    """One build: its figures, and its time as a share of the median of the like ones before; None where none was.

    `outcome` is its phase while it has not ended. `jobs` and `peak` (bytes) are None where its journal has not been
    read, or cannot be: then `fault` says why.
    """

    id: str
    name: str
    command: tuple[str, ...]
    started: float
    outcome: str
    seconds: float
    jobs: int | None
    peak: int | None
    cache_hits: float | None
    share: float | None = None
    cwd: str = ""
    fault: str = ""

    @property
    def short_id(self) -> str:
        """The end of its ID, which means it on the command line too."""
        return self.id.rpartition("-")[2]


def line_of(state: BuildState) -> TrendLine:
    """Return the figures of a build by itself, as far as it has come."""
    return TrendLine(
        state.id,
        state.name,
        state.command,
        state.started,
        state.outcome or state.phase,
        max(0.0, (state.time if state.ended is None else state.ended) - state.started),
        progress_of(state).finished,
        state.memory.build_peak,
        None if state.cache is None else state.cache.rate,
        cwd=state.cwd,
    )


def trend(states: Iterable[BuildState]) -> list[TrendLine]:
    """Return a line for each build that has ended, in the order in which they began."""
    return with_shares([line_of(state) for state in states if state.over and state.ended is not None])


def with_shares(lines: Sequence[TrendLine]) -> list[TrendLine]:
    """Return the same in the order in which they began, each held against the like ones before it."""
    found: list[TrendLine] = []
    for line in sorted(lines, key=lambda line: line.started):
        before = [one.seconds for one in found if alike(one, line)][-BEFORE:]
        usual = median(before) if before and line.outcome == "done" else 0.0
        found.append(replace(line, share=line.seconds / usual if usual > 0 else None))
    return found


def alike(one: TrendLine, other: TrendLine) -> bool:
    """Whether a build may be held against an earlier `one`: that ended well, with the same command in the same folder
    and about as many jobs."""
    same = (one.command, one.cwd) == (other.command, other.cwd)
    a, b = one.jobs or 0, other.jobs or 0
    return one.outcome == "done" and same and a > 0 and b > 0 and min(a, b) >= LIKE * max(a, b)
