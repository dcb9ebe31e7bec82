"""How many jobs may run: a person's level and pause, the automatic level, and what a person's files allow.

Unaware of jobs, of memory and of signals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from stoker.decide.policy.decide import spare_places
from stoker.decide.policy.thresholds import Thresholds
from stoker.model import events as ev
from stoker.model.state import BuildState


@dataclass(frozen=True, slots=True)
class Orders:
    """What a person has ordered: a level, None for the automatic one; a pause; whether memory is cared for."""

    level: int | None = None
    paused: ev.Paused = "no"
    guarded: bool = True


@dataclass(frozen=True, slots=True)
class StepLimits:
    """What a person's files say of the step that runs: the most that the automatic level may be, and thresholds."""

    level: float = math.inf
    thresholds: Thresholds = field(default_factory=Thresholds)


class LevelControl:
    """The level, by whoever has set it. `one_by_one`: one job runs at a time, since nothing else has helped."""

    def __init__(self, state: BuildState, jobs: int | None = None) -> None:
        """`jobs` is the level given at the start; what was set since then, by `state`, counts more."""
        known = state.level
        adopted = known.target is not None
        ordered = known.target if known.mode == "manual" else None
        self.orders = Orders(ordered if adopted else jobs, known.paused, known.guarded)
        self.limits = StepLimits()
        self.cores = 1.0
        self.one_by_one = False
        self._announced: ev.LevelSet | None = None

    def order(self, orders: Orders) -> None:
        """Take a person's orders."""
        self.orders = orders

    def limit(self, limits: StepLimits) -> None:
        """Take what a person's files say."""
        self.limits = limits

    def set_cores(self, cores: float) -> None:
        """Note how many cores the build may use."""
        self.cores = cores

    def serialise(self, *, one_by_one: bool) -> None:
        """Whether one job runs at a time, whatever the level."""
        self.one_by_one = one_by_one

    @property
    def level(self) -> int:
        """How many jobs may run."""
        return 1 if self.one_by_one else self.ordered

    @property
    def ordered(self) -> int:
        """The level that a person or the cores ask for, which counts again once jobs need not run one by one."""
        return max(1, int(self.slots)) if self.orders.level is None else self.orders.level

    @property
    def slots(self) -> float:
        """How many jobs may run at once while the level is automatic."""
        limits = self.limits
        return min(self.cores + spare_places(self.cores), limits.level, limits.thresholds.level or math.inf)

    @property
    def spare(self) -> int:
        """How many of these are beyond the cores."""
        return max(0, int(self.slots) - int(self.cores))

    @property
    def paused(self) -> ev.Paused:
        """The pause that a person has ordered."""
        return self.orders.paused

    @property
    def pressure_line(self) -> float:
        """The pressure in percent from which on nothing starts."""
        pressure = self.limits.thresholds.pressure
        return math.inf if pressure is None else pressure

    def news(self) -> list[ev.Event]:
        """The level, if it is not what was announced last."""
        before = self._announced
        # One at a time is no person's number: an engine that takes over would keep it for all that follows.
        by_hand = self.orders.level is not None and not self.one_by_one
        orders = self.orders
        self._announced = ev.LevelSet("manual" if by_hand else "auto", self.level, orders.paused, orders.guarded)
        return [] if self._announced == before else [self._announced]
