"""A folder in memory for temporary files, at one instant. A pure value, unaware of how it was measured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RamDisk:
    """Sizes in bytes: `used` of `size` allowed; `free` is what its file system has left, None if that has no limit.

    `used` counts as memory in use already: it is part of MachineSample.memory_used.
    """

    path: str
    used: int
    size: int
    free: int | None = None
