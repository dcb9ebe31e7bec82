"""How many jobs may run: the user's level and pause, the automatic level, and the limits in configuration files.

Unaware of jobs, of memory and of signals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from stoker.decide.policy.decide import spare_places
from stoker.decide.policy.thresholds import Thresholds
from stoker.engine.govern.core_watch import CoreWatch
from stoker.model import events as ev
from stoker.model.state import BuildState


@dataclass(frozen=True, slots=True)
class Orders:
    """The user's orders: a level (None: automatic), a pause, whether memory is guarded."""

    level: int | None = None
    paused: ev.Paused = "no"
    guarded: bool = True


@dataclass(frozen=True, slots=True)
class StepLimits:
    """What configuration files say about the current step: the maximum of the automatic level, and thresholds."""

    level: float = math.inf
    thresholds: Thresholds = field(default_factory=Thresholds)


class LevelControl:
    """The level, whoever set it. `one_by_one`: one job runs at a time, since nothing else has helped."""

    def __init__(self, state: BuildState, jobs: int | None = None) -> None:
        """`jobs` is the level given at the start; a level set since then, in `state`, takes precedence."""
        known = state.level
        adopted = known.target is not None
        ordered = known.target if known.mode == "manual" else None
        self.orders = Orders(ordered if adopted else jobs, known.paused, known.guarded)
        self.limits = StepLimits()
        self.cores = 1.0
        self.core_watch = CoreWatch()
        self.one_by_one = False
        self._announced: ev.LevelSet | None = None

    def order(self, orders: Orders) -> None:
        """Apply the user's orders."""
        self.orders = orders

    def limit(self, limits: StepLimits) -> None:
        """Apply the configuration files."""
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
        """The level that the user or the number of cores asks for, without `one_by_one`."""
        return max(1, int(self.slots)) if self.orders.level is None else self.orders.level

    @property
    def slots(self) -> float:
        """How many jobs may run at once while the level is automatic."""
        limits = self.limits
        return min(self.cores + spare_places(self.cores), limits.level, limits.thresholds.level or math.inf)

    @property
    def spare(self) -> int:
        """How many of these exceed the number of cores."""
        return max(0, int(self.slots) - int(self.cores))

    @property
    def paused(self) -> ev.Paused:
        """The pause that the user has ordered."""
        return self.orders.paused

    @property
    def pressure_line(self) -> float:
        """The pressure in percent above which nothing starts."""
        pressure = self.limits.thresholds.pressure
        return math.inf if pressure is None else pressure

    def news(self) -> list[ev.Event]:
        """Announce the level if it has changed."""
        before = self._announced
        # One at a time is not the user's number: a successor engine would keep it for everything that follows.
        by_hand = self.orders.level is not None and not self.one_by_one
        orders = self.orders
        self._announced = ev.LevelSet("manual" if by_hand else "auto", self.level, orders.paused, orders.guarded)
        return [] if self._announced == before else [self._announced]
