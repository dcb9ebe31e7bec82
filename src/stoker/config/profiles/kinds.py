"""The kinds of values that a profile's dataclasses may have beyond text: how each is written, and its bounds.

Unaware of which keys there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

MAX_LEVEL = 4096
"""More than any machine has cores; a larger number is a slip. (The same as for a level that is set live.)"""

MAX_RETRIES = 5
"""A step is never run again more often (decide/deaths.py): who needs more has a machine on which it cannot be built."""


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number from `low` to `high`."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Bytes:
    """A size, written as "12 GiB", "64G" or "500MB"."""


@dataclass(frozen=True, slots=True)
class Version:
    """A version of numbers with dots between them: 12.6."""


Level = Annotated[int, Whole(1, MAX_LEVEL)]
Retries = Annotated[int, Whole(0, MAX_RETRIES)]
Cores = Annotated[int, Whole(1, MAX_LEVEL)]
Size = Annotated[int, Bytes()]
Dotted = Annotated[str, Version()]
