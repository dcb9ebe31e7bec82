"""reduce(state, record) -> state: the one place where events become what a viewer sees.

Pure and total: any sequence of records gives a state and never an error, because a journal may be cut short by a
crash. Unaware of where records come from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce as _fold
from typing import Any

from stoker.model import events as ev
from stoker.model.attempts import with_broken_off, with_scheduler, with_successor, with_work_lost
from stoker.model.ended_schedulers import lost, with_oldest_retired, without
from stoker.model.evolve import evolve
from stoker.model.killed import death_of, with_death, with_identity, with_lost
from stoker.model.samples import MachineSample
from stoker.model.state import (
    MAX_DECISIONS,
    MAX_FAILURES,
    MAX_KILLED,
    MAX_NOTICES,
    MAX_RECENT,
    BuildState,
    Decision,
    Estimate,
    Failure,
    Fate,
    FinishedJob,
    Job,
    KilledJob,
    Notice,
    Phase,
    Plan,
    Scheduler,
    Step,
    TimelinePoint,
    ToolStats,
)
from stoker.model.timeline import with_point

MAX_HEAVIEST = 10


def reduce(state: BuildState, record: ev.Record) -> BuildState:
    """The state after `record`. Records at or before the state's own number are ignored, so resuming is safe."""
    if record.seq <= state.seq:
        return state
    state = evolve(state, seq=record.seq, time=record.time)
    return _HANDLERS[type(record.event)](state, record.event, record.time)


def reduce_all(records: Iterable[ev.Record], state: BuildState | None = None) -> BuildState:
    """The state after all of `records`, in order."""
    return _fold(reduce, records, state or BuildState())


def _build_started(state: BuildState, e: ev.BuildStarted, time: float) -> BuildState:
    return evolve(
        state,
        id=e.id,
        name=e.name,
        command=e.command,
        cwd=e.cwd,
        log_path=e.log_path,
        host=e.host,
        cores=e.cores,
        memory_total=e.memory_total,
        version=e.version,
        started=time,
    )


def _engine_started(state: BuildState, e: ev.EngineStarted, _time: float) -> BuildState:
    return evolve(state, engine_pid=e.pid, engine_starts=state.engine_starts + 1)


def _step_started(state: BuildState, e: ev.StepStarted, _time: float) -> BuildState:
    other = state.step is not None and state.step.index != e.index
    tools = state.step.tools if state.step is not None and not other else ()
    step = Step(e.name, e.index, e.count, e.pid, e.attempt, e.oom_kills, e.log_start, tools=tools)
    state = evolve(state, phase="running", step=step)
    if other:
        state = evolve(state, killed=(), estimate=None)
    elif e.attempt > 1:
        state = evolve(state, schedulers=with_broken_off(state.schedulers, step))
    forgiven = _forgiven(state, e.log_start) if other or e.attempt > 1 else state
    return _with_level(forgiven, state.level.paused)


def _forgiven(state: BuildState, log_start: int) -> BuildState:
    """A step runs again, or the next one does: what failed before is not a failure of the build any more.

    By the place in the output: an attempt that fails at once may have been heard before it is known to have started.
    """
    failures = tuple(failure for failure in state.failures if failure.log_start >= log_start)
    schedulers = {
        sid: evolve(s, failed=0, killed=0) if s.failed or s.killed else s for sid, s in state.schedulers.items()
    }
    retired = evolve(state.retired, failed=0, killed=0)
    return evolve(state, failures=failures, schedulers=schedulers, retired=retired)


def _level_set(state: BuildState, e: ev.LevelSet, _time: float) -> BuildState:
    level = evolve(state.level, mode=e.mode, target=e.target, guarded=e.guarded)
    return _with_level(evolve(state, level=level), e.paused)


def _with_level(state: BuildState, paused: ev.Paused) -> BuildState:
    """A pause shows as the build's phase, unless the build is being stopped or has ended."""
    state = evolve(state, level=evolve(state.level, paused=paused))
    if state.phase not in ("running", "paused", "frozen"):
        return state
    phases: dict[ev.Paused, Phase] = {"no": "running", "soft": "paused", "hard": "frozen"}
    return evolve(state, phase=phases[paused])


