"""Watches the shared cache that a build uses: one that stops answering costs each compilation a minute.

A thread queries every few seconds, so that nothing here ever blocks. Unaware of what the cache contains.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from stoker.model import events as ev
from stoker.model.cache_use import Reached, SharedCache
from stoker.model.report import Severity
from stoker.sense.caches.endpoints import CachePlace
from stoker.sense.caches.probe import Answered, cost, probe

ASK_EVERY, ASK_AGAIN = 3.0, 1.0
"""Seconds between two queries, normally and after a query without an answer."""

PATIENCE = 2.0
"""Seconds that an answer may take; on a local network it takes a few ms. With these three values a dead cache is
detected after 8 s at most: one query, another one, and the time between them."""

DEAD_AFTER = 2
"""Consecutive queries without an answer: one may be lost when a server saves its contents."""

SLOW = 0.5
"""Seconds. sccache queries and stores one after the other: for a compilation of 5 s that is a fifth."""

HANGS = 2 * PATIENCE
"""Seconds after which a query itself counts as lost: a name server may exceed any limit of ours."""


@dataclass(slots=True)
class _Watched:
    """What is known about one endpoint: consecutive queries without an answer, and what was last reported."""

    failed: int = 0
    slow: int = 0
    reported: Reached = "answers"


class CacheWatch:
    """Starts watching when `start` is called; `look` returns what is new, and never blocks."""

    def __init__(self, ask: Callable[[CachePlace, float], Answered] = probe) -> None:
        self._ask = ask
        self._endpoints: tuple[CachePlace, ...] = ()
        self._watched: dict[CachePlace, _Watched] = {}
        self._answers: queue.SimpleQueue[tuple[CachePlace, Answered]] = queue.SimpleQueue()
        self._stopped = threading.Event()
        self._asking: tuple[CachePlace, float] | None = None

    def start(self, endpoints: Sequence[CachePlace], known: Iterable[SharedCache] = ()) -> None:
        """Watch these from now on; `known` is what an earlier engine has reported about them."""
        if self._endpoints or not endpoints:
            return
        self._endpoints = tuple(endpoints)
        said = {each.endpoint: each.state for each in known}
        self._watched = {e: _Watched(reported=said.get(e.name, "answers")) for e in self._endpoints}
        threading.Thread(target=self._work, name="cache-watch", daemon=True).start()

    def close(self) -> None:
        """Stop watching."""
        self._stopped.set()

    def look(self) -> list[ev.Event]:
        """Return what is new since the last look."""
        events: list[ev.Event] = []
        while not self._answers.empty():
            events += self._take(*self._answers.get())
        if self._asking is not None and time.monotonic() - self._asking[1] > HANGS:
            events += self._report(self._asking[0], "silent", Answered(HANGS, "its name is not resolved", silent=True))
        return events

    def _work(self) -> None:
        while not self._stopped.is_set():
            all_answer = True
            for endpoint in self._endpoints:
                self._asking = endpoint, time.monotonic()
                answered = self._ask(endpoint, PATIENCE)
                self._asking = None
                self._answers.put((endpoint, answered))
                all_answer = all_answer and not answered.problem
            self._stopped.wait(ASK_EVERY if all_answer else ASK_AGAIN)

    def _take(self, endpoint: CachePlace, answered: Answered) -> list[ev.Event]:
        watched = self._watched[endpoint]
        watched.failed = watched.failed + 1 if answered.problem else 0
        watched.slow = watched.slow + 1 if not answered.problem and answered.seconds > SLOW else 0
        if watched.failed >= DEAD_AFTER:
            return self._report(endpoint, "silent", answered)
        if watched.slow >= DEAD_AFTER:
            return self._report(endpoint, "slow", answered)
        return [] if watched.failed or watched.slow else self._report(endpoint, "answers", answered)

    def _report(self, endpoint: CachePlace, state: Reached, answered: Answered) -> list[ev.Event]:
        watched = self._watched[endpoint]
        if watched.reported == state:
            return []
        watched.reported = state
        found = SharedCache(endpoint.tool, endpoint.name, state, round(answered.seconds, 3), answered.problem)
        severity: Severity = "info" if state == "answers" else "warning"
        return [ev.CacheReached(found), ev.Noticed(severity, _sentence(endpoint, state, answered))]


def _sentence(endpoint: CachePlace, state: Reached, answered: Answered) -> str:
    """Return the problem and its remedy."""
    where = f"{endpoint.tool}'s cache at {endpoint.name}"
    if state == "answers":
        return f"{where} answers again"
    if state == "slow":
        return f"{where} takes {answered.seconds:.1f} s for an answer, and each compilation waits for several"
    remedy = f"start it again; or stop the build, run it without {endpoint.origin}, and resume"
    return f"{where} does not answer ({answered.problem}): {cost(endpoint, answered)}; {remedy}"
