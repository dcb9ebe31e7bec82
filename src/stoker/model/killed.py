"""Jobs that were killed: none of them failed. Which end of a job and which words of a build tool are only that. Pure.

A kill on purpose is known before the job's end, a kill by the kernel only once the output has told of it; what had
counted as a failure until then is put right. Unaware of events, and of who kills and why.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from stoker.model.evolve import evolve
from stoker.model.state import BuildState, Failure, FinishedJob, KilledJob, Lost

BY_THE_SYSTEM = ("memory", "unknown")
"""Killers whose victims failed after all where nobody runs them again."""


def same_output(a: str, b: str) -> bool:
    """Whether two tools speak of one output; either may name it from further up the tree."""
    return bool(a and b) and (a == b or a.endswith("/" + b) or b.endswith("/" + a))


def death_of(state: BuildState, output: str, jid: int | None = None) -> KilledJob | None:
    """How the job `jid` that makes `output` was killed in this attempt at the step; None if it was not."""
    attempt = _attempt(state)
    for death in reversed(state.killed):
        if death.attempt != attempt:
            continue
        if death.jid == jid if death.jid is not None and jid is not None else _made(state, death, output):
            return death
    return None


def last_death_of(state: BuildState, output: str) -> KilledJob | None:
    """How the job that makes `output` was killed last, in whatever attempt at the step; None if it never was."""
    return next((death for death in reversed(state.killed) if same_output(death.output, output)), None)


def with_death(state: BuildState, death: KilledJob, limit: int) -> BuildState:
    """One more job was killed; `limit` bounds how many of them are kept. What seemed to have failed did not.

    Of a death that was told before its job had a name, it is the name.
    """
    nameless = next((d for d in state.killed if not d.output and d.jid is not None and d.jid == death.jid), None)
    if nameless is not None:
        state = evolve(state, killed=tuple(d for d in state.killed if d is not nameless))
        death = replace(nameless, output=death.output)
    failures = tuple(
        replace(f, killed_by=death.by) if f.killed_by is None and _made(state, death, f.output) else f
        for f in state.failures
    )
    before, state = state.killed[-(limit - 1) :], evolve(state, failures=failures)
    ended = (j for j in reversed(state.recent) if j.outcome == "failed" and not _is_earlier(state, j))
    wrong = next((j for j in ended if _is_of(j, death)), None)
    if wrong is not None and death.jid is None:
        death = replace(death, jid=wrong.jid)
    state = evolve(state, killed=(*before, death))
    return state if wrong is None else _corrected(state, wrong, death)


def with_identity(state: BuildState, death: KilledJob, output: str, jid: int | None) -> BuildState:
    """What a job makes may be learnt only after it was killed; and which of several that make files of one name in
    different folders it was, only at its end. One death is that of one job."""
    known = replace(death, output=death.output or output, jid=jid if death.jid is None else death.jid)
    if known == death:
        return state
    return evolve(state, killed=tuple(known if d is death else d for d in state.killed))


def with_lost(lost: Mapping[str, Lost], death: KilledJob, seconds: float) -> Mapping[str, Lost]:
    """The costs with those of one more job, which had run for `seconds`."""
    before = lost.get(death.by, Lost())
    return {**lost, death.by: Lost(before.count + 1, round(before.seconds + seconds, 3))}


def failed_steps(state: BuildState) -> tuple[Failure, ...]:
    """What the output tells as failed, and is: what was killed is not, unless the build has failed of it."""
    return tuple(f for f in state.failures if f.killed_by is None or is_final(state, f.killed_by))


def killed_for_good(state: BuildState) -> int:
    """Jobs that the kernel, or somebody unknown, has killed and that nobody runs again: the build failed by them."""
    return sum(is_last_word(state, death) for death in state.killed)


def is_last_word(state: BuildState, death: KilledJob) -> bool:
    """Whether it is one of them."""
    return death.attempt == _attempt(state) and is_final(state, death.by)


def is_final(state: BuildState, by: str) -> bool:
    """Whether the build has failed of kills by that killer."""
    return state.outcome == "failed" and by in BY_THE_SYSTEM


def _attempt(state: BuildState) -> int:
    return state.step.attempt if state.step is not None else 1


def _made(state: BuildState, death: KilledJob, output: str) -> bool:
    """Whether that job was to make this, as far as names tell: not where another job has this very name."""
    if death.output == output or not same_output(death.output, output):
        return death.output == output != ""
    ended = {job.jid for job in state.recent if job.output == output and not _is_earlier(state, job)}
    live = {job.jid for job in (*state.jobs.values(), *state.leaving.values()) if job.output == output}
    return death.jid is None or not (ended | live) - {None, death.jid}


def _is_earlier(state: BuildState, job: FinishedJob) -> bool:
    """Whether it ended in an attempt before this one, or in another step: that it failed there stays true."""
    scheduler, step = state.schedulers.get(job.sid), state.step
    if scheduler is None or step is None:
        return False
    return (scheduler.step, scheduler.attempt) != (step.index, step.attempt)


def _is_of(job: FinishedJob, death: KilledJob) -> bool:
    if death.jid is not None and job.jid is not None:
        return death.jid == job.jid
    return same_output(job.output, death.output)


def _corrected(state: BuildState, wrong: FinishedJob, death: KilledJob) -> BuildState:
    """A job that had counted as failed was killed."""
    right = replace(wrong, outcome="killed", killed_by=death.by)
    recent, heaviest, slowest = (
        tuple(right if job is wrong else job for job in jobs) for jobs in (state.recent, state.heaviest, state.slowest)
    )
    schedulers = dict(state.schedulers)
    if (scheduler := schedulers.get(wrong.sid)) is not None:
        schedulers[wrong.sid] = replace(scheduler, failed=max(0, scheduler.failed - 1), killed=scheduler.killed + 1)
    lost = with_lost(state.lost, death, wrong.seconds)
    return evolve(state, recent=recent, heaviest=heaviest, slowest=slowest, schedulers=schedulers, lost=lost)
