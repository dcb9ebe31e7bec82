"""The build as a whole: its start and end, its steps, its level, decisions and notices."""

from __future__ import annotations

from stoker.model import events as ev
from stoker.model.attempts import with_broken_off
from stoker.model.evolve import evolve
from stoker.model.killed import makes
from stoker.model.reducers import Reducers
from stoker.model.state import (
    MAX_DECISIONS,
    MAX_NOTICES,
    MAX_OCCASIONS,
    MAX_REPEATED,
    BuildState,
    DecisionEntry,
    Estimate,
    KilledJob,
    LogPart,
    Notice,
    Phase,
    Step,
)

_PHASES: dict[ev.Paused, Phase] = {"no": "running", "soft": "paused", "hard": "frozen"}


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
    repeated = _repeated(state, e.log_start) if e.attempt > 1 and not other else state.repeated
    state = evolve(state, phase="running", step=step, repeated=repeated)
    if other:
        state = evolve(state, killed=(), estimate=None)
    elif e.attempt > 1:
        state = evolve(state, schedulers=with_broken_off(state.schedulers, step))
    if other or e.attempt > 1:
        state = _forgiven(state, e.log_start)
    return _with_pause(state, state.level.paused)


def _repeated(state: BuildState, log_start: int) -> tuple[LogPart, ...]:
    """The parts of the output that do not count any more, if the step runs again from byte `log_start` on."""
    start = state.step.log_start if state.step is not None else log_start
    if start >= log_start:
        return state.repeated
    return (*state.repeated[-(MAX_REPEATED - 1) :], LogPart(start, log_start))


def _forgiven(state: BuildState, log_start: int) -> BuildState:
    """A step runs again, or the next one starts: earlier failures no longer count as the build's.

    By the position in the output: the failure of an attempt that fails at once may be seen before its start is known.
    """
    failures = tuple(failure for failure in state.failures if failure.log_start >= log_start)
    killed = tuple(_placed(state, death) for death in state.killed)
    schedulers = {
        sid: evolve(s, failed=0, killed=0, interrupted=0) if s.failed or s.killed or s.interrupted else s
        for sid, s in state.schedulers.items()
    }
    retired = evolve(state.retired, failed=0, killed=0)
    return evolve(state, failures=failures, killed=killed, schedulers=schedulers, retired=retired)


def _placed(state: BuildState, death: KilledJob) -> KilledJob:
    """A killed job with its place in the output, which leaves the state with the failures of its attempt."""
    starts = (f.log_start for f in state.failures if f.killed_by is not None and makes(state, death, f.output))
    return death if death.log_start is not None else evolve(death, log_start=next(starts, None))


def _step_ended(state: BuildState, e: ev.StepEnded, _time: float) -> BuildState:
    if state.step is not None:
        state = evolve(state, step=evolve(state.step, ended=True))
    return _with_none_failed(state) if e.exit_code == 0 else state


def _with_none_failed(state: BuildState) -> BuildState:
    """If a command succeeded, none of its jobs has failed, whatever is missing in ninja's log; but failures in the
    output count."""
    schedulers = {sid: evolve(s, failed=0) if s.failed else s for sid, s in state.schedulers.items()}
    return evolve(state, schedulers=schedulers, retired=evolve(state.retired, failed=0))


def _level_set(state: BuildState, e: ev.LevelSet, _time: float) -> BuildState:
    level = evolve(state.level, mode=e.mode, target=e.target, guarded=e.guarded)
    return _with_pause(evolve(state, level=level), e.paused)


def _with_pause(state: BuildState, paused: ev.Paused) -> BuildState:
    """A pause appears as the build's phase, unless the build is being stopped or has ended."""
    state = evolve(state, level=evolve(state.level, paused=paused))
    return evolve(state, phase=_PHASES[paused]) if state.phase in _PHASES.values() else state


def _cache_used(state: BuildState, e: ev.CacheUsed, _time: float) -> BuildState:
    return evolve(state, cache=e.found)


def _cache_reached(state: BuildState, e: ev.CacheReached, _time: float) -> BuildState:
    return evolve(state, shared_caches={**state.shared_caches, e.found.endpoint: e.found})


def _estimated(state: BuildState, e: ev.Estimated, time: float) -> BuildState:
    return evolve(state, estimate=Estimate(e.seconds, e.low, e.high, time, e.critical))


def _decided(state: BuildState, e: ev.Decided, time: float) -> BuildState:
    decision = DecisionEntry(time, e.who, e.what, e.why, _on_deck_since(state, e.what))
    return evolve(state, decisions=(*state.decisions[-(MAX_DECISIONS - 1) :], decision))


def _on_deck_since(state: BuildState, what: str) -> float | None:
    verb, _, name = what.partition(" ")
    if verb != "hold":
        return None
    return next((job.started for job in state.jobs.values() if job.state == "on_deck" and job.output == name), None)


def _noticed(state: BuildState, e: ev.Noticed, time: float) -> BuildState:
    notice = Notice(time, e.severity, e.text)
    return evolve(state, notices=(*state.notices[-(MAX_NOTICES - 1) :], notice))


def _hook_called(state: BuildState, e: ev.HookCalled, _time: float) -> BuildState:
    return evolve(state, announced=(*state.announced, e.occasion)[-MAX_OCCASIONS:])


def _hook_ended(state: BuildState, _e: ev.HookEnded, _time: float) -> BuildState:
    return state


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
    if e.log_size is not None:
        state = evolve(state, output=evolve(state.output, size=e.log_size))
    return evolve(
        state,
        phase=e.outcome,
        outcome=e.outcome,
        exit_code=e.exit_code,
        reason=e.reason,
        ended=time,
        disk_written=e.written if e.written is not None else state.disk_written,
        jobs={},
        leaving={},
        activity="",
        level=evolve(state.level, ungoverned={}),
        estimate=None,
    )


REDUCERS: Reducers = {
    ev.BuildStarted: _build_started,
    ev.EngineStarted: _engine_started,
    ev.StepStarted: _step_started,
    ev.StepEnded: _step_ended,
    ev.LevelSet: _level_set,
    ev.CacheUsed: _cache_used,
    ev.CacheReached: _cache_reached,
    ev.Estimated: _estimated,
    ev.Decided: _decided,
    ev.Noticed: _noticed,
    ev.HookCalled: _hook_called,
    ev.HookEnded: _hook_ended,
    ev.StopRequested: _stop_requested,
    ev.Verified: _verified,
    ev.Diagnosed: _diagnosed,
    ev.BuildEnded: _build_ended,
}
