"""Asks whether a container of the build's own kind starts here: by starting one that does nothing.

Unaware of what the answer means.
"""

from __future__ import annotations

import resource
import time

from stoker.doctor.ask_program import ask
from stoker.doctor.facts import ContainerTrial, Surroundings
from stoker.doctor.find_tools import which

NEVER_FETCH = "--pull=never"
"""An image may be gigabytes: nobody has asked for that yet."""

LEAST_SECONDS = 10.0
"""For the trial: podman needs half a second for a container, on a busy disk several."""


def find_container(here: Surroundings) -> ContainerTrial | None:
    """Return how the trial went; None for a build in no container."""
    words = here.need.container
    if not words:
        return None
    engine, verb, *rest = words
    path = which((engine,), here.env)
    if not path:
        return ContainerTrial(engine, "", rest[-2])
    began = time.monotonic()
    answer = ask([path, verb, NEVER_FETCH, *rest], here.env, max(here.patience, LEAST_SECONDS))
    limits = (resource.getrlimit(resource.RLIMIT_NOFILE)[1], resource.getrlimit(resource.RLIMIT_NPROC)[1])
    return ContainerTrial(
        engine,
        path,
        rest[-2],
        answer.text if answer.problem else "",
        answer.problem,
        limits,
        round(time.monotonic() - began, 1),
        answer.late,
    )
