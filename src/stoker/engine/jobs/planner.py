"""Makes the plan of each ninja in the background, each in its own process.

Unaware of jobs, of what a plan is used for, and of the journal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from stoker.engine.jobs.scheduler_book import SchedulerBook
from stoker.sense.ninja.plan import Plan, manifest_stamp
from stoker.sense.ninja.plan_process import PlanRequest, make_plan


class Planned(NamedTuple):
    """The outcome: the plan, or a note why there is none, or both."""

    book: SchedulerBook
    plan: Plan | None
    note: str


class Planner:
    """Plans in progress; each writes into `scratch`."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._stamps: dict[int, str] = {}
        self._planned: list[Planned] = []

    def make(self, books: Iterable[SchedulerBook]) -> None:
        """Start a plan for each ninja, and another one when CMake has regenerated its manifest during the build."""
        for book in books:
            scheduler = book.scheduler
            if scheduler.tool != "ninja" or book.sid in self._tasks:
                continue
            stamp = manifest_stamp(scheduler.directory, scheduler.manifest, scheduler.root)
            if stamp != self._stamps.get(book.sid):
                self._stamps[book.sid] = stamp
                book.plan_is_due = True
                self._tasks[book.sid] = asyncio.get_running_loop().create_task(self._plan(book))

    async def _plan(self, book: SchedulerBook) -> None:
        s, inside = book.scheduler, book.scheduler.pid if book.scheduler.root else 0
        request = PlanRequest(s.exe, s.directory, s.manifest, s.targets, book.started, inside)
        try:
            plan, note = await make_plan(request, self._scratch / f"plan-{book.sid}.json")
        finally:
            self._tasks.pop(book.sid, None)
        book.plan_is_due = False
        if plan is not None:
            book.take_plan(plan)
        self._planned.append(Planned(book, plan, note))

    def take(self) -> list[Planned]:
        """Return the plans made since the last call."""
        planned, self._planned = self._planned, []
        return planned

    def cancel(self, sids: Iterable[int]) -> None:
        """Cancel the plans of these schedulers."""
        for sid in sids:
            if sid in self._tasks:
                self._tasks[sid].cancel()

    async def close(self) -> None:
        """End what runs in the background."""
        tasks = tuple(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
