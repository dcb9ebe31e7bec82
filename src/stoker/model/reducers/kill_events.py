"""Failures and kills: a killed job did not fail, so what had counted as its failure is corrected.

A kill on purpose is known before the job's end, a kill by the kernel only once the output shows it.
"""

from __future__ import annotations

from collections.abc import Mapping

from stoker.model import events as ev
from stoker.model.evolve import evolve
from stoker.model.killed import attempt_of, death_of, is_earlier, makes, same_output
from stoker.model.reducers import Reducers
from stoker.model.state import MAX_FAILURES, MAX_KILLED, BuildState, Failure, FinishedJob, JobHistory, KilledJob, Lost


def _failure_found(state: BuildState, e: ev.FailureFound, time: float) -> BuildState:
    state = evolve(state, output=evolve(state.output, failures_end=max(state.output.failures_end, e.log_end)))
    forgiven = state.step is not None and e.log_start < state.step.log_start
    if forgiven or len(state.failures) >= MAX_FAILURES:
        return state
    death = death_of(state, e.output)
    by = death.by if death is not None else None
    failure = Failure(time, e.output, e.command, e.exit_code, e.excerpt, e.log_start, e.log_end, by)
    return evolve(state, failures=(*state.failures, failure))


def _job_killed(state: BuildState, e: ev.JobKilled, time: float) -> BuildState:
    death = KilledJob(time, e.output, e.by, attempt_of(state), e.rss, e.jid, e.who, e.why)
    nameless = next((d for d in state.killed if not d.output and d.jid is not None and d.jid == death.jid), None)
    if nameless is not None:  # it was killed before it had a name, which this event says
        state = evolve(state, killed=tuple(d for d in state.killed if d is not nameless))
        death = evolve(nameless, output=death.output)
    failures = tuple(
        evolve(f, killed_by=death.by) if f.killed_by is None and makes(state, death, f.output) else f
        for f in state.failures
    )
    bad = (j for j in reversed(state.history.recent) if j.outcome in ("failed", "interrupted"))
    wrong = next((j for j in bad if _is_of(j, death) and not is_earlier(state, j)), None)
    if wrong is not None:
        death = evolve(death, jid=wrong.jid if death.jid is None else death.jid, rss=_most(death.rss, wrong.peak_rss))
    state = evolve(state, failures=failures, killed=(*state.killed[-(MAX_KILLED - 1) :], death))
    return state if wrong is None else _corrected(state, wrong, death)


def _most(*sizes: int | None) -> int | None:
    return max((size for size in sizes if size is not None), default=None)


def _is_of(job: FinishedJob, death: KilledJob) -> bool:
    if death.jid is not None and job.jid is not None:
        return death.jid == job.jid
    return same_output(job.output, death.output)


def _corrected(state: BuildState, wrong: FinishedJob, death: KilledJob) -> BuildState:
    """A job that had counted as failed or interrupted was killed."""
    right = evolve(wrong, outcome="killed", killed_by=death.by)
    schedulers = dict(state.schedulers)
    if (scheduler := schedulers.get(wrong.sid)) is not None:
        failed, interrupted = wrong.outcome == "failed", wrong.outcome == "interrupted"
        schedulers[wrong.sid] = evolve(
            scheduler,
            failed=max(0, scheduler.failed - failed),
            interrupted=max(0, scheduler.interrupted - interrupted),
            killed=scheduler.killed + 1,
        )
    lost = with_lost(state.lost, death, wrong.seconds)
    return evolve(state, history=_replaced(state.history, wrong, right), schedulers=schedulers, lost=lost)


def _replaced(history: JobHistory, old: FinishedJob, new: FinishedJob) -> JobHistory:
    recent, heaviest, slowest = (
        tuple(new if job is old else job for job in jobs)
        for jobs in (history.recent, history.heaviest, history.slowest)
    )
    return evolve(history, recent=recent, heaviest=heaviest, slowest=slowest)


def with_end(state: BuildState, death: KilledJob, output: str, jid: int | None, peak: int | None) -> BuildState:
    """A job's output may become known only after it was killed; and which of several jobs with outputs of the same name
    in different folders it was, and the most that it held, only at its end. One death is that of one job."""
    jid = jid if death.jid is None else death.jid
    identified = evolve(death, output=death.output or output, jid=jid, rss=_most(death.rss, peak))
    if identified == death:
        return state
    return evolve(state, killed=tuple(identified if d is death else d for d in state.killed))


def with_lost(lost: Mapping[str, Lost], death: KilledJob, seconds: float) -> Mapping[str, Lost]:
    """Return the costs plus those of one more job, which had run for `seconds`."""
    before = lost.get(death.by, Lost())
    return {**lost, death.by: Lost(before.count + 1, round(before.seconds + seconds, 3))}


REDUCERS: Reducers = {ev.FailureFound: _failure_found, ev.JobKilled: _job_killed}
