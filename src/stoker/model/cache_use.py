"""What a compiler cache did for a build. Pure values, unaware of how the figures were obtained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CacheTool = Literal["ccache", "sccache"]

Reached = Literal["answers", "slow", "silent"]
"""slow: each answer takes so long that compilations do as well; silent: there is none."""


@dataclass(frozen=True, slots=True)
class SharedCache:
    """Where a cache keeps what several machines share, and whether it answers there.

    `endpoint` is an address without names and passwords; `seconds` is how long the last question took, and `problem`
    says why it had no answer.
    """

    tool: CacheTool
    endpoint: str
    state: Reached
    seconds: float
    problem: str = ""


@dataclass(frozen=True, slots=True)
class CacheUse:
    """One cache's work for this build, so far. Sizes are bytes; `size` is all that the cache holds.

    `uncacheable` are calls that a cache passes on to the compiler by its nature (links, preprocessing), `errors` those
    in which it failed. `exact` is False where the figures are a difference of what other builds count into as well.

    `saved_seconds` is about how much CPU time `saved_jobs` of the hits took when they were compiled before, less what
    they took now; None where no earlier build says.
    """

    tool: CacheTool
    hits: int = 0
    misses: int = 0
    uncacheable: int = 0
    errors: int = 0
    size: int | None = None
    size_limit: int | None = None
    exact: bool = True
    saved_seconds: float | None = None
    saved_jobs: int = 0

    @property
    def calls(self) -> int:
        """Compilations that could be answered from the cache."""
        return self.hits + self.misses

    @property
    def rate(self) -> float | None:
        """Share of hits among those (0..1), as the caches' own statistics have it; None before the first."""
        return self.hits / self.calls if self.calls else None
