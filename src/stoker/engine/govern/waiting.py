"""Announces why jobs wait: once for all jobs that wait for the same reason, and again only when the reason changes.

Unaware of where reasons come from.
"""

from __future__ import annotations

from collections.abc import Iterable

from stoker.decide.policy.waits import Wait, Waits
from stoker.engine.jobs.managed_job import Life, ManagedJob
from stoker.model import events as ev


def new_reasons(jobs: Iterable[ManagedJob], waits: Waits) -> list[ev.JobsWaiting]:
    """Return what is new about why these jobs wait; each job keeps what was announced."""
    news: dict[Wait, list[int]] = {}
    for job in jobs:
        wait = _reason(job, waits)
        if wait is not None and wait.is_news_after(job.wait):
            job.wait = wait
            news.setdefault(wait, []).append(job.jid)
    return [ev.JobsWaiting(tuple(jids), wait.cause, wait.why) for wait, jids in news.items()]


def _reason(job: ManagedJob, waits: Waits) -> Wait | None:
    if not (job.is_stopped and job.counts):
        return None
    return waits.of.get(job.jid) or (waits.on_deck if job.life is Life.ON_DECK else waits.frozen)
