"""Jobs: from the deck to their end, and what is kept of ended ones."""

from __future__ import annotations

from collections.abc import Callable

from stoker.model import events as ev
from stoker.model.evolve import evolve
from stoker.model.killed import death_of
from stoker.model.known_peak import limit_of, peak_rank
from stoker.model.reducers import Reducers, scheduler_events
from stoker.model.reducers.kill_events import with_end, with_lost
from stoker.model.state import MAX_RECENT, BuildState, Fate, FinishedJob, HeldJob, Job, JobHistory, Scheduler
from stoker.model.to_come import with_started, without

SHORT_OF_MEMORY = ("memory", "room")
"""Causes of waiting (events.WaitCause) that mean that memory is short."""

MAX_HOSTS = 1000
"""Other machines for which the number of finished jobs is kept."""

MAX_RANKED = 10
"""How many of the largest and of the slowest jobs are kept."""


def _job_started(state: BuildState, e: ev.JobStarted, _time: float) -> BuildState:
    if e.sid not in state.schedulers or e.jid in state.leaving:
        return state
    job, memory = state.jobs.get(e.jid), state.memory
    if job is not None:  # its name has been learnt
        expected = at_least(e.expected or job.expected, job.peak_rss)
        guessed = e.guessed if e.expected else job.guessed
        lasts = e.lasts or job.lasts
        is_c = job.is_c or e.is_c
        job = evolve(job, output=e.output, tool=e.tool, expected=expected, lasts=lasts, guessed=guessed, is_c=is_c)
    else:
        job = Job(
            e.jid,
            e.sid,
            e.pid,
            e.output,
            e.tool,
            e.started,
            state=e.state,
            expected=e.expected,
            running_since=None if e.state == "on_deck" else e.started,
            start_ticks=e.start_ticks,
            lasts=e.lasts,
            guessed=e.guessed,
            is_c=e.is_c,
        )
        memory = with_started(memory, e.expected) if e.state == "running" else memory
    return evolve(state, jobs={**state.jobs, e.jid: job}, last_jid=max(state.last_jid, e.jid), memory=memory)


def _job_moved(state: BuildState, e: ev.JobMoved, time: float) -> BuildState:
    job = state.jobs.get(e.jid)
    if job is None:
        return state
    since = job.running_since if job.running_since is not None or e.state == "on_deck" else time
    expected = at_least(e.expected or job.expected, job.peak_rss)
    moved = evolve(
        job,
        state=e.state,
        running_since=since,
        expected=expected,
        moved_by=e.by,
        alone=e.alone,
        alone_by=e.alone_by,
        lasts=e.lasts or job.lasts,
        guessed=e.guessed if e.expected else job.guessed,
    )
    restraint, memory = state.restraint, state.memory
    if job.state == "on_deck" and e.state == "running":
        memory = with_started(memory, expected)
    if e.state != "running":
        moved = evolve(moved, host="")
    if e.by == "fallback":
        moved = evolve(moved, elsewhere=job.age(time))
    if e.state != job.state:
        if e.state == "frozen" and not e.by:
            jobs = restraint.frozen_jobs + (not job.short)
            restraint = evolve(restraint, frozen=restraint.frozen + 1, frozen_jobs=jobs)
            moved = evolve(moved, short=True)
        if job.state == "on_deck" and job.held:
            restraint = restraint.with_longest(HeldJob(job.output, max(0.0, time - job.started)))
        frozen_at = time if e.state == "frozen" else None
        moved = evolve(moved, waits="", waits_for="", frozen_at=frozen_at, stood=job.frozen_for(time))
        moved = evolve(moved, cpu=0.0, cpu_due=e.state == "running")  # what it used before is not what it uses now
    return evolve(state, jobs={**state.jobs, e.jid: moved}, restraint=restraint, memory=memory)


def _jobs_waiting(state: BuildState, e: ev.JobsWaiting, time: float) -> BuildState:
    waiting = [job for jid in e.jids if (job := state.jobs.get(jid)) is not None and job.state != "running"]
    held = sum(_is_held(e) and not job.held for job in waiting)
    after = sum(_is_after_first(e) and not job.after_first for job in waiting)
    restraint = state.restraint
    if held or after:
        restraint = evolve(restraint, held=restraint.held + held, after_first=restraint.after_first + after)
    explained = {job.jid: _explained(job, e, time) for job in waiting}
    return evolve(state, jobs={**state.jobs, **explained}, restraint=restraint)


def _is_held(e: ev.JobsWaiting) -> bool:
    return e.cause in SHORT_OF_MEMORY


def _is_after_first(e: ev.JobsWaiting) -> bool:
    return e.cause == "unknown"


def _explained(job: Job, e: ev.JobsWaiting, time: float) -> Job:
    """Return a job with the reason why it waits, and what it has ever waited for."""
    return evolve(
        job,
        waits=e.why,
        waits_for=e.cause,
        waits_since=time,
        held=job.held or _is_held(e),
        after_first=job.after_first or _is_after_first(e),
    )


def at_least(expected: int | None, held: int) -> int | None:
    """Return a job's expected peak memory in bytes: never less than it has held."""
    return None if expected is None else max(expected, held)


