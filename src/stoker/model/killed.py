"""Jobs that were killed, which is no failure. Says which end of a job, and which failure in the output, is only a kill.

Pure. Unaware of events, and of who kills and why.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from stoker.model.events import KilledBy
from stoker.model.state import BuildState, Failure, FinishedJob, KilledJob
from stoker.model.tool import is_build_tool

DroppedBy = Literal["failure", "kill", "stop", "rerun"]
"""Why jobs were dropped or interrupted: others had failed, or were killed; the build was stopped; or any of that, and
the step ran again."""

BY_THE_SYSTEM = ("memory", "unknown")
"""Killers whose victims count as failed if nobody runs them again, and nothing else made the build fail."""


def same_output(a: str, b: str) -> bool:
    """Say whether two tools mean the same output; either may name it from further up the tree."""
    return bool(a and b) and (a == b or a.endswith("/" + b) or b.endswith("/" + a))


def death_of(state: BuildState, output: str, jid: int | None = None) -> KilledJob | None:
    """Return how the job `jid` that makes `output` was killed in this attempt at the step; None if it was not."""
    for death in reversed(killed_in_attempt(state)):
        if death.jid == jid if death.jid is not None and jid is not None else makes(state, death, output):
            return death
    return None


def killed_in_attempt(state: BuildState) -> list[KilledJob]:
    """Return the jobs that were killed in this attempt at the step, the first one first."""
    attempt = attempt_of(state)
    return [death for death in state.killed if death.attempt == attempt]


def has_dropped(state: BuildState) -> bool:
    """Return whether jobs were dropped or interrupted in this attempt at the step."""
    now = (state.step.index if state.step is not None else 1, attempt_of(state))
    return any((s.dropped or s.interrupted) and (s.step, s.attempt) == now for s in state.schedulers.values())


def last_death_of(state: BuildState, output: str) -> KilledJob | None:
    """Return how the job that makes `output` was last killed, in any attempt at the step; None if it never was."""
    return next((death for death in reversed(state.killed) if same_output(death.output, output)), None)


def failed_steps(state: BuildState) -> tuple[Failure, ...]:
    """Return the real failures in the output: a kill is none, unless it made the build fail."""
    return tuple(f for f in state.failures if f.killed_by is None or is_final(state, f.killed_by))


def killers_of(state: BuildState, failure: Failure) -> frozenset[KilledBy]:
    """Return who may have sent a SIGKILL that a failed step shows: whoever is known to have killed it, otherwise those
    who killed in this attempt, as the step may be a make whose compiler was killed; empty if nobody is known."""
    if failure.killed_by is not None:
        return frozenset({failure.killed_by})
    return frozenset(death.by for death in killed_in_attempt(state))


def failed_by_itself(state: BuildState) -> Failure | None:
    """Return the first step of this attempt that would fail again, for which the killed jobs are not run again either;
    None if there is none."""
    return next(_errors(state), None)


def all_failed_by_themselves(state: BuildState) -> list[Failure]:
    """Return all such steps of this attempt, the first one first."""
    return list(_errors(state))


def _errors(state: BuildState) -> Iterator[Failure]:
    """A nested build fails for what failed in it, and that is reported too."""
    return (f for f in state.failures if f.killed_by is None and not is_build_tool(f.command))


def step_runs_again(state: BuildState) -> bool:
    """Say whether the step is to run again if jobs were killed in this attempt, as far as is known."""
    return not state.over and state.phase != "stopping" and failed_by_itself(state) is None


def runs_again(state: BuildState, death: KilledJob) -> bool:
    """Say whether the killed job is to run again, as far as is known: until it does, or the build ends."""
    return death.attempt == attempt_of(state) and step_runs_again(state)


def killed_for_good(state: BuildState) -> int:
    """Return jobs that the kernel, or an unknown sender, has killed and that nobody runs again: they made the build
    fail."""
    return sum(is_last_word(state, death) for death in state.killed)


def killed_beside_failures(state: BuildState) -> list[KilledJob]:
    """Return the killed jobs without those that count as failures and are among `failed_steps`."""
    failed = [f.output for f in failed_steps(state) if f.killed_by is not None]
    return [
        d for d in state.killed if not (is_last_word(state, d) and any(makes(state, d, output) for output in failed))
    ]


def is_last_word(state: BuildState, death: KilledJob) -> bool:
    """Say whether nobody runs that job again: see `killed_for_good`."""
    return death.attempt == attempt_of(state) and is_final(state, death.by)


def is_final(state: BuildState, by: str) -> bool:
    """Say whether kills by that killer made the build fail: not beside a step that failed by itself."""
    return state.outcome == "failed" and by in BY_THE_SYSTEM and failed_by_itself(state) is None


def attempt_of(state: BuildState) -> int:
    """Return which attempt at its step runs, from 1."""
    return state.step.attempt if state.step is not None else 1


def makes(state: BuildState, death: KilledJob, output: str) -> bool:
    """Whether the killed job was to make `output`, as far as names show: not where another job has this very name."""
    if death.output == output or not same_output(death.output, output):
        return death.output == output != ""
    ended = {job.jid for job in state.history.recent if job.output == output and not is_earlier(state, job)}
    live = {job.jid for job in (*state.jobs.values(), *state.leaving.values()) if job.output == output}
    return death.jid is None or not (ended | live) - {None, death.jid}


def is_earlier(state: BuildState, job: FinishedJob) -> bool:
    """Whether it ended in an attempt before this one, or in another step: that it failed there stays true."""
    scheduler, step = state.schedulers.get(job.sid), state.step
    if scheduler is None or step is None:
        return False
    return (scheduler.step, scheduler.attempt) != (step.index, step.attempt)
