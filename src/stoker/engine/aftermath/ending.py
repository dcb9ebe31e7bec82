"""How a build ended, according to its supervisor's files. Unaware of processes."""

from __future__ import annotations

import contextlib
import signal
from dataclasses import replace

from stoker.config.paths import BuildPaths
from stoker.contract.retry_files import FailedAttempt
from stoker.contract.strict_json import load_or_none
from stoker.contract.supervisor_files import ExitRecord
from stoker.engine.aftermath.recovery import GIVEN_UP
from stoker.model.events import BuildEnded
from stoker.model.killed import failed_steps
from stoker.model.state import BuildState, Scheduler

KILLED = 128 + signal.SIGKILL


def ending_of(paths: BuildPaths, state: BuildState, written: int | None = None) -> BuildEnded:
    """Return the last event of a journal; `written` is how many bytes went to disks."""
    size: int | None = None
    with contextlib.suppress(OSError):
        size = paths.output.stat().st_size
    return replace(_outcome(paths, state), written=written, log_size=size)


def _outcome(paths: BuildPaths, state: BuildState) -> BuildEnded:
    """Without an exit file the supervisor was killed, and the status is lost."""
    record = load_or_none(ExitRecord, paths.exit)
    if record is None:
        if state.phase == "stopping":
            return BuildEnded("stopped", None, _who_stopped(state))
        return BuildEnded("failed", None, "the supervisor was killed; the build's exit status is lost")
    code = record.exit_code
    if record.stopped:
        # Also with status 0: a script may catch SIGTERM and exit with 0 although half of its work is undone.
        return BuildEnded("stopped", code, _who_stopped(state))
    if code == 0:
        return BuildEnded("done", 0, "")
    step = state.step
    where = f"step {step.name}: " if step is not None and step.count > 1 else ""
    return BuildEnded("failed", code, where + _reason(code, record.signal, state))


def true_status(failed: FailedAttempt, state: BuildState) -> int | None:
    """Return the status that ninja would have given if stoker had not killed or dropped any job; None: its own.

    From 1.12 on ninja exits with the status of the last failed job, which may be a dropped one (128 + SIGKILL). A
    script that passes ninja's status on is recognised by that status, if no job of the build itself ended with it.
    """
    ours = [s for s in _schedulers_of_attempt(state) if s.tool == "ninja" and (s.dropped or s.killed)]
    failures = failed_steps(state)
    if failed.exit_code != KILLED or failed.signal is not None or not ours or not failures:
        return None
    is_command = state.step is not None and any(s.pid == state.step.pid for s in ours)
    if not is_command and any(failure.exit_code == KILLED for failure in failures):
        return None
    return failures[-1].exit_code or 1


def _schedulers_of_attempt(state: BuildState) -> list[Scheduler]:
    """Return the last ones found, as many as this attempt at its step has had: the numbers only grow."""
    found = sorted(state.schedulers)[-state.step.schedulers :] if state.step and state.step.schedulers else []
    return [state.schedulers[sid] for sid in found]


def _who_stopped(state: BuildState) -> str:
    """Return a person who used stoker, or an unknown sender of a signal to the supervisor: a logout, a shutdown,
    systemd."""
    asked = state.phase == "stopping" and state.decisions
    return f"stopped by {state.decisions[-1].who}" if asked else "stopped: the supervisor was sent a signal"


def _reason(code: int, signum: int | None, state: BuildState) -> str:
    if signum is not None:
        name = signal.strsignal(signum) or "real-time signal"
        return f"killed by signal {signum} ({name})"
    if code == 127 and not state.schedulers:
        return "exit status 127: a command was not found; see the output"
    given_up = next((d.why for d in reversed(state.decisions) if d.what == GIVEN_UP), "")
    if given_up:
        return f"exit status {code}: {given_up}"
    failures = failed_steps(state)
    if failures:
        first = failures[0]
        more = f" and {len(failures) - 1} more" if len(failures) > 1 else ""
        return f"exit status {code}: {first.output} failed{more}"
    return f"exit status {code}"
