"""Acts on one job of a running build, named on the command line. Unaware of how a job is stopped and continued."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterable

from stoker.cli.asking import ask_engine, live_build
from stoker.cli.commands.status import current
from stoker.cli.errors import FAILURE, CliError
from stoker.model.state import Job
from stoker.model.text import clean

MOST_NAMED = 4
"""Jobs that are named in a refusal."""


def add_job(parser: argparse.ArgumentParser) -> None:
    """Add the build and the job."""
    parser.add_argument(
        "words",
        nargs="+",
        metavar="[ID] JOB",
        help="a build (default: the running one), and one of its jobs: its output, the end of that, or its pid",
    )


def act_on_job(words: list[str], act: str) -> int:
    """Ask the engine for an act on one job, and print the resulting state. Raises CliError."""
    if len(words) > 2:
        raise CliError(f"{act} takes a build and one job at most, as in: stoker {act} mybuild a.o")
    *build, name = words
    paths = live_build(build[0] if build else None)
    jobs = asyncio.run(current(paths)).state.jobs.values()
    return ask_engine(paths, "job", {"jid": _named(jobs, name).jid, "act": act})


def _named(jobs: Iterable[Job], name: str) -> Job:
    """Return the job that is meant: an output as it is comes before the end of one. Raises CliError."""
    every = list(jobs)
    for found in (
        [job for job in every if name in (job.output, str(job.pid))],
        [job for job in every if job.output.endswith(f"/{name}")],
    ):
        if len(found) == 1:
            return found[0]
        if found:
            raise CliError(f"{name!r} may be {_listed(found)}; write more of it", FAILURE)
    there = f"; jobs now: {_listed(every)}" if every else ""
    raise CliError(f"no job {name!r}{there}", FAILURE)


def _listed(jobs: list[Job]) -> str:
    names = [clean(job.output) or f"pid {job.pid}" for job in jobs]
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more