def _step_ended(state: BuildState, e: ev.StepEnded, _time: float) -> BuildState:
    return _with_none_failed(state) if e.exit_code == 0 else state


def _with_none_failed(state: BuildState) -> BuildState:
    """Of a command that ended well no job has failed, whatever ninja's log lacks; but what the output tells counts."""
    schedulers = {sid: evolve(s, failed=0) if s.failed else s for sid, s in state.schedulers.items()}
    return evolve(state, schedulers=schedulers, retired=evolve(state.retired, failed=0))


def _scheduler_started(state: BuildState, e: ev.SchedulerStarted, time: float) -> BuildState:
    scheduler = Scheduler(
        e.sid, e.tool, e.pid, e.directory, e.version, e.width, e.parent, time, start_ticks=e.start_ticks
    )
    level, step = state.level, state.step
    if step is not None:
        scheduler = evolve(scheduler, step=step.index, attempt=step.attempt)
    known = without(state.schedulers, lost(state.schedulers, step, e))
    schedulers, retired = with_oldest_retired(with_scheduler(known, scheduler), state.retired)
    if e.width is not None and e.parent is None:
        level = evolve(level, window=e.width)
    if step is not None:
        step = step.with_scheduler(e.tool, outermost=e.parent is None)
    return evolve(state, schedulers=schedulers, retired=retired, level=level, step=step, ungoverned={})


def _with_scheduler(state: BuildState, sid: int, **changes: Any) -> BuildState:
    scheduler = state.schedulers.get(sid)
    if scheduler is None:
        return state
    return evolve(state, schedulers={**state.schedulers, sid: evolve(scheduler, **changes)})


def _scheduler_planned(state: BuildState, e: ev.SchedulerPlanned, _time: float) -> BuildState:
    state = evolve(state, schedulers=with_successor(state.schedulers, e.sid, e.total))
    return _with_scheduler(state, e.sid, plan=Plan(e.total, e.source, e.tools, e.percent))


def _scheduler_ended(state: BuildState, e: ev.SchedulerEnded, time: float) -> BuildState:
    jobs, leaving = ({jid: job for jid, job in of.items() if job.sid != e.sid} for of in (state.jobs, state.leaving))
    ended = state.schedulers.get(e.sid)
    if ended is not None and not (ended.failed or ended.killed or ended.dropped):
        state = evolve(state, schedulers=with_successor(state.schedulers, e.sid, ended.finished))
    left = any(s.ended is None for s in state.schedulers.values() if s.sid != e.sid)
    left = left or (ended is not None and ended.killed > 0)  # what was killed runs again
    # What comes behind the last one (a link, a wheel) is of no plan: what was estimated says nothing of it.
    estimate = state.estimate if left else None
    return _with_scheduler(evolve(state, jobs=jobs, leaving=leaving, estimate=estimate), e.sid, ended=time)


def _work_lost(state: BuildState, e: ev.WorkLost, _time: float) -> BuildState:
    index = state.step.index if state.step is not None else 1
    return evolve(state, schedulers=with_work_lost(state.schedulers, e.directory, index))


def _job_started(state: BuildState, e: ev.JobStarted, _time: float) -> BuildState:
    if e.sid not in state.schedulers or e.jid in state.leaving:
        return state
    job = state.jobs.get(e.jid)
    if job is not None:  # its name has been learnt
        job = evolve(job, output=e.output, tool=e.tool, expected=_expected(e.expected or job.expected, job.peak_rss))
    else:
        since = None if e.state == "on_deck" else e.started
        job = Job(
            e.jid,
            e.sid,
            e.pid,
            e.output,
            e.tool,
            e.started,
            state=e.state,
            expected=e.expected,
            running_since=since,
            start_ticks=e.start_ticks,
        )
    return evolve(state, jobs={**state.jobs, e.jid: job}, last_jid=max(state.last_jid, e.jid))


