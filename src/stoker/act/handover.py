"""The engine's half of what it and its keeper tell each other, by files in the build's folder.

While it works, an engine leaves behind what somebody must know who stands in for it (gate.json, heartbeat). When the
command has failed, the keeper asks (ended.json) and the engine answers (verdict.json). Unaware of why.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from stoker.act.minder import gate_line, read_gate
from stoker.act.standby import acting_keeper
from stoker.act.tree import Key, signal_tree, start_ticks
from stoker.config.paths import BuildPaths, private_opener


@dataclass(frozen=True, slots=True)
class Ended:
    """The command has failed, and the keeper wants to know whether it runs again. `attempt` counts from 1.

    `exit_code` is 128 + `signal` where a signal ended the command.
    """

    exit_code: int
    signal: int | None
    attempt: int


class Handover:
    """What one engine writes for the keeper of its build."""

    def __init__(self, paths: BuildPaths) -> None:
        self._paths = paths
        self._told: object = None
        before = read_gate(str(paths.root))
        self._jobs: list[Key] = before.jobs if before is not None else []

    def beat(self) -> None:
        """Say that the engine is not deaf; to be called at every look, at least every few seconds."""
        with contextlib.suppress(OSError):
            self._file("heartbeat").touch(0o600)

    def write_gate(
        self,
        level: int,
        schedulers: Sequence[Key],
        stopped: Sequence[Key],
        jobs: Sequence[Key],
        guests: Mapping[Key, Key] = MappingProxyType({}),
    ) -> None:
        """Leave behind how many jobs may run (0: none, a person's pause) and which are stopped, first to go first.

        `guests` are the stopped processes that a cache's server runs, with their jobs. `jobs` are those of living
        schedulers. One whose scheduler was killed stays on the list while it lives: the keeper ends what is left when
        the command has ended. Does nothing if nothing has changed; a full disk is tried again at the next call.
        """
        known = set(jobs)
        left = [key for key in self._jobs if key not in known and start_ticks(key[0]) == key[1]]
        self._jobs = [*jobs, *left]
        told: dict[str, object] = {"level": level, "schedulers": schedulers, "stopped": stopped, "jobs": self._jobs}
        told["guests"] = [[*job, *guest] for guest, job in guests.items()]
        if told != self._told:
            with contextlib.suppress(OSError):
                self._overwrite("gate.json", gate_line(told))
                self._told = told

    def asked(self) -> Ended | None:
        """The keeper's question, None while there is none or when it has been answered."""
        ended = self._read("ended.json")
        if ended is None or ended["attempt"] != (self._read("keeper.json") or {}).get("attempt"):
            return None
        answered = self._read("verdict.json")
        if answered is not None and answered["attempt"] == ended["attempt"]:
            return None
        return Ended(ended["exit_code"], ended["signal"], ended["attempt"])

    def answer(self, attempt: int, *, again: bool, exit_code: int | None = None) -> None:
        """Whether the command runs again, and which exit status counts if it is not its own.

        Raises OSError if that cannot be written; then it does not run again.
        """
        self._write("verdict.json", {"attempt": attempt, "again": again, "exit_code": exit_code})
        keeper = acting_keeper(self._read("keeper.json") or {})
        if keeper is not None:
            signal_tree([keeper[0]], signal.SIGUSR1)

    def _file(self, name: str) -> Path:
        return self._paths.root / name

    def _read(self, name: str) -> dict[str, Any] | None:
        try:
            value: dict[str, Any] = json.loads(self._file(name).read_bytes())
        except (OSError, ValueError):
            return None
        return value

    def _overwrite(self, name: str, line: bytes) -> None:
        """In place: ext4 and btrfs write out at once what is renamed over another file, and a busy disk takes long.

        Behind the line may stand the end of a longer one. A reader may see parts of several.
        """
        fd = os.open(self._file(name), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if os.fstat(fd).st_size < len(line):
                os.posix_fallocate(fd, 0, len(line))  # where the disk is full, the old one stays whole
            os.pwrite(fd, line, 0)
        finally:
            os.close(fd)

    def _write(self, name: str, value: object) -> None:
        """Whole or not at all, for a reader at any moment."""
        new = self._file(name + ".new")
        with open(new, "wb", opener=private_opener) as file:
            file.write(json.dumps(value).encode("ascii"))  # json.dump would take six times as long
        new.replace(self._file(name))
