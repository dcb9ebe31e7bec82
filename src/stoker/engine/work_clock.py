"""How long each live job has run, in seconds of a core of its own: stopped jobs do not age, crowded ones age slowly.

Told of births, moves and ends. Unaware of the world's clock but for the `now` of each call.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from stoker.model.events import JobMoved, JobStarted
from stoker.model.state import Job


@dataclass(slots=True)
class _Clock:
    """A live job's age before it was stopped last, and when it was set going by the work clock (None: stopped)."""

    sid: int
    age: float
    since: float | None


class WorkClock:
    """A clock that slows down as more jobs run than there are cores, and the ages of the live jobs by it."""

    def __init__(self) -> None:
        self.cores = math.inf
        self._jobs: dict[int, _Clock] = {}
        self._now: float | None = None
        self._time = 0.0

    def advance(self, now: float) -> None:
        """Go on to Unix time `now`."""
        if self._now is not None:
            self._time += max(0.0, now - self._now) * self.rate()
        self._now = now

    def rate(self) -> float:
        """Seconds of a core of its own that each running job gets in a second."""
        running = sum(clock.since is not None for clock in self._jobs.values())
        return min(1.0, self.cores / running) if running else 1.0

    def start(self, event: JobStarted) -> None:
        """A job was seen for the first time, or has learnt its name."""
        if event.jid not in self._jobs:
            self._add(event.jid, event.sid, event.started, running=event.state == "running")

    def adopt(self, job: Job) -> None:
        """A job of the state that an engine before this one met; when it was stopped in between is not known."""
        if job.jid not in self._jobs:
            self._add(job.jid, job.sid, job.running_since or job.started, running=job.state == "running")

    def move(self, event: JobMoved) -> None:
        """A job was let go, frozen or thawed."""
        clock = self._jobs.get(event.jid)
        if clock is not None:
            clock.age, clock.since = self.age(event.jid), self._time if event.state == "running" else None

    def age(self, jid: int) -> float:
        """How long the job has run; 0 for one that is not known."""
        clock = self._jobs.get(jid)
        if clock is None:
            return 0.0
        return clock.age + (self._time - clock.since if clock.since is not None else 0.0)

    def end(self, jid: int | None, seconds: float) -> float:
        """How long the job has run, now that it has ended. One never seen ran for `seconds` by the world's clock."""
        if jid is None or jid not in self._jobs:
            return seconds * self.rate()
        age = self.age(jid)
        del self._jobs[jid]
        return age

    def forget(self, sid: int) -> None:
        """A scheduler has gone, and its jobs with it."""
        self._jobs = {jid: clock for jid, clock in self._jobs.items() if clock.sid != sid}

    def _add(self, jid: int, sid: int, since: float, *, running: bool) -> None:
        age = max(0.0, (self._now or since) - since) * self.rate() if running else 0.0
        self._jobs[jid] = _Clock(sid, age, self._time if running else None)
