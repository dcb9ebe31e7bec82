"""The chain of jobs that made a recorded build take as long as it did. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from stoker.report.job_records import JobRecord
from stoker.report.recorded import RecordedBuild

MAX_LINKS = 500
"""Jobs of the chain, from its end backwards."""

SLACK = 1.0
"""Seconds by which a job's end may be noticed after the next one's birth, of which the kernel knows the time."""

LEAST_WAIT = 0.5
"""Seconds on deck from which on a job came late for lack of a place or of memory, and not for its inputs."""


def critical_path(build: RecordedBuild) -> list[JobRecord]:
    """Return the jobs from the first to the last of the chain: each came when the one before it had ended.

    Backwards from the job that ended last. Before one that waited on deck stands the job that made way for it: the one
    that ended last when it was let go. Before any other, of those that it waited for by the graph, the one that ended
    last when it was born; where no graph is known, of all. Before one that waited for none, the one that ended last
    before its scheduler began: an earlier step or attempt.
    """
    ran = sorted((job for job in build.jobs if job.began is not None), key=lambda job: job.ended)
    ends = [job.ended for job in ran]
    needed, begun = _needed(build), {scheduler.sid: scheduler.started for scheduler in build.schedulers}
    chain: list[JobRecord] = []
    job = ran[-1] if ran else None
    while job is not None and len(chain) < MAX_LINKS:
        chain.append(job)
        held = job.waiting >= LEAST_WAIT
        until = (job.began or job.born) if held else job.born
        groups = None if held or job.group is None else needed.get((job.sid, job.group))
        before = _last(ran[: bisect_right(ends, until + SLACK)], job, groups)
        if before is None and groups is not None:
            before = _last(ran[: bisect_right(ends, begun.get(job.sid, 0.0))], job, None)
        job = before
    return chain[::-1]


def _last(ended: Sequence[JobRecord], job: JobRecord, groups: frozenset[int] | None) -> JobRecord | None:
    """Return the last of `ended` that `job` waited for: in one of these groups, or any. It began before the job."""
    for other in reversed(ended):
        earlier = (other.began or other.born) < (job.began or job.born)
        if earlier and (groups is None or (other.sid == job.sid and other.group in groups)):
            return other
    return None


def _needed(build: RecordedBuild) -> dict[tuple[int, int], frozenset[int]]:
    """Return for each group of each scheduler the groups with jobs that it waits for; through empty ones too."""
    found: dict[tuple[int, int], frozenset[int]] = {}
    peopled = {(job.sid, job.group) for job in build.jobs}
    for scheduler in build.schedulers:
        for group, deps in enumerate(scheduler.deps):
            reached: set[int] = set()
            for dep in deps:
                reached |= {dep} if (scheduler.sid, dep) in peopled else found.get((scheduler.sid, dep), frozenset())
            found[scheduler.sid, group] = frozenset(reached)
    return found
