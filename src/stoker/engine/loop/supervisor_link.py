"""The engine's link to its supervisor: its identity, whether it is alive, what is left for it, and its questions.

Unaware of how jobs are found and of what is decided.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Iterable

from stoker.act.handover import Handover
from stoker.act.tree import signal_tree
from stoker.act.watchdog_call import WatchdogCall
from stoker.config.paths import BuildPaths
from stoker.contract.process import Key, lives, state_of
from stoker.contract.retry_files import FailedAttempt
from stoker.contract.strict_json import load, load_or_none
from stoker.contract.supervisor_files import LeftOver, Run, SupervisorRecord
from stoker.engine.govern.hosted_gate import HostedGate
from stoker.engine.govern.level_control import LevelControl
from stoker.engine.jobs.managed_job import Life
from stoker.engine.jobs.table import JobTable

BEAT_SECONDS = 1.0
"""How often an engine updates its heartbeat: as often as it looks at a build."""


class SupervisorLink:
    """The contents of supervisor.json, kept up to date."""

    def __init__(self, paths: BuildPaths) -> None:
        self._paths = paths
        self._exit = str(paths.exit)
        self._stopping = str(paths.root / "stopping")
        self._left_over = str(paths.root / "left_over.json")
        self._question = str(paths.root / "ended.json")
        self._file = str(paths.supervisor)
        self._handover = Handover(paths)
        self._watchdog = WatchdogCall(paths)
        self._gate_version = (-1, -1, -1)
        self._record = load(SupervisorRecord, paths.supervisor)
        self._stamp: tuple[int, int] | None = None
        self.version = 0
        """Increases with what the supervisor has written."""
        self._acting = self._record.acting_supervisor()

    @property
    def lives(self) -> bool:
        """Whether there was a supervisor at the last check."""
        return self._acting is not None

    @property
    def build_pid(self) -> int:
        """The command's process in this attempt."""
        return self._record.build_pid

    @property
    def top(self) -> int:
        """The process above the whole build: the supervisor, or without it the command."""
        return self._acting[0] if self._acting is not None else self.build_pid

    @property
    def started(self) -> float:
        """When the supervisor first started the command, in Unix seconds."""
        return self._record.started

    @property
    def runs(self) -> list[Run]:
        """All commands started so far; the last one runs now, or was the last of all."""
        return self._record.runs

    def is_there(self) -> bool:
        """Say whether a supervisor is alive; called every tick, and it is our parent unless it was killed."""
        is_parent = self._acting is not None and os.getppid() == self._acting[0]
        return is_parent or self._record.acting_supervisor() is not None

    def build_is_over(self) -> bool:
        """Say whether the supervisor has written the end; or nobody will, and the command has gone."""
        if os.path.exists(self._exit):  # called a few times a second
            return True
        if self.is_there():
            return False
        self.read()  # its last message may be about another step, which runs
        return not lives(self._record.build)

    def is_stopping(self) -> bool:
        """Say whether the supervisor is ending the build, whoever requested it."""
        return os.path.exists(self._stopping)  # called every tick

    def left_over(self) -> LeftOver | None:
        """Return what the last command has left behind; None if the supervisor has found nothing."""
        return load_or_none(LeftOver, self._left_over) if os.path.exists(self._left_over) else None

    def read(self) -> None:
        """Read what the supervisor has written since: always a new file, renamed over the old one."""
        with contextlib.suppress(OSError):
            found = os.stat(self._file)
            if (found.st_ino, found.st_mtime_ns) == self._stamp:
                return
            if (record := load_or_none(SupervisorRecord, self._paths.supervisor)) is not None:
                self._record, self._stamp = record, (found.st_ino, found.st_mtime_ns)
                self.version += 1

    def was_killed(self) -> bool:
        """Return True once for each supervisor that was killed. A standby takes its place.

        Either is woken if it is stopped: if no standby is left above it, nobody else notices.

        Without a supervisor, start a watchdog, which ensures that this engine is not the last one.
        """
        before = self._acting
        state = state_of(before) if before is not None else ""
        if before is not None and state:
            if state == "T":
                signal_tree([before[0]], signal.SIGCONT)
            return False
        self._acting = self._record.acting_supervisor()
        if self._acting is not None:
            signal_tree([self._acting[0]], signal.SIGCONT)
        else:
            with contextlib.suppress(OSError):
                self._watchdog.renew()
        return before is not None

    def beat(self) -> None:
        """Let the supervisor know that an engine looks at the build: from now on it asks what to do about a failure."""
        self._handover.beat()

    @contextlib.asynccontextmanager
    async def beating(self) -> AsyncIterator[None]:
        """While something takes long: keep the heartbeat going."""

        async def beat() -> None:
            while True:
                self.beat()
                await asyncio.sleep(BEAT_SECONDS)

        task = asyncio.create_task(beat())
        try:
            yield
        finally:
            task.cancel()

    def hand_over(self, level: LevelControl, schedulers: Iterable[Key], jobs: JobTable, hosted: HostedGate) -> None:
        """Leave what must be known if this engine is killed: which jobs are stopped, and in which order they
        continue."""
        self._handover.beat()
        # A paused build continues with one job when nobody is left to resume it.
        places = 0 if level.paused != "no" else level.level
        version = (jobs.version, hosted.version, places)
        if version == self._gate_version:
            return
        self._gate_version = version
        stopped = [job.job.key for job in (*jobs.having(Life.FROZEN), *jobs.on_deck())]
        self._handover.write_gate(places, list(schedulers), stopped, [job.job.key for job in jobs], hosted.held)

    def asked(self) -> FailedAttempt | None:
        """Return the supervisor's question after the command has failed, None if there is none."""
        return self._handover.asked() if os.path.exists(self._question) else None  # called every tick

    def answer(self, failed: FailedAttempt, *, again: bool, exit_code: int | None) -> None:
        """Answer whether it runs again, and the status that counts instead of its own."""
        with contextlib.suppress(OSError):  # then it does not run again, after a minute
            self._handover.answer(failed.attempt, again=again, exit_code=exit_code)
