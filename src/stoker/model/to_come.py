"""What running jobs are expected to take beyond what they hold, so that it agrees with the figures of each job. Pure.

Between two measurements jobs end and start: what an ended one held is taken off at once, and a new one counts with its
expected peak, so that no figure is of a job that another figure no longer has.
"""

from __future__ import annotations

from collections.abc import Iterable

from stoker.model.evolve import evolve
from stoker.model.state import BuildState, Job, MemoryUse


def still_to_come(state: BuildState) -> int:
    """Return the bytes that the running jobs together are expected to take, at most at one moment, beyond what they
    hold: none while all are frozen.

    That is never more than what each of them lacks to its expected peak, and less if they do not reach it at once.
    """
    if state.level.paused == "hard":
        return 0
    lacking = sum(
        max(0, (job.expected or 0) - job.rss) for job in _local(state.jobs.values()) if job.state == "running"
    )
    if not state.memory.promised:  # the engine has yet to sum them up
        return lacking
    return min(lacking, max(0, state.memory.promised - held_by_started(state)))


def promised(state: BuildState) -> int:
    """Return the bytes that the running and frozen jobs together are expected to hold, at most at one moment."""
    return held_by_started(state) + still_to_come(state)


def held_by_started(state: BuildState) -> int:
    """Return the bytes that jobs hold which run here or are frozen."""
    return sum(job.rss for job in _local(state.jobs.values()))


def with_started(memory: MemoryUse, expected: int | None) -> MemoryUse:
    """Promise a job that has just been started what it is expected to need."""
    return evolve(memory, promised=memory.promised + max(0, expected or 0))


def without(state: BuildState, ended: Iterable[Job]) -> BuildState:
    """Take what these jobs held off the figures of the last measurement."""
    machine, memory, ended = state.machine, state.memory, list(ended)
    held = sum(job.rss for job in ended)
    if machine is None or not held:
        return state
    freed = min(held, memory.build, machine.memory_used)
    used, available = machine.memory_used - freed, machine.memory_available + freed
    left = max(0, memory.promised - sum(job.rss for job in _local(ended)))
    return evolve(
        state,
        machine=evolve(machine, memory_used=used, memory_available=available),
        memory=evolve(memory, build=memory.build - freed, promised=left),
    )


def _local(jobs: Iterable[Job]) -> list[Job]:
    """Return those that have been started and that this machine runs: the promise is about them."""
    return [job for job in jobs if job.state != "on_deck" and not job.host]
