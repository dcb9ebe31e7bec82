"""The list of running jobs: order, filter, and the position of the cursor. Pure.

Does not know Textual, or how a row looks. The cursor is a job's number: it stays on its job while others come and go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from stoker.model.state import BuildState, Job
from stoker.model.tool import tool_name
from stoker.show.tui.pages.names import distinct_names, matches, plain_name

Order = Literal["time", "memory", "expected", "name"]

ORDERS: tuple[Order, ...] = ("time", "memory", "expected", "name")
"""Sort orders of jobs, in the order in which a key cycles through them."""


@dataclass(frozen=True, slots=True)
class JobView:
    """The user's choices in the table of jobs: the picked job, the order and the filter."""

    cursor: int | None = None
    order: Order = "time"
    words: str = ""
    ended: str = ""
    """The name of the job that was picked when it ended; nothing has been picked since."""
    end: str = "has ended"
    """How it ended."""


def ordered(state: BuildState, now: float, order: Order = "time") -> list[Job]:
    """Return the started jobs, then those on deck; each by running or waiting time, longest first, or by `order`.

    By time, those that run keep their order; a frozen job, whose time stands still, falls behind them.
    """
    jobs = sorted(
        state.jobs.values(), key=lambda job: (job.state == "on_deck", -round(seconds_of(job, now), 3), job.jid)
    )
    if order == "memory":
        jobs.sort(key=lambda job: (job.state == "on_deck", -job.rss))
    elif order == "expected":
        jobs.sort(key=lambda job: (job.state == "on_deck", -(job.expected or 0)))
    elif order == "name":
        jobs.sort(key=lambda job: (job.state == "on_deck", plain_name(job.output)))
    return jobs


def listed(state: BuildState, now: float, view: JobView) -> list[Job]:
    """Return the jobs that the user sees: ordered and filtered."""
    jobs = ordered(state, now, view.order)
    return [job for job in jobs if _is_meant(job, view.words)] if view.words else jobs


def names_of(state: BuildState) -> Mapping[str, str]:
    """Return the names by which jobs that live or have ended lately are listed, by output."""
    live, ended = (job.output for job in state.jobs.values()), (job.output for job in state.history.recent)
    return distinct_names((*live, *ended))


def _is_meant(job: Job, words: str) -> bool:
    tool, doing = tool_name(job.tool, job.output, is_c=job.is_c), job.state.replace("_", " ")
    return matches(words, plain_name(job.output), tool, job.phase, doing, str(job.pid), str(job.shown_pid))


def seconds_of(job: Job, now: float) -> float:
    """Return for how long a job has run by Unix time `now`, without the time when it was frozen; on deck, for how long
    it has waited."""
    return now - since(job) if job.running_since is None else job.age(now)


def since(job: Job) -> float:
    """Return when a job was started; on deck, when it began to wait. Unix seconds."""
    return job.started if job.running_since is None else job.running_since


def soloist(state: BuildState) -> Job | None:
    """Return the job that runs alone, or is to; None if there is none."""
    return next((job for job in ordered(state, state.time) if job.alone), None)


def first_row(jobs: list[Job], cursor: int | None, rows: int) -> int:
    """Return the first visible row: the first of all, where the jobs that run are, unless the cursor's job is further
    down than there are rows; that is then in the middle, if possible."""
    at = next((i for i, job in enumerate(jobs) if job.jid == cursor), 0)
    return 0 if at < rows else max(0, min(at - rows // 2, len(jobs) - rows))


def moved(jobs: list[Job], cursor: int | None, by: int, remembered: int = 0) -> int | None:
    """Return the cursor moved by `by` rows; without a cursor (or if its job has ended), at the remembered row."""
    if not jobs:
        return None
    at = next((i for i, job in enumerate(jobs) if job.jid == cursor), None)
    goal = min(remembered, len(jobs) - 1) if at is None else at + by
    return jobs[max(0, min(len(jobs) - 1, goal))].jid
