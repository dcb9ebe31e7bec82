"""Processes as /proc shows them now. Knows nothing of builds."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

TICKS = os.sysconf("SC_CLK_TCK")

LOOK_SECONDS = 0.015
"""How long a watcher waits between looks."""


class Process(NamedTuple):
    """One process at one moment; `state` is the kernel's letter (proc(5)): T stopped, D uninterruptible, Z gone.

    `group` is its process group, `cpu` the CPU seconds that it has used itself.
    """

    pid: int
    name: str
    state: str
    parent: int
    group: int
    cpu: float


def process(pid: int) -> Process | None:
    """The process now, None if there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except (OSError, ValueError):
        return None
    head, _, tail = text.rpartition(")")
    fields = tail.split()
    cpu = (int(fields[11]) + int(fields[12])) / TICKS
    return Process(pid, head.partition("(")[2], fields[0], int(fields[1]), int(fields[2]), cpu)


def processes() -> dict[int, Process]:
    """All that there are."""
    found = (process(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return {p.pid: p for p in found if p is not None}


def below(top: Iterable[int], table: dict[int, Process] | None = None) -> list[Process]:
    """All descendants of these processes, themselves left out."""
    table = processes() if table is None else table
    children: dict[int, list[Process]] = {}
    for p in table.values():
        children.setdefault(p.parent, []).append(p)
    found: list[Process] = []
    waiting = list(top)
    while waiting:
        new = children.get(waiting.pop(), [])
        found += new
        waiting += [p.pid for p in new]
    return found


def command(pid: int) -> list[str]:
    """Its words; empty when it has gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
    except OSError:
        return []


def stopped(pids: Iterable[int]) -> list[int]:
    """Those of them that are stopped by a signal."""
    return [pid for pid in pids if (p := process(pid)) is not None and p.state == "T"]


class Watch:
    """Calls `look` again and again in a thread of its own while the block runs, for what must never be seen."""

    def __init__(self, look: Callable[[], None]) -> None:
        self._look = look
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._error: Exception | None = None

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        if self._error is not None and error is None:
            raise self._error

    def _run(self) -> None:
        try:
            while not self._over.wait(LOOK_SECONDS):
                self._look()
        except Exception as err:  # noqa: BLE001  (told where the block ends)
            self._error = err