def _job_moved(state: BuildState, e: ev.JobMoved, time: float) -> BuildState:
    job = state.jobs.get(e.jid)
    if job is None:
        return state
    since = job.running_since if job.running_since is not None or e.state == "on_deck" else time
    moved = evolve(
        job,
        state=e.state,
        running_since=since,
        expected=_expected(e.expected or job.expected, job.peak_rss),
        moved_by=e.by,
        alone=e.alone,
        alone_by=e.alone_by,
    )
    if e.state != job.state:
        stood = job.stood + (max(0.0, time - job.frozen_at) if job.frozen_at is not None else 0.0)
        frozen_at = time if e.state == "frozen" else None
        moved = evolve(moved, waits="", waits_for="", frozen_at=frozen_at, stood=stood)
    return evolve(state, jobs={**state.jobs, e.jid: moved})


def _jobs_waiting(state: BuildState, e: ev.JobsWaiting, _time: float) -> BuildState:
    waiting = {jid: job for jid in e.jids if (job := state.jobs.get(jid)) is not None and job.state != "running"}
    told = {jid: evolve(job, waits=e.why, waits_for=e.cause) for jid, job in waiting.items()}
    return evolve(state, jobs={**state.jobs, **told})


def _expected(told: int | None, held: int) -> int | None:
    """What is expected of a job at its peak, bytes: never less than it has held."""
    return None if told is None else max(told, held)


def _jobs_exited(state: BuildState, e: ev.JobsExited, _time: float) -> BuildState:
    gone = {jid: state.jobs[jid] for jid in e.jids if jid in state.jobs}
    left = {jid: job for jid, job in state.jobs.items() if jid not in gone}
    return evolve(state, jobs=left, leaving={**state.leaving, **gone})


def _without_job(state: BuildState, jid: int | None) -> BuildState:
    if jid in state.leaving:
        return evolve(state, leaving={other: job for other, job in state.leaving.items() if other != jid})
    if jid in state.jobs:
        return evolve(state, jobs={other: job for other, job in state.jobs.items() if other != jid})
    return state


def _job_finished(state: BuildState, e: ev.JobFinished, time: float) -> BuildState:
    state = _without_job(state, e.jid)
    if e.outcome == "dropped":
        before = state.schedulers.get(e.sid)
        return _with_scheduler(state, e.sid, dropped=before.dropped + 1 if before else 0)
    death = None if e.outcome == "ok" else death_of(state, e.output, e.jid)
    if death is not None:
        state = evolve(state, lost=with_lost(state.lost, death, e.seconds))
        state = with_identity(state, death, e.output, e.jid)
    outcome: Fate = e.outcome if death is None else "killed"
    by = None if death is None else death.by
    finished = FinishedJob(e.output, e.tool, e.seconds, time, outcome, e.peak_rss, e.jid, e.sid, by)
    state = evolve(
        state,
        recent=_with_recent(state.recent, finished),
        heaviest=_with_heaviest(state.heaviest, finished),
        slowest=_ranked(state.slowest, finished, lambda j: j.seconds),
        tool_stats=_with_stats(state.tool_stats, finished),
    )
    scheduler = state.schedulers.get(e.sid)
    if scheduler is None:
        return state
    offset = e.log_offset if e.log_offset is not None else scheduler.log_offset
    if death is not None:
        return _with_scheduler(state, e.sid, killed=scheduler.killed + 1, log_offset=offset)
    stopped = state.phase == "stopping"
    if e.outcome == "failed" or (stopped and e.outcome == "unknown"):  # what a stop has ended did not fail, nor finish
        return _with_scheduler(state, e.sid, failed=scheduler.failed + (not stopped), log_offset=offset)
    if not e.counted:
        return _with_scheduler(state, e.sid, log_offset=offset)
    by_tool = dict(scheduler.finished_by_tool)
    by_tool[e.tool] = by_tool.get(e.tool, 0) + 1
    return _with_scheduler(state, e.sid, finished=scheduler.finished + 1, finished_by_tool=by_tool, log_offset=offset)


def _jobs_uncounted(state: BuildState, e: ev.JobsUncounted, _time: float) -> BuildState:
    scheduler = state.schedulers.get(e.sid)
    if scheduler is None:
        return state
    by_tool = {tool: count - e.tools.get(tool, 0) for tool, count in scheduler.finished_by_tool.items()}
    by_tool = {tool: count for tool, count in by_tool.items() if count > 0}
    finished = max(0, scheduler.finished - sum(e.tools.values()))
    return _with_scheduler(state, e.sid, finished=finished, finished_by_tool=by_tool)


