"""Acts on one job of a running build, named on the command line. Unaware of how a job is stopped and continued."""

from __future__ import annotations

import argparse
import asyncio
import sys

from stoker.cli.asking import answer_of, live_build
from stoker.cli.commands.status import current
from stoker.cli.errors import FAILURE, CliError
from stoker.model.state import BuildState, Job
from stoker.model.text import clean
from stoker.show.killed_text import fate_text, how_text, killed_now
from stoker.show.level_text import level_text

MOST_NAMED = 4
"""Jobs that are named in a refusal."""


def add_job(parser: argparse.ArgumentParser) -> None:
    """Add the build and the job."""
    parser.add_argument(
        "words",
        nargs="+",
        metavar="[ID] JOB",
        help="a build (default: the running one), and one of its jobs: its output, a part of that, or its pid",
    )


def act_on_job(words: list[str], act: str) -> int:
    """Ask the engine for an act on one job, and print what became of it and the level. Raises CliError."""
    if len(words) > 2:
        raise CliError(f"{act} takes a build and one job at most, as in: stoker {act} mybuild a.o")
    *build, name = words
    paths = live_build(build[0] if build else None)
    job = _named(asyncio.run(current(paths)).state, name)
    state = answer_of(paths, "job", {"jid": job.jid, "act": act})
    print(f"stoker: {_label(job)} {_now(state.jobs.get(job.jid))}; {level_text(state)}", file=sys.stderr)
    return 0


def _now(job: Job | None) -> str:
    """Return what has become of the job: stoker may have frozen again what was thawed."""
    if job is None:
        return "has ended"
    if job.state == "frozen" and job.moved_by == "person":
        return "is frozen by hand"
    if job.state == "frozen":
        return f"was frozen again by stoker{f': {clean(job.waits)}' if job.waits else ''}"
    return "is on deck" if job.state == "on_deck" else "runs"


def _named(state: BuildState, name: str) -> Job:
    """Return the job that is meant. An output as it is comes first, then the end of one, then a name without its
    extensions, then any part; a job that was just killed comes before a part of another's name. Raises CliError."""
    every = list(state.jobs.values())
    exact = [job for job in every if name in (job.output, str(job.pid))]
    job = _single(name, exact, [job for job in every if job.output.endswith(f"/{name}")])
    if job is not None:
        return job
    for death in reversed(killed_now(state)):
        if f"/{death.output}".endswith(f"/{name}"):
            raise CliError(f"{clean(death.output)} was {how_text(death.by, death.who)}; it {fate_text(state)}", FAILURE)
    parts = [] if name.isdecimal() else [job for job in every if name in job.output]  # digits are a pid that has ended
    job = _single(name, [job for job in parts if job.output.rpartition("/")[2].startswith(f"{name}.")], parts)
    if job is not None:
        return job
    there = f"; jobs now: {_listed(every)}" if every else ""
    raise CliError(f"no job {name!r}{there}", FAILURE)


def _single(name: str, *choices: list[Job]) -> Job | None:
    """Return the only job of the first choice that has any; None if none has. Raises CliError."""
    found = next(filter(None, choices), [])
    if len(found) > 1:
        raise CliError(f"{name!r} may be {_listed(found)}; write more of it", FAILURE)
    return found[0] if found else None


def _listed(jobs: list[Job]) -> str:
    names = [_label(job) for job in jobs]
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def _label(job: Job) -> str:
    return clean(job.output) or f"pid {job.pid}"
