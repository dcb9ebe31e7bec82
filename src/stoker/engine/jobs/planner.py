"""Makes the plan of each ninja in the background, and tells of it at the next look.

Unaware of processes and of the journal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path

from stoker.engine.jobs.ninja_logs import Tracked
from stoker.model import events as ev
from stoker.sense.ninja.plan import Plan, manifest_stamp
from stoker.sense.ninja.plan_process import PlanRequest, make_plan


class Planner:
    """Plans that are being made; each in a process of its own that writes into `scratch`."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._tasks: set[asyncio.Task[None]] = set()
        self._pending: list[ev.Event] = []
        self.on_plan: Callable[[int, Plan], None] = lambda _sid, _plan: None
        """Told of each plan as it is made, by its scheduler's number."""

    def make(self, all_tracked: Iterable[Tracked]) -> None:
        """A plan for each ninja, and another when CMake has written its manifest anew in mid-build."""
        for tracked in all_tracked:
            scheduler = tracked.book.scheduler
            if scheduler.tool != "ninja" or (tracked.plan_task is not None and not tracked.plan_task.done()):
                continue
            stamp = manifest_stamp(scheduler.directory, scheduler.manifest)
            if stamp != tracked.planned_stamp:
                tracked.planned_stamp = stamp
                tracked.book.plan_is_due = True
                tracked.plan_task = asyncio.get_running_loop().create_task(self._plan(tracked))
                self._tasks.add(tracked.plan_task)
                tracked.plan_task.add_done_callback(self._tasks.discard)

    async def _plan(self, tracked: Tracked) -> None:
        book, scheduler = tracked.book, tracked.book.scheduler
        request = PlanRequest(scheduler.exe, scheduler.directory, scheduler.manifest, scheduler.targets, book.started)
        plan, note = await make_plan(request, self._scratch / f"plan-{book.sid}.json")
        book.plan_is_due = False
        if note:
            self._pending.append(ev.Noticed("info", note))
        if plan is not None:
            self.on_plan(book.sid, plan)
            for jid, use, output, tool in book.name_jobs(plan):
                started = round(use.job.started, 2)
                self._pending.append(ev.JobStarted(jid, book.sid, use.job.pid, output, tool, started))
            self._pending += book.recount()
            self._pending.append(ev.SchedulerPlanned(book.sid, plan.total, "dry-run", plan.summary.tools))

    def take(self) -> list[ev.Event]:
        """What became known since the last call."""
        pending, self._pending = self._pending, []
        return pending

    async def close(self) -> None:
        """End what runs in the background."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
