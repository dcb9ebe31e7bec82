"""The machine at one instant, as far as it concerns the build: a MachineSample from all the readers.

Unaware of jobs and of what is decided based on these figures.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from stoker.model.samples import MachineSample
from stoker.sense.machine.cgroup import Cgroups, MemoryLimit, find_cgroups, held_in
from stoker.sense.machine.cpu import CpuReader, CpuUse, cpu_available
from stoker.sense.machine.disk import SYS, DiskReader
from stoker.sense.machine.gpu import GpuReader
from stoker.sense.machine.limits import binding_limit, read_meminfo
from stoker.sense.machine.pressure import read_pressure
from stoker.sense.machine.tmpfs_use import RamDiskReader
from stoker.sense.proc.processes import PROC
from stoker.sense.proc.procfs import Notes

LOOK_AGAIN = 60
"""Reads after which control groups are looked up again: a process may be moved, and a limit set, while it runs."""


class MachineReader:
    """Samples the machine for the build of process `pid` that writes below `cwd`.

    `own_limit` is the user's memory limit for the build in bytes, if any. The contents of `ramdisk` count against it,
    as they count against all other limits anyway. Without a `gpu` reader no GPU is queried.
    """

    def __init__(
        self,
        pid: int,
        cwd: str,
        proc_root: Path = PROC,
        sys_root: Path = SYS,
        gpu: GpuReader | None = None,
        own_limit: int | None = None,
        ramdisk: RamDiskReader | None = None,
    ) -> None:
        self.notes = ramdisk.notes if ramdisk is not None else Notes()
        self._pid = pid  # one that is gone has no control groups
        self._proc = proc_root
        self._cpu = CpuReader(proc_root)
        self._disk = DiskReader(cwd, proc_root, sys_root)
        self._gpu = gpu
        self._cgroups = Cgroups()
        self._around: dict[int, Cgroups] = {}
        self._own_pressure = False
        self._own_memory: Path | None = None
        self._beside = 0
        self.build_holds = 0
        """Bytes that the build holds in addition to a RAM disk, as last read: from its own control group, if it has
        one."""
        self._cores = 1.0
        self._limited: frozenset[str] | None = None
        """The groups that had a memory limit at the last sample; None if all are to be looked at."""
        self._reads = 0
        self._own_limit = own_limit
        self._ramdisk = ramdisk
        self._in_ramdisk = 0

    def read(self, now: float, held: int = 0, jobs: int = 0, *, load_held: float = 0.0) -> MachineSample:
        """Return the sample for Unix time `now`; the build's processes hold `held` bytes, `jobs` of them in jobs, and
        the stopped ones make `load_held` of the load.

        They count against the user's limit for the build, unless the build's own group knows better. What cannot be
        read is 0 or None, and is reported once in `notes`.
        """
        if self._reads % LOOK_AGAIN == 0:
            self._look_up()
        self._reads += 1
        disk = self._ramdisk.read() if self._ramdisk is not None else None
        self._in_ramdisk = disk.used if disk is not None else 0
        info = read_meminfo(self._proc)
        if not info:
            self.notes.say(f"cannot read {self._proc}/meminfo; the machine's memory is not known")
        account = held_in(self._own_memory) if self._own_memory is not None else None
        self.build_holds = held if account is None else max(0, account - self._in_ramdisk)
        self._beside = self.build_holds - jobs
        self._limited = None
        memory = self._binding(info, self.build_holds)
        cpu = self._cpu.read() or CpuUse(0.0, ())
        group, own = self._cgroups.pressure_folder, self._own_pressure
        pressures = {r: read_pressure(r, group, self._proc, own=own) for r in ("cpu", "memory", "io")}
        if pressures["memory"] is None:
            self.notes.say("this kernel reports no memory pressure (PSI)")
        return MachineSample(
            cpu_percent=cpu.percent,
            cpu_cores=cpu.cores,
            cpu_available=self._cores,
            memory_budget=memory.limit,
            memory_used=memory.used,
            memory_available=memory.available,
            memory_limit_source=memory.path,
            swap_used=max(0, info.get("SwapTotal", 0) - info.get("SwapFree", 0)),
            swap_total=info.get("SwapTotal", 0),
            load=_load(),
            pressure_cpu=pressures["cpu"],
            pressure_memory=pressures["memory"],
            pressure_io=pressures["io"],
            disk_free=self._disk.free(),
            disk_write_rate=self._disk.write_rate(now),
            gpus=self._gpu.gpus if self._gpu is not None else (),
            gpu_note=self._gpu.note if self._gpu is not None else "",
            ramdisk=disk,
            load_held=load_held,
        )

    def memory(self, jobs: int) -> MemoryLimit:
        """Return the binding limit, if the build's jobs hold so many bytes now: cheap enough for every decision.

        A group that had no limit at the last sample is not read: most have none, and one that is set meanwhile counts
        from the next sample on.
        """
        if not self._reads:
            self._look_up()
        return self._binding(read_meminfo(self._proc), max(0, jobs + self._beside))

    def _binding(self, info: dict[str, int], held: int) -> MemoryLimit:
        groups = dict.fromkeys((self._cgroups, *self._around.values()))
        limits = [limit for group in groups for limit in group.memory_limits(self._limited)]
        self._limited = frozenset([limit.path for limit in limits])
        if self._own_limit is not None:
            limits.append(MemoryLimit("--memory", self._own_limit, held + self._in_ramdisk))
        return binding_limit(info, limits)

    @property
    def cores(self) -> float:
        """How many cores the build may use, as looked up last."""
        if not self._reads:
            self._look_up()
        return self._cores

    def follow(self, pid: int) -> None:
        """Use the control groups of another process from now on."""
        self._pid = pid

    def watch(self, pids: Iterable[int]) -> None:
        """Also apply the limits of these processes, whose groups contain only the build: theirs may be tighter."""
        around = {pid: self._around.get(pid) or find_cgroups(pid, self._proc) for pid in pids}
        if around != self._around:
            self._around = around
            self._look_up()

    def limit(self, own_limit: int | None) -> None:
        """Allow the build so many bytes of memory from now on, or no limit."""
        self._own_limit = own_limit

    def close(self) -> None:
        """Close the GPU driver."""
        if self._gpu is not None:
            self._gpu.close()

    def _look_up(self) -> None:
        """Look up control groups and cores again; keep what was known if the process is gone."""
        self._limited = None
        cgroups = find_cgroups(self._pid, self._proc)
        if cgroups != Cgroups():
            self._cgroups = cgroups
            self._own_pressure = cgroups.own_pressure(self._pid, self._proc)
            self._own_memory = cgroups.own_memory(self._pid, self._proc)
        groups = {self._pid: self._cgroups, **self._around}
        self._cores = min(cpu_available(pid, group.cpu_quota()) for pid, group in groups.items())


def _load() -> float:
    try:
        return os.getloadavg()[0]
    except OSError:
        return 0.0
