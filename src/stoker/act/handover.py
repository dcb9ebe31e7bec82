"""The engine's side of the files by which it and its supervisor communicate, in the build's folder.

While an engine works, it leaves what a process needs that acts in its place (gate.json, heartbeat). When the command
has failed, the supervisor asks (ended.json) and the engine answers (verdict.json). Does not know why.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from stoker.act.tree import signal_tree
from stoker.config.paths import BuildPaths
from stoker.contract.gate_file import Gate, gate_line, read_gate, write_gate
from stoker.contract.process import Key, lives
from stoker.contract.reserved_file import write_reserved
from stoker.contract.retry_files import FailedAttempt, Verdict
from stoker.contract.strict_json import dump, load_or_none
from stoker.contract.supervisor_files import SupervisorRecord


class Handover:
    """What one engine writes for the supervisor of its build."""

    def __init__(self, paths: BuildPaths) -> None:
        self._paths = paths
        self._written: Gate | None = None
        before = read_gate(paths.root)
        self._jobs = before.jobs if before is not None else ()

    def beat(self) -> None:
        """Show that the engine is alive; call this every tick, at least every few seconds."""
        with contextlib.suppress(OSError):
            self._file("heartbeat").touch(0o600)

    def write_gate(
        self,
        level: int,
        schedulers: Sequence[Key],
        stopped: Sequence[Key],
        jobs: Sequence[Key],
        hosted: Mapping[Key, Key] = MappingProxyType({}),
    ) -> None:
        """Leave how many jobs may run (0: none, a user's pause) and which are stopped, in the order in which they
        continue.

        `hosted` are the stopped processes that a cache's server runs, with their jobs. `jobs` are those of live
        schedulers. A job whose scheduler was killed stays on the list while it lives: the supervisor ends what is left
        when the command has ended. Does nothing if nothing has changed; if the disk is full, the next call tries again.
        """
        known = set(jobs)
        orphans = (key for key in self._jobs if key not in known and lives(key))
        self._jobs = (*jobs, *orphans)
        owners = tuple((*job, *process) for process, job in hosted.items())
        gate = Gate(level, tuple(schedulers), tuple(stopped), self._jobs, owners)
        if gate != self._written:
            with contextlib.suppress(OSError):
                write_gate(self._paths.root, gate_line(gate))
                self._written = gate

    def asked(self) -> FailedAttempt | None:
        """Return the supervisor's question; None if there is none or it has been answered."""
        question = load_or_none(FailedAttempt, self._file("ended.json"))
        supervisor = load_or_none(SupervisorRecord, self._paths.supervisor)
        if question is None or supervisor is None or question.attempt != supervisor.attempt:
            return None
        verdict = load_or_none(Verdict, self._file("verdict.json"))
        return None if verdict is not None and verdict.attempt == question.attempt else question

    def answer(self, attempt: int, *, again: bool, exit_code: int | None = None) -> None:
        """Answer whether the command runs again, and which exit status counts instead of its own.

        Raises OSError if the answer cannot be written; then the command does not run again.
        """
        write_reserved(str(self._file("verdict.json")), dump(Verdict(attempt, again, exit_code)))
        record = load_or_none(SupervisorRecord, self._paths.supervisor)
        if record is not None and (supervisor := record.acting_supervisor()) is not None:
            signal_tree([supervisor[0]], signal.SIGUSR1)

    def _file(self, name: str) -> Path:
        return self._paths.root / name
