"""How the demonstration's jobs competed for memory, and what ninja alone would have needed, by simulation.

Unaware of how the build was started and of where the line is shown.
"""

from __future__ import annotations

from pathlib import Path

from stoker.config.paths import BuildPaths
from stoker.decide.memory.curves import Point
from stoker.model.events import JobFinished
from stoker.model.units import format_bytes
from stoker.record.builds import final_state
from stoker.record.journal_reader import read_kinds
from stoker.simulate.runner import simulate
from stoker.simulate.trace import TraceJob

ENOUGH = 2.0**50
"""Bytes of a machine on paper on which memory stops nobody."""


def fight_text(paths: BuildPaths, width: int) -> str:
    """Say how the jobs of a build that has ended fought, and what ninja with `-j width` would have needed, if that is
    more memory than it had."""
    state = final_state(paths)
    killed = sum(lost.count for lost in state.lost.values())
    text = f"{state.restraint.held} waited for memory, {state.restraint.freezes or '0 freezes'}, {killed} killed"
    wanted = _side_by_side(paths.journal, width)
    if state.machine is None or wanted <= state.machine.memory_budget:
        return text
    budget = format_bytes(state.machine.memory_budget)
    return f"{text}; plain ninja -j{width} would have needed {format_bytes(wanted)}, the budget is {budget}"


def _side_by_side(journal: Path, width: int) -> float:
    """Return the bytes that the demo's objects take at most if always `width` of them are made at once, in the order in
    which ninja started them; by what each was measured to hold over its life, 0 if none was measured."""
    jobs = {}
    for record in read_kinds(journal, JobFinished):
        job = record.event
        if isinstance(job, JobFinished) and job.lesson is not None and job.output.startswith("obj/"):
            points = tuple(map(Point, job.lesson.ages, map(float, job.lesson.sizes)))
            if points[-1].age > 0:
                jobs[job.jid or 0] = TraceJob(job.output, job.tool, points)
    if not jobs:
        return 0.0
    return simulate([jobs[jid] for jid in sorted(jobs)], width, ENOUGH, f"fixed:{width}").peak
