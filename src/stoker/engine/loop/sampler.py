"""What one tick measures of the machine and of the build as a whole. Unaware of jobs and of decisions."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from stoker.model.samples import MachineSample
from stoker.sense.commands.classify import describe
from stoker.sense.machine.machine import MachineReader
from stoker.sense.proc.build_cpu import BuildCpu
from stoker.sense.proc.bytes_written import WrittenReader
from stoker.sense.proc.held_load import HeldLoad
from stoker.sense.proc.phase import innermost
from stoker.sense.proc.processes import Process, held_by, read_cmdline
from stoker.sense.proc.ungoverned_compilers import compilations, compilers

WRITTEN_EVERY = 15.0
"""Seconds between two counts of bytes written: one more small read per process."""


class Measured(NamedTuple):
    """The machine, the bytes that the build holds, its number of processes, the bytes that it wrote, its activity while
    no scheduler runs, how many ungoverned compilers run then, by program, its CPU use in percent of one core, and how
    many ungoverned compilations were seen so far."""

    machine: MachineSample
    build_holds: int
    processes: int
    written: int
    activity: str
    ungoverned: Mapping[str, int]
    cpu: float | None = None
    compilations: int = 0


class Sampler:
    """Samples the machine and the process tree below process `top`.

    `written` is how many bytes written by the build an earlier engine had counted, `compiled` how many ungoverned
    compilations; `orphaned`: the supervisor, to which most of it was charged, is gone.
    """

    def __init__(self, machine: MachineReader, top: int, written: int, compiled: int = 0, *, orphaned: bool) -> None:
        self._machine = machine
        self._disks = WrittenReader(top, written, adopted=orphaned)
        self._written = written
        self._written_at = 0.0
        self._pids: tuple[int, ...] = ()
        self._cpu, self._held_load = BuildCpu(), HeldLoad()
        self._compiled, self._known = compiled, set[tuple[int, int]]()

    def sample(
        self, processes: Mapping[int, Process], now: float, *, jobs: int, busy: bool, ended: Collection[int] = ()
    ) -> Measured:
        """What is measured at Unix time `now`. Jobs hold `jobs` bytes; `busy`: a scheduler runs; `ended`: those of the
        processes that have ended since they were read, with jobs that hold nothing any more."""
        if not 0 <= now - self._written_at < WRITTEN_EVERY:
            self._written_at = now
            self._pids = tuple(processes)
            self.count_written()
        held = held_by(process for process in processes.values() if process.pid not in ended)
        activity = "" if busy else _activity(processes)
        alone = {} if busy else compilers(processes.values(), now)
        self._count_compilations(processes, set() if busy else compilations(processes))
        machine = self._machine.read(now, held, jobs, load_held=round(self._held_load.measure(processes, now), 2))
        build = self._machine.build_holds
        cpu = self._cpu.measure(processes, now)
        return Measured(machine, build, len(processes), self._written, activity, alone, cpu, self._compiled)

    def _count_compilations(self, processes: Mapping[int, Process], running: set[tuple[int, int]]) -> None:
        """Count the new ones and forget the ended: nvcc runs one pass after the other, with gaps."""
        self._compiled += len(running - self._known)
        living = {key for key in self._known if (process := processes.get(key[0])) and process.start_ticks == key[1]}
        self._known = living | running

    def count_written(self) -> int:
        """Count again what the build wrote to disks: also at its very end, after the last link has been waited for."""
        self._written = self._disks.read(self._pids)
        return self._written

    def go_on_from(self, top: int) -> None:
        """The supervisor was killed: from now on the tree is that below another process."""
        self._disks.go_on_from(top, self._written)


def _activity(processes: Mapping[int, Process]) -> str:
    """Say what runs when no scheduler does: the innermost command in a few words."""
    process = innermost(processes.values())
    return describe(read_cmdline(process.pid)) if process is not None else ""
