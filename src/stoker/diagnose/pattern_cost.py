"""Computes how often a pattern may backtrack at one place of a line. Knows nothing of rules or logs.

A person's own pattern meets lines that anybody may have written: one with many ways to match would stop `stoker
diagnose` at a single line.
"""

from __future__ import annotations

from re import _constants, _parser  # type: ignore[attr-defined]  # the only way to look inside of a pattern
from typing import Any

MAX_SHIPPED = 2_000_000
MAX_OWN = 20_000
"""The most ways for a shipped pattern, which tests try out, and for a person's own: 20,000 at each of 8 KiB take two
seconds."""

UNBOUNDED = 1 << 62

_FEW = 8
"""Repeats of something with several ways to match that are still cheap."""


def cost(pattern: str) -> int:
    """Return how many ways it may try at one place: the product of its backtracking repeats. Raises re.error."""
    return min(_cost(_parser.parse(pattern)), UNBOUNDED)


def _cost(parsed: Any) -> int:
    ways, once = 1, 0
    for kind, argument in parsed:
        if kind in (_constants.MAX_REPEAT, _constants.MIN_REPEAT):
            ways *= _cost_of_repeat(*argument)
        elif kind is _constants.POSSESSIVE_REPEAT:
            ways *= _cost(argument[2])
        elif kind is _constants.BRANCH:
            ways *= sum(map(_cost, argument[1]))
        elif kind in (_constants.SUBPATTERN, _constants.ATOMIC_GROUP):
            ways *= _cost(argument[-1] if kind is _constants.SUBPATTERN else argument)
        elif kind in (_constants.ASSERT, _constants.ASSERT_NOT):
            once += ways * _cost(argument[-1])
    return ways + once


def _cost_of_repeat(low: int, high: Any, inside: Any) -> int:
    within = _cost(inside)
    if high is _constants.MAXREPEAT or (high > _FEW and within > 1):
        return UNBOUNDED
    return int(high - low + 1) * within