def _with_recent(recent: tuple[FinishedJob, ...], job: FinishedJob) -> tuple[FinishedJob, ...]:
    """The jobs that ended last. Those that ended well go first: that one was killed may be learnt when a wide build's
    other jobs have ended."""
    if len(recent) < MAX_RECENT:
        return (*recent, job)
    oldest = next((i for i, j in enumerate(recent) if j.outcome not in ("failed", "killed")), 0)
    return (*recent[:oldest], *recent[oldest + 1 :], job)


def _with_heaviest(heaviest: tuple[FinishedJob, ...], job: FinishedJob) -> tuple[FinishedJob, ...]:
    return _ranked(heaviest, job, lambda j: j.peak_rss or 0) if job.peak_rss else heaviest


def _ranked(
    top: tuple[FinishedJob, ...], job: FinishedJob, size: Callable[[FinishedJob], float]
) -> tuple[FinishedJob, ...]:
    """The largest jobs so far with `job` among them if it belongs there; of equals, the one that ended first leads."""
    if len(top) == MAX_HEAVIEST and size(job) <= size(top[-1]):
        return top
    return tuple(sorted((*top, job), key=size, reverse=True)[:MAX_HEAVIEST])


def _with_stats(stats: Mapping[str, ToolStats], job: FinishedJob) -> Mapping[str, ToolStats]:
    if job.outcome in ("failed", "killed"):
        return stats
    old = stats.get(job.tool, ToolStats())
    new = ToolStats(
        count=old.count + 1,
        seconds_sum=old.seconds_sum + job.seconds,
        seconds_square_sum=old.seconds_square_sum + job.seconds**2,
        seconds_max=max(old.seconds_max, job.seconds),
        peak_rss=max(old.peak_rss, job.peak_rss or 0),
    )
    return {**stats, job.tool: new}


def _sampled(state: BuildState, e: ev.Sampled, time: float) -> BuildState:
    jobs = dict(state.jobs)
    for s in e.jobs:
        job = jobs.get(s.jid)
        if job is not None:
            peak = max(job.peak_rss, s.rss)
            jobs[s.jid] = evolve(
                job,
                rss=s.rss,
                peak_rss=peak,
                expected=_expected(job.expected, peak),
                cpu=s.cpu,
                phase=s.phase,
                state="on_deck" if job.state == "on_deck" else s.state,
            )
    running = sum(job.state == "running" for job in jobs.values())
    on_deck = sum(job.state == "on_deck" for job in jobs.values())
    point = TimelinePoint(time, e.machine.memory_used, e.build_rss, running, e.machine.cpu_percent, on_deck)
    timeline, spacing = with_point(state.timeline, state.timeline_spacing, point)
    step = state.step
    if step is not None and e.ungoverned and not step.ungoverned:
        step = evolve(step, ungoverned=True)
    return evolve(
        state,
        step=step,
        jobs=jobs,
        machine=_with_ramdisk(e.machine, state.machine),
        build_rss=e.build_rss,
        build_peak_rss=max(state.build_peak_rss, e.build_rss),
        build_processes=e.build_processes,
        build_written=e.build_written,
        activity=e.activity,
        ungoverned=e.ungoverned,
        log_size=e.log_size,
        log_read=max(state.log_read, e.log_read),
        memory_peak=max(state.memory_peak, e.machine.memory_used),
        memory_promised=e.promised,
        memory_reserve=e.reserve,
        ramdisk_peak=max(state.ramdisk_peak, e.machine.ramdisk.used if e.machine.ramdisk is not None else 0),
        ramdisk_reserve=e.ramdisk_reserve,
        timeline=timeline,
        timeline_spacing=spacing,
    )


def _with_ramdisk(machine: MachineSample, before: MachineSample | None) -> MachineSample:
    """A RAM disk that is gone was one all the same: it goes a moment before the build's end is known."""
    if machine.ramdisk is not None or before is None or before.ramdisk is None:
        return machine
    return evolve(machine, ramdisk=evolve(before.ramdisk, used=0))


