"""The object that `stoker status --json` prints: a contract with scripts. Keys may be added, never renamed.

Unaware of where the state comes from.
"""

from __future__ import annotations

from typing import Any

from stoker.model.cache_use import CacheUse
from stoker.model.diagnosis import Action, Cause, Diagnosis, words_of
from stoker.model.killed import failed_steps
from stoker.model.progress import Progress, progress_of
from stoker.model.report import Report
from stoker.model.state import BuildState, Job, KilledJob

MAX_STATUS_DECISIONS = 20


def status_of(state: BuildState, now: float) -> dict[str, Any]:
    """A build's status at Unix time `now`; sizes in bytes, times in seconds."""
    progress = progress_of(state)
    return {
        "id": state.id,
        "name": state.name,
        "state": state.phase,
        "command": list(state.command),
        "cwd": state.cwd,
        "exit_code": state.exit_code,
        "reason": state.reason,
        "started": state.started,
        "ended": state.ended,
        "seconds": max(0.0, (state.ended or now) - state.started),
        "step": _step(state),
        "activity": state.activity,
        "progress": _progress(progress),
        "level": _level(state, progress.running),
        "memory": _memory(state),
        "disk": _disk(state),
        "ramdisk": _ramdisk(state),
        "eta": _eta(state, now),
        "cache": None if state.cache is None else _cache(state.cache),
        "schedulers": [
            {"tool": s.tool, "directory": s.directory, "version": s.version, "running": s.ended is None}
            for s in state.schedulers.values()
        ],
        "failures": [{"output": f.output, "command": f.command, "exit_code": f.exit_code} for f in failed_steps(state)],
        "killed": [_killed(death, state) for death in state.killed],
        "lost": {by: {"jobs": lost.count, "seconds": round(lost.seconds, 1)} for by, lost in state.lost.items()},
        "decisions": [
            {"time": d.time, "who": d.who, "what": d.what, "why": d.why}
            for d in state.decisions[-MAX_STATUS_DECISIONS:]
        ],
        "jobs": [_job(job, now) for job in sorted(state.jobs.values(), key=lambda j: j.jid)],
        "verification": None if state.verification is None else _verification(state.verification),
        "diagnosis": None if state.diagnosis is None else _diagnosis(state.diagnosis),
        "log": state.log_path,
    }


def _step(state: BuildState) -> dict[str, Any]:
    step = state.step
    if step is None:
        return {"name": "", "index": 0, "count": 0, "attempt": 0}
    return {"name": step.name, "index": step.index, "count": step.count, "attempt": step.attempt}


def _progress(progress: Progress) -> dict[str, Any]:
    return {
        "finished": progress.finished,
        "total": progress.total,
        "total_known": progress.total_known,
        "percent": None if progress.share is None else round(100 * progress.share, 1),
        "running": progress.running,
        "on_deck": progress.on_deck,
        "frozen": progress.frozen,
        "failed": progress.failed,
        "killed": progress.killed,
    }


def _level(state: BuildState, running: int) -> dict[str, Any]:
    level = state.level
    return {
        "mode": level.mode,
        "target": level.target,
        "running": running,
        "window": level.window,
        "paused": level.paused,
        "guarded": level.guarded,
        "governed": state.governed and not state.over,
        "ungoverned": dict(state.ungoverned),
    }


def _memory(state: BuildState) -> dict[str, Any]:
    machine = state.machine
    stall = machine.pressure_memory if machine is not None and not state.over else None
    return {
        "budget": machine.memory_budget if machine else state.memory_total,
        "used": machine.memory_used if machine else 0,
        "available": machine.memory_available if machine else 0,
        "build": 0 if state.over else state.build_rss,
        "build_peak": state.build_peak_rss,
        "reserve": 0 if state.over else state.memory_reserve,
        "promised": 0 if state.over else state.memory_promised,
        "stalled_percent": None if stall is None else stall.some,
        "stalled_by_others": bool(stall and machine and machine.stalls_by_others(state.memory_reserve)),
    }


def _disk(state: BuildState) -> dict[str, Any]:
    machine = state.machine
    return {
        "written": state.build_written,
        "write_rate": machine.disk_write_rate if machine and not state.over else None,
        "free": machine.disk_free if machine else None,
    }


