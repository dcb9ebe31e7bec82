"""The object that `stoker status --json` prints: a contract with scripts. Keys may be added, never renamed.

Unaware of where the state comes from.
"""

from __future__ import annotations

from typing import Any

from stoker.model.cache_use import CacheUse
from stoker.model.diagnosis import Action, Diagnosis, words_of
from stoker.model.killed import failed_steps, runs_again
from stoker.model.progress import Progress, frozen_by_person, in_next_attempt, not_run, progress_of, will_not_run
from stoker.model.report import Report
from stoker.model.state import BuildState, Job, KilledJob
from stoker.model.to_come import promised

MAX_STATUS_DECISIONS = 20


def status_of(state: BuildState, now: float) -> dict[str, Any]:
    """A build's status at Unix time `now`; sizes in bytes, times in seconds."""
    progress = progress_of(state)
    return {
        **_keys(state, "id name"),
        "state": state.phase,
        **_keys(state, "command cwd exit_code reason started ended"),
        "seconds": max(0.0, (state.ended or now) - state.started),
        "step": {"name": "", "index": 0, "count": 0, "attempt": 0}
        if state.step is None
        else _keys(state.step, "name index count attempt"),
        "activity": state.activity,
        "progress": _progress(progress, not_run(state) if state.over else will_not_run(state), in_next_attempt(state)),
        "level": _keys(
            state.level,
            "mode target running local window paused guarded governed ungoverned",
            running=progress.running,
            local=progress.local,
            governed=state.governed and not state.over,
        ),
        "memory": _memory(state),
        "disk": _disk(state),
        "ramdisk": _ramdisk(state),
        "eta": _eta(state, now),
        "remote": _remote(state) if state.remote.engines else None,
        "cache": None if state.cache is None else _cache(state.cache),
        "shared_caches": [_keys(c, "tool endpoint state seconds problem") for c in state.shared_caches.values()],
        "schedulers": [
            _keys(s, "tool directory version running", running=s.ended is None) for s in state.schedulers.values()
        ],
        "failures": [_keys(failure, "output command exit_code") for failure in failed_steps(state)],
        "killed": [_killed(death, state) for death in state.killed],
        "lost": {by: {"jobs": lost.count, "seconds": round(lost.seconds, 1)} for by, lost in state.lost.items()},
        "decisions": [_keys(d, "time who what why") for d in state.decisions[-MAX_STATUS_DECISIONS:]],
        "jobs": [_job(job, now) for job in sorted(state.jobs.values(), key=lambda j: j.jid)],
        "verification": None if state.verification is None else _verification(state.verification),
        "diagnosis": None if state.diagnosis is None else _diagnosis(state.diagnosis),
        "log": state.log_path,
    }


def _keys(value: object, names: str, **derived: Any) -> dict[str, Any]:
    """Return these fields of a value, in this order; `derived` are those that it lacks, or has in another form."""
    fields: dict[str, Any] = {}
    for name in names.split():
        item = derived[name] if name in derived else getattr(value, name)
        fields[name] = list(item) if isinstance(item, tuple) else item
    return fields


def _progress(progress: Progress, left_out: int, next_attempt: int) -> dict[str, Any]:
    percent = None if progress.share is None else round(100 * progress.share, 1)
    return _keys(
        progress,
        "finished total total_known percent running remote hostless on_deck frozen failed killed interrupted"
        " will_not_run next_attempt",
        percent=percent,
        will_not_run=left_out,
        next_attempt=next_attempt,
    )


def _memory(state: BuildState) -> dict[str, Any]:
    machine, memory = state.machine, state.memory
    stall = machine.pressure_memory if machine is not None and not state.over else None
    return {
        "budget": machine.memory_budget if machine else state.memory_total,
        "used": machine.memory_used if machine else 0,
        "available": machine.memory_available if machine else 0,
        "build": 0 if state.over else memory.build,
        "build_peak": memory.build_peak,
        "reserve": 0 if state.over else memory.reserve,
        "promised": 0 if state.over else promised(state),
        "stalled_percent": None if stall is None else stall.some,
        "stalled_by_others": bool(stall and machine and machine.stalls_by_others(memory.reserve)),
    }