def _cache_used(state: BuildState, e: ev.CacheUsed, _time: float) -> BuildState:
    return evolve(state, cache=e.found)


def _estimated(state: BuildState, e: ev.Estimated, time: float) -> BuildState:
    return evolve(state, estimate=Estimate(e.seconds, e.low, e.high, time))


def _failure_found(state: BuildState, e: ev.FailureFound, time: float) -> BuildState:
    state = evolve(state, failures_end=max(state.failures_end, e.log_end))
    forgiven = state.step is not None and e.log_start < state.step.log_start
    by_stop = state.phase == "stopping" and not e.command  # make's words for each job that a person's stop has ended
    if forgiven or by_stop or len(state.failures) >= MAX_FAILURES:
        return state
    death = death_of(state, e.output)
    by = death.by if death is not None else None
    failure = Failure(time, e.output, e.command, e.exit_code, e.excerpt, e.log_start, e.log_end, by)
    return evolve(state, failures=(*state.failures, failure))


def _job_killed(state: BuildState, e: ev.JobKilled, time: float) -> BuildState:
    attempt = state.step.attempt if state.step is not None else 1
    return with_death(state, KilledJob(time, e.output, e.by, attempt, e.rss, e.jid, e.who, e.why), MAX_KILLED)


def _decided(state: BuildState, e: ev.Decided, time: float) -> BuildState:
    decision = Decision(time, e.who, e.what, e.why)
    return evolve(state, decisions=(*state.decisions[-(MAX_DECISIONS - 1) :], decision))


def _noticed(state: BuildState, e: ev.Noticed, time: float) -> BuildState:
    notice = Notice(time, e.severity, e.text)
    return evolve(state, notices=(*state.notices[-(MAX_NOTICES - 1) :], notice))


def _stop_requested(state: BuildState, e: ev.StopRequested, time: float) -> BuildState:
    what = "kill the build now" if e.force else "stop the build"
    why = "asked for: every process gets SIGKILL" if e.force else "asked for: SIGTERM, then SIGKILL"
    state = _decided(state, ev.Decided(e.who, what, why), time)
    return state if state.over else evolve(state, phase="stopping")


def _verified(state: BuildState, e: ev.Verified, _time: float) -> BuildState:
    return evolve(state, verification=e.found)


def _diagnosed(state: BuildState, e: ev.Diagnosed, _time: float) -> BuildState:
    return evolve(state, diagnosis=e.found)


def _build_ended(state: BuildState, e: ev.BuildEnded, time: float) -> BuildState:
    if e.outcome == "done":
        state = _with_none_failed(state)
    return evolve(
        state,
        phase=e.outcome,
        outcome=e.outcome,
        exit_code=e.exit_code,
        reason=e.reason,
        ended=time,
        build_written=e.written if e.written is not None else state.build_written,
        log_size=e.log_size if e.log_size is not None else state.log_size,
        jobs={},
        leaving={},
        activity="",
        ungoverned={},
        estimate=None,
    )


_HANDLERS: dict[type, Callable[[BuildState, Any, float], BuildState]] = {
    ev.BuildStarted: _build_started,
    ev.EngineStarted: _engine_started,
    ev.StepStarted: _step_started,
    ev.StepEnded: _step_ended,
    ev.SchedulerStarted: _scheduler_started,
    ev.SchedulerPlanned: _scheduler_planned,
    ev.SchedulerEnded: _scheduler_ended,
    ev.WorkLost: _work_lost,
    ev.JobStarted: _job_started,
    ev.JobMoved: _job_moved,
    ev.LevelSet: _level_set,
    ev.JobsExited: _jobs_exited,
    ev.JobsWaiting: _jobs_waiting,
    ev.JobFinished: _job_finished,
    ev.JobsUncounted: _jobs_uncounted,
    ev.Sampled: _sampled,
    ev.CacheUsed: _cache_used,
    ev.Estimated: _estimated,
    ev.FailureFound: _failure_found,
    ev.JobKilled: _job_killed,
    ev.Decided: _decided,
    ev.Noticed: _noticed,
    ev.StopRequested: _stop_requested,
    ev.Verified: _verified,
    ev.Diagnosed: _diagnosed,
    ev.BuildEnded: _build_ended,
}
