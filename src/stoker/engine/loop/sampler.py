"""What one tick measures of the machine and of the build as a whole. Unaware of jobs and of decisions."""

from __future__ import annotations

from collections.abc import Mapping

from stoker.model import events as ev
from stoker.sense.commands.classify import describe
from stoker.sense.machine.machine import MachineReader
from stoker.sense.proc.bytes_written import WrittenReader
from stoker.sense.proc.phase import innermost
from stoker.sense.proc.processes import Process, held_by, read_cmdline
from stoker.sense.proc.ungoverned_compilers import compilers

WRITTEN_EVERY = 5.0
"""Seconds between two counts of bytes written: one more small read for each process."""


class Sampler:
    """Samples the machine and the tree below process `top`.

    `written` is what an engine before this one had counted of the bytes that the build wrote; `orphaned`: the
    supervisor is gone, which had been told most of it.
    """

    def __init__(self, machine: MachineReader, top: int, written: int, *, orphaned: bool) -> None:
        self._machine = machine
        self._disks = WrittenReader(top, written, adopted=orphaned)
        self._written = written
        self._written_at = 0.0
        self._pids: tuple[int, ...] = ()

    def sample(self, processes: Mapping[int, Process], now: float, *, jobs: int, busy: bool) -> ev.Sampled:
        """The tick at Unix time `now`, without jobs, which hold `jobs` bytes; `busy`: a scheduler runs."""
        if not 0 <= now - self._written_at < WRITTEN_EVERY:
            self._written_at = now
            self._pids = tuple(processes)
            self.count_written()
        held = held_by(processes.values())
        activity = "" if busy else _activity(processes)
        alone = {} if busy else compilers(processes.values(), now)
        machine = self._machine.read(now, held, jobs)
        build = self._machine.build_holds
        return ev.Sampled(machine, (), build, len(processes), self._written, activity, 0, ungoverned=alone)

    def count_written(self) -> int:
        """Count anew what the build wrote to disks: also at its very end, when the last link has been waited for."""
        self._written = self._disks.read(self._pids)
        return self._written

    def go_on_from(self, top: int) -> None:
        """The supervisor was killed: from now on the tree is that below another process."""
        self._disks.go_on_from(top, self._written)


def _activity(processes: Mapping[int, Process]) -> str:
    """What runs when no scheduler does: the innermost command in a few words."""
    process = innermost(processes.values())
    return describe(read_cmdline(process.pid)) if process is not None else ""
