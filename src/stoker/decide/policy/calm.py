"""Decides when the ends of several jobs may be answered together: on busy cores each answer costs the jobs time.

A scheduler starts another job as soon as one has ended. If that is stopped a moment later, it has only run in the free
place. Pure; knows no process and no clock.
"""

from __future__ import annotations

from collections.abc import Iterable

from stoker.decide.memory.curves import Curve
from stoker.decide.policy.unknown_jobs import LEAP, is_unknown
from stoker.model.tool import Tool

TOGETHER_SECONDS = 0.03
"""For how long an end waits for others. Few jobs are shorter, and those may end unseen. What runs meanwhile without a
decision takes at most a thirtieth of a LEAP per core."""

SURE = 4
"""Seconds for which all cores could fill memory at their fastest: a hundred times what an end waits."""


def is_calm(room: float, cores: float, jobs: Iterable[tuple[Tool, Curve]]) -> bool:
    """Return whether nothing can become short within a second.

    `room` is what is available beyond the reserve, in bytes; `jobs` are all that run or wait. Before the first ones
    nobody knows what a scheduler will start. A compilation too short to be measured stays a guess in each build: it is
    one of many small files, and can wait where there is room for SURE such seconds.
    """
    sure = room >= SURE * LEAP * cores
    unknown = [is_unknown(curve) and (tool == "other" or not sure) for tool, curve in jobs]
    return room >= LEAP * cores and bool(unknown) and not any(unknown)


def answer_pause(working: int, cores: float, *, calm: bool) -> float:
    """Return the seconds within which a job's end must be answered; `working` jobs still run. No core must be idle."""
    return TOGETHER_SECONDS if calm and working >= cores else 0.0