def _jobs_exited(state: BuildState, e: ev.JobsExited, _time: float) -> BuildState:
    exited = {jid: state.jobs[jid] for jid in e.jids if jid in state.jobs}
    jobs = {jid: job for jid, job in state.jobs.items() if jid not in exited}
    return evolve(without(state, exited.values()), jobs=jobs, leaving={**state.leaving, **exited})


def _without_job(state: BuildState, jid: int | None) -> BuildState:
    if jid in state.leaving:
        return evolve(state, leaving={other: job for other, job in state.leaving.items() if other != jid})
    if jid is not None and jid in state.jobs:
        jobs = {other: job for other, job in state.jobs.items() if other != jid}
        return evolve(without(state, [state.jobs[jid]]), jobs=jobs)
    return state


def _job_finished(state: BuildState, e: ev.JobFinished, time: float) -> BuildState:
    seen = state.leaving.get(e.jid or 0) or state.jobs.get(e.jid or 0)
    stood = seen.frozen_for(time) if seen is not None else 0.0
    state = _without_job(state, e.jid)
    scheduler = state.schedulers.get(e.sid)
    if e.outcome == "dropped":
        return scheduler_events.changed(state, e.sid, dropped=scheduler.dropped + 1 if scheduler else 0)
    death = None if e.outcome == "ok" else death_of(state, e.output, e.jid)
    began = seen is not None and seen.running_since is not None
    if e.outcome == "interrupted" and death is None and not began:  # it never ran
        return scheduler_events.changed(state, e.sid, dropped=scheduler.dropped + 1 if scheduler else 0)
    fate: Fate = e.outcome
    if death is not None:
        fate = "killed"
        state = evolve(state, lost=with_lost(state.lost, death, e.seconds))
        state = with_end(state, death, e.output, e.jid, e.peak_rss)
    by = None if death is None else death.by
    is_c = seen is not None and seen.is_c
    limit = limit_of(e.lesson)
    job = FinishedJob(e.output, e.tool, e.seconds, time, fate, e.peak_rss, e.jid, e.sid, by, stood, is_c, limit)
    state = evolve(state, history=_with_finished(state.history, job))
    if e.host and fate == "ok":
        state = _with_host(state, e.host)
    if scheduler is None:
        return state
    counted = _counted(scheduler, e, fate)
    offset = e.log_offset if e.log_offset is not None else scheduler.log_offset
    return evolve(state, schedulers={**state.schedulers, e.sid: evolve(counted, log_offset=offset)})


def _with_host(state: BuildState, host: str) -> BuildState:
    """Count one more job that another machine has finished."""
    finished = state.remote.finished
    if host not in finished and len(finished) >= MAX_HOSTS:
        return state
    return evolve(state, remote=evolve(state.remote, finished={**finished, host: finished.get(host, 0) + 1}))


def _counted(scheduler: Scheduler, e: ev.JobFinished, fate: Fate) -> Scheduler:
    """Return the scheduler with one more job killed, failed, interrupted or finished."""
    if fate == "killed":
        return evolve(scheduler, killed=scheduler.killed + 1)
    if fate == "failed":
        return evolve(scheduler, failed=scheduler.failed + 1)
    if fate == "interrupted":
        return evolve(scheduler, interrupted=scheduler.interrupted + 1)
    if not e.counted:
        return scheduler
    by_tool = {**scheduler.finished_by_tool, e.tool: scheduler.finished_by_tool.get(e.tool, 0) + 1}
    return evolve(scheduler, finished=scheduler.finished + 1, finished_by_tool=by_tool)


def _with_finished(history: JobHistory, job: FinishedJob) -> JobHistory:
    by_tool = history.finished_by_tool
    if job.outcome in ("ok", "unknown"):
        by_tool = {**by_tool, job.tool: by_tool.get(job.tool, 0) + 1}
    return JobHistory(
        _with_recent(history.recent, job),
        _ranked(history.heaviest, job, lambda j: peak_rank(j.peak)) if job.peak_rss else history.heaviest,
        _ranked(history.slowest, job, lambda j: (j.seconds,)),
        by_tool,
    )


def _with_recent(recent: tuple[FinishedJob, ...], job: FinishedJob) -> tuple[FinishedJob, ...]:
    """Return the jobs that ended last. Successful ones are removed first: that a job was killed may become known when a
    wide build's other jobs have ended."""
    if len(recent) < MAX_RECENT:
        return (*recent, job)
    oldest = next((i for i, j in enumerate(recent) if j.outcome in ("ok", "unknown")), 0)
    return (*recent[:oldest], *recent[oldest + 1 :], job)


def _ranked(
    top: tuple[FinishedJob, ...], job: FinishedJob, size: Callable[[FinishedJob], tuple[float, ...]]
) -> tuple[FinishedJob, ...]:
    """Return the largest jobs so far with `job` among them if it belongs there; of equals, the one that ended first
    leads."""
    if len(top) == MAX_RANKED and size(job) <= size(top[-1]):
        return top
    return tuple(sorted((*top, job), key=size, reverse=True)[:MAX_RANKED])


REDUCERS: Reducers = {
    ev.JobStarted: _job_started,
    ev.JobMoved: _job_moved,
    ev.JobsWaiting: _jobs_waiting,
    ev.JobsExited: _jobs_exited,
    ev.JobFinished: _job_finished,
}
