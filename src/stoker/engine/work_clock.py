"""How long each live job has run, in seconds of a core of its own: stopped jobs do not age, crowded ones age slowly.

Told of births, moves, samples and ends. Unaware of the world's clock but for the `now` of each call.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from stoker.model.events import JobMoved, JobStarted
from stoker.model.samples import JobSample
from stoker.model.state import Job
from stoker.model.tool import Tool

SPEED_SAMPLES = 60
"""Samples over which the machine's speed is averaged: a minute, at one a second."""

LEAST_SPEED = 0.05
"""A machine so crowded that each core does a twentieth for the build: less is taken for a fault of measuring."""

_BUSY_TOOLS = ("cxx", "nvcc")
"""Tools that keep a core busy all along if they get one; others may wait for a disk, or sleep."""


@dataclass(slots=True)
class _Clock:
    """A live job's age before it was stopped last, and when it was set going by the work clock (None: stopped)."""

    sid: int
    tool: Tool
    age: float
    since: float | None


class WorkClock:
    """A clock that goes as fast as running jobs get on, and the ages of the live jobs by it.

    It slows down where more jobs run than there are cores, and where others use the machine: `speed` is the share of a
    core that a compiler really gets where there are no more jobs than cores, a mean over the last minute; `unrest` how
    much that changes (standard deviation of the logarithm).
    """

    def __init__(self) -> None:
        self.cores = math.inf
        self.speed = 1.0
        self.unrest = 0.0
        self._speed_now = 1.0
        self._samples = 0
        self._jobs: dict[int, _Clock] = {}
        self._running = 0
        self._now: float | None = None
        self._time = 0.0

    def advance(self, now: float) -> None:
        """Go on to Unix time `now`."""
        if self._now is not None:
            self._time += max(0.0, now - self._now) * self._rate()
        self._now = now

    def sample(self, jobs: Iterable[JobSample], cores: float) -> None:
        """What the jobs use now, and how many cores the build may use."""
        self.cores = max(LEAST_SPEED, cores)
        shares = [min(1.0, s.cpu / 100) for s in jobs if s.state == "running" and self._is_busy(s.jid)]
        if not shares:
            return
        self._speed_now = min(1.0, max(LEAST_SPEED, sum(shares) / len(shares) / self._crowding()))
        self._samples = min(self._samples + 1, SPEED_SAMPLES)
        step = self._speed_now - self.speed
        off = math.log(self._speed_now / self.speed) if self._samples > 1 else 0.0
        self.speed += step / self._samples
        self.unrest = math.sqrt(self.unrest**2 + (off**2 - self.unrest**2) / self._samples)

    def start(self, event: JobStarted) -> None:
        """A job was seen for the first time, or has learnt its name."""
        if event.jid not in self._jobs:
            self._add(event.jid, event.sid, event.tool, event.started, running=event.state == "running")

    def adopt(self, job: Job) -> None:
        """A job of the state that an engine before this one met; when it was stopped in between is not known."""
        if job.jid not in self._jobs:
            self._add(job.jid, job.sid, job.tool, job.running_since or job.started, running=job.state == "running")

    def move(self, event: JobMoved) -> None:
        """A job was let go, frozen or thawed."""
        clock = self._jobs.get(event.jid)
        if clock is not None:
            self._running -= clock.since is not None
            clock.age, clock.since = self.age(event.jid), self._time if event.state == "running" else None
            self._running += clock.since is not None

    def rest(self, jids: Iterable[int]) -> None:
        """These jobs run no more."""
        for clock, jid in ((self._jobs[jid], jid) for jid in jids if jid in self._jobs):
            self._running -= clock.since is not None
            clock.age, clock.since = self.age(jid), None

    def age(self, jid: int) -> float:
        """How long the job has run; 0 for one that is not known."""
        clock = self._jobs.get(jid)
        if clock is None:
            return 0.0
        return clock.age + (self._time - clock.since if clock.since is not None else 0.0)

    def end(self, jid: int | None, seconds: float) -> float:
        """How long the job has run, now that it has ended. One never seen ran for `seconds` by the world's clock."""
        if jid is None or jid not in self._jobs:
            return seconds * self._rate()
        age = self.age(jid)
        self._running -= self._jobs.pop(jid).since is not None
        return age

    def forget(self, sid: int) -> None:
        """A scheduler has gone, and its jobs with it."""
        self._jobs = {jid: clock for jid, clock in self._jobs.items() if clock.sid != sid}
        self._running = sum(clock.since is not None for clock in self._jobs.values())

    def _rate(self) -> float:
        """Seconds of a core of its own that each running job gets in a second."""
        return self._speed_now * self._crowding()

    def _crowding(self) -> float:
        """The share of a core for each running job, were there nobody else on the machine."""
        return min(1.0, self.cores / self._running) if self._running else 1.0

    def _is_busy(self, jid: int) -> bool:
        clock = self._jobs.get(jid)
        return clock is not None and clock.tool in _BUSY_TOOLS

    def _add(self, jid: int, sid: int, tool: Tool, since: float, *, running: bool) -> None:
        age = max(0.0, (self._now or since) - since) * self._rate() if running else 0.0
        self._jobs[jid] = _Clock(sid, tool, age, self._time if running else None)
        self._running += running
