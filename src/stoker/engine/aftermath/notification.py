"""Calls the notify command at the occasions of a build, each once, whichever engine is running.

Unaware of terminals, which viewers notify, and of how the command is run.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator

from stoker.act.notify_hook import call_hook, claim_end
from stoker.config.paths import BuildPaths
from stoker.contract.spec_file import BuildSpec
from stoker.contract.supervisor_files import HookFacts
from stoker.model import events as ev
from stoker.model.occasions import Occasion, message_of, occasions_of
from stoker.model.state import BuildState
from stoker.model.status import status_of
from stoker.model.text import clean

_BY_LIMIT = (124, 137)
"""The exit statuses of timeout(1) at the limit: after SIGTERM, and after SIGKILL."""


class NotifyHook:
    """The notifications of one build. Calls are in the journal, so that no engine repeats one."""

    def __init__(self, paths: BuildPaths, spec: BuildSpec) -> None:
        self._paths, self._command, self._cwd = paths, spec.notify, spec.cwd
        self._running: dict[int, tuple[Occasion, float]] = {}

    @property
    def runs(self) -> bool:
        """Whether a call has not ended yet."""
        return bool(self._running)

    def look(self, state: BuildState, now: float) -> list[ev.Event]:
        """Make the calls that are due at Unix time `now`, and report the calls that have ended."""
        due = [occasion for occasion in occasions_of(state) if occasion not in state.announced]
        return [*self._ended(), *self._called(due, state, now)]

    def _called(self, due: Iterable[Occasion], state: BuildState, now: float) -> Iterator[ev.Event]:
        for occasion in due:
            yield ev.HookCalled(occasion)
            if occasion == "end" and not claim_end(str(self._paths.root)):
                continue
            message = message_of(state, occasion)
            document = {"event": occasion, "message": message, "status": status_of(state, now)}
            facts = _facts(state, occasion, message, now)
            try:
                log = str(self._paths.notify_log)
                pid = call_hook(self._command, self._cwd, log, facts.environment(), json.dumps(document).encode())
            except (OSError, ValueError) as err:
                yield ev.HookEnded(occasion, None, 0.0)
                yield ev.Noticed("warning", f"the notify command could not be started: {clean(str(err))}")
            else:
                self._running[pid] = (occasion, time.monotonic())

    def _ended(self) -> Iterator[ev.Event]:
        for pid, (occasion, began) in list(self._running.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if not ended:
                continue
            del self._running[pid]
            code = os.waitstatus_to_exitcode(status)
            yield ev.HookEnded(occasion, code, round(time.monotonic() - began, 3))
            if code:
                how = "took too long" if code in _BY_LIMIT else f"ended with {code}"
                yield ev.Noticed("warning", f"the notify command {how} ({occasion}); its output: notify.log")


def _facts(state: BuildState, occasion: Occasion, message: str, now: float) -> HookFacts:
    seconds = (state.ended or now) - state.started
    name, host = clean(state.name), clean(state.host)
    return HookFacts(
        occasion, message, clean(state.id), name, state.phase, state.exit_code, seconds, state.cwd, state.log_path, host
    )
