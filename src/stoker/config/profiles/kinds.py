"""The kinds of values that a profile's dataclasses may have beyond text: how each is written, and its bounds.

Unaware of which keys there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from stoker.model.bounds import LEAST_MEMORY, MAX_LEVEL

MAX_RETRIES = 5
"""A step is never run again more often (decide/recovery/deaths.py): who needs more has a machine on which it cannot
be built."""


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number from `low` to `high`."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Bytes:
    """A size of so many bytes `least`, written as "12 GiB", "64G" or "500MB"."""

    least: int = 1


@dataclass(frozen=True, slots=True)
class Version:
    """A version of numbers with dots between them: 12.6."""


Level = Annotated[int, Whole(1, MAX_LEVEL)]
Retries = Annotated[int, Whole(0, MAX_RETRIES)]
Deflation = Annotated[int, Whole(0, 9)]
Cores = Annotated[int, Whole(1, MAX_LEVEL)]
Size = Annotated[int, Bytes()]
Memory = Annotated[int, Bytes(LEAST_MEMORY)]
Dotted = Annotated[str, Version()]
