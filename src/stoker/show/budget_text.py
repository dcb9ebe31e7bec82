"""Describes what a build's jobs hold, and whether it kept to its memory budget. Pure; knows no screens."""

from __future__ import annotations

from stoker.model.state import BuildState
from stoker.model.units import format_bytes, format_duration

LEAST_SECONDS = 1.0


def over_text(state: BuildState) -> str:
    """Return `over the budget for 1:05, at most 429 MiB of 300 MiB`; empty if the build kept to it."""
    memory, machine = state.memory, state.machine
    if memory.over_seconds < LEAST_SECONDS or machine is None:
        return ""
    most = f"at most {format_bytes(memory.used_peak)} of {format_bytes(machine.memory_budget)}"
    return f"over the budget for {format_duration(memory.over_seconds)}, {most}"


def promised_of(state: BuildState) -> str:
    """Say whose the memory of the next minutes is: `expected of running jobs`, or what jobs that stand still hold."""
    runs = any(job.state == "running" for job in state.jobs.values())
    return "expected of running jobs" if runs else "held by frozen jobs"
