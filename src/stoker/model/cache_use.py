"""What a compiler cache did for a build. Pure values, unaware of how the figures were obtained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CacheTool = Literal["ccache", "sccache"]

Reached = Literal["answers", "slow", "silent"]
"""slow: each answer takes so long that compilations do as well; silent: no answer."""


@dataclass(frozen=True, slots=True)
class SharedCache:
    """The shared storage of a cache, and whether it answers.

    `endpoint` is an address without names and passwords; `seconds` is how long the last query took, and `problem` says
    why it had no answer.
    """

    tool: CacheTool
    endpoint: str
    state: Reached
    seconds: float
    problem: str = ""


@dataclass(frozen=True, slots=True)
class CacheUse:
    """One cache's work for this build so far. Sizes are bytes; `size` is all that the cache holds.

    `uncacheable` are calls that a cache passes on to the compiler by its nature (links, preprocessing), `errors` those
    in which it failed. `exact` is False if the figures are a difference that includes other builds.

    `saved_seconds` is roughly how much CPU time `saved_jobs` of the hits took when they were compiled before, minus
    what they took now; None if no earlier build knows.
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
        """Compilations that the cache could have answered."""
        return self.hits + self.misses

    @property
    def rate(self) -> float | None:
        """Share of hits among those (0..1), as in the caches' own statistics; None before the first."""
        return self.hits / self.calls if self.calls else None
