"""Where memory becomes a matter of concern, as the policy has it or as a person has set it.

Pure values. Unaware of where they were written down and of what is decided by them.
"""

from __future__ import annotations

from dataclasses import dataclass

from stoker.model.units import format_bytes

MIB = 2**20

RESERVE_SHARE, RESERVE_LEAST, RESERVE_MOST_SHARE = 0.06, 192 * MIB, 0.10
"""Share of the budget that is kept free of promises; in small containers a little more, as what else lives there (page
cache, ninja, linkers' files) does not shrink with the limit."""

FLOOR_SHARE, FLOOR_LEAST, FLOOR_MOST_SHARE = 0.02, 96 * MIB, 0.04
"""Share of the budget below which the emergency begins: a compiler takes 200 MiB in a second, and four ticks
come in one."""

PRESSURE = 20.0
"""Percent of time stalled for memory from which on nothing new starts (systemd-oomd's default is 60, to kill)."""

MOST_RESERVE, MOST_FLOOR = 0.9, 0.5
"""Shares of the budget that a person's reserve and floor come to at the most: sizes that were written for a large
machine must leave something to build with on a small one."""


@dataclass(frozen=True, slots=True)
class Amount:
    """A part of the memory budget: a share of it (0 to 1), or so many bytes."""

    share: float = 0.0
    size: int = 0

    def of(self, budget: float) -> float:
        """Bytes of a budget."""
        return self.share * budget + self.size

    def __str__(self) -> str:
        return format_bytes(self.size) if self.size else f"{100 * self.share:.3g} %"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What a person may set; None is stoker's own measure.

    `reserve` is kept free of promises, below `floor` the emergency begins; `level` is the most jobs at once while the
    level is automatic; from `pressure` percent of time stalled for memory on nothing new starts (None: never).
    """

    reserve: Amount | None = None
    floor: Amount | None = None
    level: int | None = None
    pressure: float | None = PRESSURE

    def reserve_of(self, budget: float) -> float:
        """Bytes that are kept free of promises: never less than the floor, or promises would lead into an emergency."""
        if self.reserve is None:
            own = max(RESERVE_SHARE * budget, min(RESERVE_LEAST, RESERVE_MOST_SHARE * budget))
        else:
            own = min(self.reserve.of(budget), MOST_RESERVE * budget)
        return max(own, self.floor_of(budget))

    def floor_of(self, budget: float) -> float:
        """Bytes below which the emergency begins."""
        if self.floor is None:
            return max(FLOOR_SHARE * budget, min(FLOOR_LEAST, FLOOR_MOST_SHARE * budget))
        return min(self.floor.of(budget), MOST_FLOOR * budget)
