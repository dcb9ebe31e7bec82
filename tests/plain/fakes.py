"""A source made of plain values, and states as a build would give them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

from stoker.model.job_tree import ProcessTree
from stoker.model.samples import MachineSample
from stoker.model.state import BuildState, Estimate, MemoryUse, Scheduler, SchedulerPlan
from stoker.model.update import Update

GIB = 2**30
START = 1_700_000_000.0


class FileLog:
    """A log file, read as the real one is."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def size(self) -> int:
        return self._path.stat().st_size if self._path.exists() else 0

    def read(self, offset: int, length: int) -> bytes:
        if not self._path.exists():
            return b""
        with self._path.open("rb") as file:
            file.seek(offset)
            return file.read(length)


class ListSource:
    """Gives updates one by one, doing what stands before each."""

    read_only = False

    def __init__(self, log: FileLog, steps: Sequence[tuple[Callable[[], object], Update]]) -> None:
        self.log = log
        self._steps = steps

    async def updates(self) -> AsyncIterator[Update]:
        for action, update in self._steps:
            action()
            yield update
            await asyncio.sleep(0)

    async def command(self, verb: str, **arguments: object) -> None:
        raise AssertionError(f"a plain client commands nothing, and it sent {verb}")

    async def processes(self, jid: int) -> ProcessTree:
        raise AssertionError(f"a plain client shows no processes, and it asked for those of job {jid}")


def machine(used: float = 18.2, budget: float = 23.4) -> MachineSample:
    total, taken = int(budget * GIB), int(used * GIB)
    return MachineSample(50.0, (50,), 1.0, total, taken, total - taken, "machine")


def state(finished: int = 0, total: int | None = 100, **changes: Any) -> BuildState:
    scheduler = Scheduler(
        1, "ninja", 7, "out", "1.13.2", 8, None, START, plan=SchedulerPlan(total, "dry-run"), finished=finished
    )
    values: dict[str, Any] = {
        "id": "demo-1",
        "name": "demo",
        "command": ("ninja", "-C", "out"),
        "log_path": "/somewhere/output.log",
        "phase": "running",
        "seq": 1,
        "started": START,
        "time": START,
        "schedulers": {1: scheduler},
        "machine": machine(),
        "estimate": Estimate(1500, 1440, 1860, START),
    }
    return BuildState(**{**values, **changes})


def done(finished: int = 100, **changes: Any) -> BuildState:
    end: dict[str, Any] = {"phase": "done", "outcome": "done", "exit_code": 0, "ended": START + 754}
    return state(finished, **end, memory=MemoryUse(build_peak=5 * GIB), **changes)
