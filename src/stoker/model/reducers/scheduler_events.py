"""Schedulers: their starts, plans and ends, and how many jobs each has finished."""

from __future__ import annotations

from typing import Any

from stoker.model import events as ev
from stoker.model.attempts import redone_by, with_scheduler, with_successor, with_work_lost, without_work
from stoker.model.evolve import evolve
from stoker.model.reducers import Reducers
from stoker.model.state import MAX_SCHEDULERS, BuildState, Retired, Scheduler, SchedulerPlan


def changed(state: BuildState, sid: int, **changes: Any) -> BuildState:
    """Return the state with fields of scheduler `sid` changed; unchanged if there is no such scheduler."""
    scheduler = state.schedulers.get(sid)
    if scheduler is None:
        return state
    return evolve(state, schedulers={**state.schedulers, sid: evolve(scheduler, **changes)})


def _scheduler_started(state: BuildState, e: ev.SchedulerStarted, time: float) -> BuildState:
    scheduler = Scheduler(
        e.sid,
        e.tool,
        e.pid,
        e.directory,
        e.version,
        e.width,
        e.parent,
        time,
        start_ticks=e.start_ticks,
        container=e.container,
        failures=e.failures,
    )
    level, step = evolve(state.level, ungoverned={}), state.step
    if e.width is not None and e.parent is None:
        level = evolve(level, window=e.width)
    before = state.schedulers
    if step is not None:
        scheduler = evolve(scheduler, step=step.index, attempt=step.attempt)
        before = without_work(before, redone_by(e, before, step))
        step = step.with_scheduler(e.tool, outermost=e.parent is None)
    schedulers, retired = _with_oldest_retired(with_scheduler(before, scheduler), state.retired)
    return evolve(state, schedulers=schedulers, retired=retired, level=level, step=step)


def _with_oldest_retired(schedulers: dict[int, Scheduler], retired: Retired) -> tuple[dict[int, Scheduler], Retired]:
    """Bound the list: of too many schedulers the oldest ended one keeps only its counts."""
    ended = [s for s in schedulers.values() if s.ended is not None]
    if len(schedulers) > MAX_SCHEDULERS and ended:
        oldest = min(ended, key=lambda s: s.sid)
        del schedulers[oldest.sid]
        retired = Retired(
            retired.finished + oldest.finished, retired.failed + oldest.failed, retired.killed + oldest.killed
        )
    return schedulers, retired


def _scheduler_planned(state: BuildState, e: ev.SchedulerPlanned, time: float) -> BuildState:
    state = evolve(state, schedulers=with_successor(state.schedulers, e.sid, e.total))
    known = state.schedulers[e.sid].plan if e.sid in state.schedulers else None
    stands = known is not None and known.percent is not None and known.percent == e.percent
    since = known.since if known is not None and stands else time
    return changed(state, e.sid, plan=SchedulerPlan(e.total, e.source, e.tools, e.percent, since, e.begun))


def _scheduler_ended(state: BuildState, e: ev.SchedulerEnded, time: float) -> BuildState:
    jobs, leaving = ({jid: job for jid, job in of.items() if job.sid != e.sid} for of in (state.jobs, state.leaving))
    ended = state.schedulers.get(e.sid)
    if ended is not None and not (ended.failed or ended.killed or ended.dropped or ended.interrupted):
        state = evolve(state, schedulers=with_successor(state.schedulers, e.sid, ended.finished))
    others_run = any(s.ended is None for s in state.schedulers.values() if s.sid != e.sid)
    runs_again = ended is not None and ended.killed > 0
    # What comes after the last one (a link, a wheel) is in no plan: the estimate does not cover it.
    estimate = state.estimate if others_run or runs_again else None
    return changed(evolve(state, jobs=jobs, leaving=leaving, estimate=estimate), e.sid, ended=time)


def _work_lost(state: BuildState, e: ev.WorkLost, _time: float) -> BuildState:
    index = state.step.index if state.step is not None else 1
    return evolve(state, schedulers=with_work_lost(state.schedulers, e.directory, index))


def _jobs_uncounted(state: BuildState, e: ev.JobsUncounted, _time: float) -> BuildState:
    scheduler = state.schedulers.get(e.sid)
    if scheduler is None:
        return state
    by_tool = {tool: count - e.tools.get(tool, 0) for tool, count in scheduler.finished_by_tool.items()}
    by_tool = {tool: count for tool, count in by_tool.items() if count > 0}
    finished = max(0, scheduler.finished - sum(e.tools.values()))
    return changed(state, e.sid, finished=finished, finished_by_tool=by_tool)


def _jobs_blocked(state: BuildState, e: ev.JobsBlocked, _time: float) -> BuildState:
    return changed(state, e.sid, blocked=e.jobs)


REDUCERS: Reducers = {
    ev.SchedulerStarted: _scheduler_started,
    ev.SchedulerPlanned: _scheduler_planned,
    ev.SchedulerEnded: _scheduler_ended,
    ev.WorkLost: _work_lost,
    ev.JobsUncounted: _jobs_uncounted,
    ev.JobsBlocked: _jobs_blocked,
}
