"""What one tick measures of the machine and of the build as a whole. Unaware of jobs and of decisions."""

from __future__ import annotations

from collections.abc import Mapping

from stoker.model import events as ev
from stoker.sense.classify import describe
from stoker.sense.machine import MachineReader
from stoker.sense.phase import innermost
from stoker.sense.processes import Process, read_cmdline, read_io_written

WRITTEN_EVERY = 5.0
"""Seconds between two counts of bytes written: one more small read for each process."""


class Sampler:
    """Samples; `written` is what an engine before this one had counted of the bytes that the build wrote."""

    def __init__(self, machine: MachineReader, written: int) -> None:
        self._machine = machine
        self._written = written
        self._written_at = 0.0

    def sample(self, processes: Mapping[int, Process], now: float, *, busy: bool) -> ev.Sampled:
        """The tick at Unix time `now`, without jobs; `busy`: a scheduler runs."""
        if not 0 <= now - self._written_at < WRITTEN_EVERY:
            self._written_at = now
            written = sum(read_io_written(pid) or 0 for pid in processes)
            self._written = max(self._written, written)
        rss = sum(p.rss for p in processes.values())
        activity = "" if busy else _activity(processes)
        return ev.Sampled(self._machine.read(now, rss), (), rss, len(processes), self._written, activity, 0)


def _activity(processes: Mapping[int, Process]) -> str:
    """What runs when no scheduler does: the innermost command in a few words."""
    process = innermost(processes.values())
    return describe(read_cmdline(process.pid)) if process is not None else ""