def _ramdisk(state: BuildState) -> dict[str, Any] | None:
    disk = state.machine.ramdisk if state.machine is not None else None
    if disk is None:
        return None
    return {
        "path": disk.path,
        "used": 0 if state.over else disk.used,
        "size": disk.size,
        "free": disk.free,
        "peak": state.ramdisk_peak,
        "reserve": state.ramdisk_reserve,
    }


def time_left(state: BuildState, now: float) -> tuple[float, float, float] | None:
    """Seconds that are left at Unix time `now`, and their band. They stand still while nobody works them off.

    None where nothing tells, and after an error for which what waited was dropped: what runs only comes to its end.
    """
    e = state.estimate
    if e is None or any(s.dropped and s.ended is None for s in state.schedulers.values()):
        return None
    gone = 0.0 if state.phase in ("paused", "frozen") else max(0.0, now - e.time)
    return max(0.0, e.seconds - gone), max(0.0, e.low - gone), max(0.0, e.high - gone)


def _eta(state: BuildState, now: float) -> dict[str, float | None]:
    names, left = ("seconds", "low", "high"), time_left(state, now)
    return {name: None if left is None else round(left[i], 1) for i, name in enumerate(names)}


def _cache(use: CacheUse) -> dict[str, Any]:
    return {
        "tool": use.tool,
        "hits": use.hits,
        "misses": use.misses,
        "percent": None if use.rate is None else round(100 * use.rate, 2),
        "uncacheable": use.uncacheable,
        "errors": use.errors,
        "size": use.size,
        "size_limit": use.size_limit,
        "exact": use.exact,
        "saved_seconds": None if use.saved_seconds is None else round(use.saved_seconds, 1),
        "saved_jobs": use.saved_jobs,
    }


def _verification(found: Report) -> dict[str, Any]:
    return {
        "ok": found.ok,
        "verdict": found.verdict,
        "devices": [
            {"name": d.name, "capability": d.capability, "verdict": d.verdict, "why": d.why} for d in found.devices
        ],
        "problems": [
            {"severity": p.severity, "file": p.file, "what": p.what, "remedy": p.remedy} for p in found.problems
        ],
    }


def _diagnosis(found: Diagnosis) -> dict[str, Any]:
    return {
        "causes": [_cause(cause) for cause in found.causes],
        "facts": list(found.facts),
        "action": None if found.action is None else _action(found.action),
        "complete": found.complete,
    }


def _cause(cause: Cause) -> dict[str, Any]:
    return {
        "rule": cause.rule,
        "title": cause.title,
        "line": cause.line,
        "text": cause.text,
        "job": cause.job,
        "why": cause.why,
        "remedy": cause.remedy,
        "count": cause.count,
        "context": list(cause.context),
        "context_line": cause.context_line,
    }


def _action(action: Action) -> dict[str, Any]:
    return {
        "kind": action.kind,
        "what": words_of(action),
        "level": action.level,
        "names": list(action.names),
        "variable": action.variable,
    }


def _killed(death: KilledJob, state: BuildState) -> dict[str, Any]:
    """A job that did not fail; `will_run_again` is True until the step runs again, or the build has ended."""
    attempt = state.step.attempt if state.step is not None else 1
    return {
        "output": death.output,
        "by": death.by,
        "who": death.who,
        "why": death.why,
        "time": death.time,
        "attempt": death.attempt,
        "rss": death.rss,
        "will_run_again": death.attempt == attempt and not state.over,
    }


def _job(job: Job, now: float) -> dict[str, Any]:
    return {
        "pid": job.pid,
        "output": job.output,
        "tool": job.tool,
        "phase": job.phase,
        "state": job.state,
        "seconds": 0.0 if job.running_since is None else round(max(0.0, now - job.running_since), 1),
        "waited": round(max(0.0, (job.running_since or now) - job.started), 1),
        "rss": job.rss,
        "peak_rss": job.peak_rss,
        "cpu": job.cpu,
        "expected": job.expected,
        "waits": job.reason or None,
        "waits_for": (job.waits_for or None) if job.reason else None,
    }
