"""Ninja that minds the load of the machine (`-l N`), on paper. Blind to memory, as the real one is."""

from __future__ import annotations

import math

from stoker.simulate.simulated_machine import NEVER, Machine


class LoadLimited:
    """Ninja with `-l N` at its own default level, two more than there are cores.

    It wakes when a job ends, and starts as many as the last minute's load average lies below the limit
    (CanRunMore in ninja's build.cc); one always. The load is Linux's: every 5 s it moves by 1 - exp(-5/60) towards
    the number of jobs that run, so a minute of jobs may start before it says anything.
    """

    STEP, MINUTE = 5.0, 60.0

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._load = 0.0
        self._stepped = 0.0
        self._ran = 0

    def tick(self, machine: Machine) -> float:
        """Start what load and level leave room for."""
        machine.ended.clear()
        self._follow(machine.now)
        room = min(machine.cores + 2 - len(machine.running), int(self._limit - self._load))
        machine.offer(machine.in_window + max(room, 0 if machine.running else 1))
        for live in tuple(machine.deck.values()):
            machine.start(live)
        self._ran = len(machine.running)
        return NEVER

    def _follow(self, now: float) -> None:
        """The load average up to now; since the last tick the same jobs have run."""
        keep = math.exp(-self.STEP / self.MINUTE)
        while self._stepped + self.STEP <= now:
            self._stepped += self.STEP
            self._load = keep * self._load + (1 - keep) * self._ran
