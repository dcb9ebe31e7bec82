"""When the engine's loop looks again: at once when something wakes it, soon after a death, otherwise later.

Unaware of the reason for a wakeup.
"""

from __future__ import annotations

import asyncio
import math

QUICK = 0.002
"""Seconds to the first check for newborns after a death: ninja starts its next job within two or three milliseconds."""

SLOW = 0.25
"""Seconds to which that grows if nothing is born: a scheduler that waits for the load average, or was stopped."""

GROWTH = 3
"""The factor between successive pauses: when nothing is left to start, each death causes this many checks in vain."""

LOGS_SECONDS, RECORD_SECONDS = 0.25, 0.05
"""Minimum time between two readings of ninja's logs, and from a job's end to the first: ninja writes its record within
milliseconds. A reading costs three system calls, a watcher's thread far more."""


class Wakeup:
    """Lets one waiter sleep until it is woken. Cheaper than an asyncio.Event with a timeout, which creates tasks."""

    def __init__(self) -> None:
        self._woken = False
        self._waiter: asyncio.Future[None] | None = None
        self._later: asyncio.TimerHandle | None = None

    def wake(self) -> None:
        """Wake the waiter, or let the next wait return at once."""
        self._woken = True
        self._stir()

    def wake_within(self, seconds: float) -> None:
        """Wake the waiter after so many seconds, unless it wakes sooner."""
        if seconds <= 0:
            self.wake()
        elif self._later is None:
            self._later = asyncio.get_running_loop().call_later(seconds, self.wake)

    async def wait(self, seconds: float) -> bool:
        """Sleep until woken, at most `seconds`; return whether it was woken."""
        if not self._woken:
            loop = asyncio.get_running_loop()
            self._waiter = loop.create_future()
            timer = loop.call_later(seconds, self._stir)
            try:
                await self._waiter
            finally:
                timer.cancel()
                self._waiter = None
        if self._later is not None:
            self._later.cancel()
            self._later = None
        woken, self._woken = self._woken, False
        return woken

    def _stir(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Pace:
    """How long to wait until the next check for newborns: longer and longer while none appear."""

    def __init__(self) -> None:
        self._pause = QUICK

    def hurry(self) -> None:
        """Something has ended or was born: more is likely to be born now."""
        self._pause = QUICK

    def next(self, *, unready: bool, due: bool) -> float:
        """Return the seconds to the next check, infinite if none is needed. `unready`: a job is being born at this
        moment; `due`: one may be soon."""
        if unready:
            return QUICK
        if not due:
            return math.inf
        pause = self._pause
        self._pause = min(SLOW, pause * GROWTH)
        return pause


class LogsPace:
    """When to read ninja's logs again, by the monotonic clock. While no job ends they contain nothing new."""

    def __init__(self) -> None:
        self._at = self._rested = 0.0
        self._awaited = False

    def hurry(self, clock: float) -> None:
        """A job has ended: its record is about to be written."""
        if not self._awaited:
            self._at = max(self._at, clock + RECORD_SECONDS)
            self._awaited = True

    def recorded(self, clock: float) -> None:
        """Ninja has started another job: it records ended ones before that."""
        if self._awaited:
            self._at = min(self._at, max(self._rested, clock))

    def next(self, clock: float) -> float:
        """Return the seconds to the next reading, infinite while no record is awaited."""
        return max(0.0, self._at - clock) if self._awaited else math.inf

    def is_time(self, clock: float) -> bool:
        """Say whether to read now; the caller then does so."""
        if clock < self._at:
            return False
        self._at = self._rested = clock + LOGS_SECONDS
        self._awaited = False
        return True