def _disk(state: BuildState) -> dict[str, Any]:
    machine = state.machine
    return {
        "written": state.disk_written,
        "write_rate": machine.disk_write_rate if machine and not state.over else None,
        "free": machine.disk_free if machine else None,
    }


def _ramdisk(state: BuildState) -> dict[str, Any] | None:
    disk = state.machine.ramdisk if state.machine is not None else None
    if disk is None:
        return None
    used = 0 if state.over else disk.used
    return {**_keys(disk, "path used size free", used=used), **_keys(state.ramdisk, "peak reserve")}


def time_left(state: BuildState, now: float) -> tuple[float, float, float] | None:
    """Return the seconds that are left at Unix time `now`, and their band.

    They do not decrease while the build is paused, nor while a person keeps a job frozen: they count from its thaw.

    None if unknown, and after an error after which a scheduler starts nothing more: running jobs only finish.
    """
    e = state.estimate
    if e is None or any(s.stops for s in state.schedulers.values()):
        return None
    gone = 0.0 if state.phase in ("paused", "frozen") or frozen_by_person(state) else max(0.0, now - e.time)
    return max(0.0, e.seconds - gone), max(0.0, e.low - gone), max(0.0, e.high - gone)


def _eta(state: BuildState, now: float) -> dict[str, float | None]:
    seconds = time_left(state, now) or (None, None, None)
    names = ("seconds", "low", "high")
    return {name: None if s is None else round(s, 1) for name, s in zip(names, seconds, strict=True)}


def _remote(state: BuildState) -> dict[str, Any]:
    used, finished = state.used_hosts, state.remote.finished
    host = "name slots taken errors fallbacks why_unused compiled lost"
    return {
        "slots": state.remote.slots,
        "used": sum(used.values()),
        "finished": sum(finished.values()),
        "engines": [
            {
                **_keys(engine, "kind slots note"),
                "hosts": [
                    {**_keys(h, host), "used": used.get(h.name, 0), "finished": finished.get(h.name, 0)}
                    for h in engine.hosts
                ],
            }
            for engine in state.remote.engines
        ],
    }


def _cache(use: CacheUse) -> dict[str, Any]:
    return _keys(
        use,
        "tool hits misses percent uncacheable errors size size_limit exact saved_seconds saved_jobs",
        percent=None if use.rate is None else round(100 * use.rate, 2),
        saved_seconds=None if use.saved_seconds is None else round(use.saved_seconds, 1),
    )


def _verification(report: Report) -> dict[str, Any]:
    return {
        **_keys(report, "ok verdict"),
        "devices": [_keys(device, "name capability verdict why") for device in report.devices],
        "problems": [_keys(problem, "severity file what remedy") for problem in report.problems],
    }


def _diagnosis(diagnosis: Diagnosis) -> dict[str, Any]:
    cause = "rule title line text job why remedy count context context_line"
    return {
        "causes": [_keys(c, cause) for c in diagnosis.causes],
        "facts": list(diagnosis.facts),
        "action": None if diagnosis.action is None else _action(diagnosis.action),
        "complete": diagnosis.complete,
    }


def _action(action: Action) -> dict[str, Any]:
    return _keys(action, "kind what level names variable", what=words_of(action))


def _killed(death: KilledJob, state: BuildState) -> dict[str, Any]:
    """A job that did not fail; `will_run_again` is True until the step runs again, or the build has ended, or
    another step has failed by itself."""
    again = runs_again(state, death)
    return _keys(death, "output by who why time attempt rss will_run_again", will_run_again=again)


def _job(job: Job, now: float) -> dict[str, Any]:
    return _keys(
        job,
        "pid output tool phase state host seconds frozen waited rss peak_rss cpu expected waits waits_for",
        seconds=round(job.age(now), 1),
        frozen=round(job.frozen_for(now), 1),
        waited=round(max(0.0, (job.running_since or now) - job.started), 1),
        waits=job.reason or None,
        waits_for=(job.waits_for or None) if job.reason else None,
    )
