"""Answers a viewer's query for the processes of one job. Changes nothing; unaware of sockets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker.engine.jobs.table import JobTable
from stoker.model.codec import whole
from stoker.model.job_tree import ProcessTree
from stoker.model.update import CommandRefused
from stoker.sense.proc.job_processes import processes_of


def ask_processes(jobs: JobTable, arguments: Mapping[str, Any]) -> ProcessTree:
    """Return the processes of job `jid`, read now; raises CommandRefused."""
    jid = whole(arguments.get("jid"))
    if jid is None:
        raise CommandRefused("jid is a whole number")
    job = jobs.get(jid)
    if job is None:
        raise CommandRefused("that job has ended")
    return processes_of(job.seen)
