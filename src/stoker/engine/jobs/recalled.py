"""Schedulers and jobs that ended while no engine was looking, as far as the journal tells, in the senses' own terms."""

from __future__ import annotations

from stoker.model import state as state_of
from stoker.sense.proc.jobs import Job, JobUse
from stoker.sense.proc.schedulers import Scheduler


def remembered(before: state_of.Scheduler) -> Scheduler:
    """A scheduler of the journal that has ended meanwhile, as far as the journal tells."""
    return Scheduler(before.pid, -before.sid, before.tool, before.directory, "", (), before.width, "build.ninja", ())


def remembered_use(job: state_of.Job, scheduler: Scheduler) -> JobUse:
    """A job of the journal that has ended meanwhile."""
    sensed = Job(job.pid, -job.jid, scheduler.key, job.started, (), job.output, job.tool)
    return JobUse(sensed, job.rss, job.peak_rss, job.cpu, 0.0, job.phase, "running")
