"""The memory thresholds of the policy: its defaults, or what a user has set.

Pure values. Knows neither where they were configured nor what is decided with them.
"""

from __future__ import annotations

from dataclasses import dataclass

from stoker.model.units import format_bytes

MIB = 2**20

RESERVE_SHARE, RESERVE_LEAST, RESERVE_MOST_SHARE = 0.06, 192 * MIB, 0.10
"""Share of the budget that is kept free of promises; a little more in small containers, where everything else (page
cache, ninja, linkers' files) does not shrink with the limit."""

FLOOR_SHARE, FLOOR_LEAST, FLOOR_MOST_SHARE = 0.02, 96 * MIB, 0.04
"""Share of the budget below which the emergency begins: a compiler takes 200 MiB in a second, and there are four ticks
per second."""

PRESSURE = 20.0
"""Percent of time stalled on memory above which nothing new starts (systemd-oomd kills at 60 by default)."""

MOST_RESERVE, MOST_FLOOR = 0.9, 0.5
"""Upper limits, as shares of the budget, for a reserve and a floor set by a user: sizes written for a large machine
must leave something to build with on a small one."""


@dataclass(frozen=True, slots=True)
class Amount:
    """A part of the memory budget: a share of it (0 to 1), or a number of bytes."""

    share: float = 0.0
    size: int = 0

    def of(self, budget: float) -> float:
        """Return the bytes that this is of a budget."""
        return self.share * budget + self.size

    def __str__(self) -> str:
        return format_bytes(self.size) if self.size else f"{100 * self.share:.3g} %"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What a user may set; None means stoker's default.

    `reserve` is kept free of promises; the emergency begins below `floor`; `level` is the maximum number of jobs at
    once while the level is automatic; nothing new starts from `pressure` percent of time stalled on memory on (None:
    no limit).
    """

    reserve: Amount | None = None
    floor: Amount | None = None
    level: int | None = None
    pressure: float | None = PRESSURE

    def reserve_of(self, budget: float) -> float:
        """Return the bytes to keep free of promises: at least the floor, or promises would cause an emergency."""
        if self.reserve is None:
            own = max(RESERVE_SHARE * budget, min(RESERVE_LEAST, RESERVE_MOST_SHARE * budget))
        else:
            own = min(self.reserve.of(budget), MOST_RESERVE * budget)
        return max(own, self.floor_of(budget))

    def floor_of(self, budget: float) -> float:
        """Return the bytes below which the emergency begins."""
        if self.floor is None:
            return max(FLOOR_SHARE * budget, min(FLOOR_LEAST, FLOOR_MOST_SHARE * budget))
        return min(self.floor.of(budget), MOST_FLOOR * budget)
