"""Computes several things in parallel, each in its own process, and reports the overall progress.

Ctrl-C ends the processes too. Unaware of what is computed; the results must be picklable.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

Far = Callable[[float], None]
T = TypeVar("T")
R = TypeVar("R")

LOOK_SECONDS = 0.2
"""Between two looks at how far all are."""

_job: dict[str, Any] = {}
"""In a process of ours: the work, the things, and how far each is."""


def worked_out(work: Callable[[T, Far], R], things: Sequence[T], far: Far) -> list[R]:
    """Return `work` of each of these, in their order. It is given what hears how far it is; `far` hears it of all."""
    count = min(len(things), len(os.sched_getaffinity(0)))
    if count < 2:
        return [work(thing, _part(far, number, len(things))) for number, thing in enumerate(things)]
    context = multiprocessing.get_context("fork")
    shares = context.Array("d", len(things), lock=False)
    with context.Pool(count, _begin, (work, things, shares)) as pool:
        answer = pool.map_async(_one, range(len(things)), chunksize=1)
        while not answer.ready():
            far(sum(shares) / len(things))
            answer.wait(LOOK_SECONDS)
        found: list[R] = answer.get()
    return found


def _part(far: Far, number: int, parts: int) -> Far:
    return lambda share: far((number + share) / parts)


def _begin(work: Any, things: Any, shares: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started us ends us
    _job.update(work=work, things=things, shares=shares)


def _one(number: int) -> Any:
    def far(share: float) -> None:
        _job["shares"][number] = share

    found = _job["work"](_job["things"][number], far)
    far(1.0)
    return found
