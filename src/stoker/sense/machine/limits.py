"""How many cores and how much memory a process may use at this moment.

Apart from the samples that an engine takes: the start of each build waits until this is loaded.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from stoker.sense.machine.cgroup import MemoryLimit, find_cgroups
from stoker.sense.machine.cpu import cpu_available
from stoker.sense.proc.processes import PROC
from stoker.sense.proc.procfs import read_all

_MEMINFO = re.compile(rb"^(Mem(?:Total|Free|Available)|Swap(?:Total|Free)|Dirty|Writeback):\s+(\d+)", re.MULTILINE)


class MachineLimits(NamedTuple):
    """The cores that a process may use, and the tightest limit of its memory."""

    cores: float
    memory: MemoryLimit


def limits_of(pid: int, proc_root: Path = PROC) -> MachineLimits:
    """Return what process `pid` may use now."""
    groups = find_cgroups(pid, proc_root)
    memory = binding_limit(read_meminfo(proc_root), groups.memory_limits())
    return MachineLimits(cpu_available(pid, groups.cpu_quota()), memory)


def read_meminfo(proc_root: Path = PROC) -> dict[str, int]:
    """Return memory and swap of /proc/meminfo in bytes, {} if unreadable. The contents of tmpfs are not available."""
    rows = _MEMINFO.findall(read_all(f"{proc_root}/meminfo", 65536) or b"")
    return {name.decode(): int(kib) * 1024 for name, kib in rows}


def binding_limit(meminfo: dict[str, int], limits: list[MemoryLimit]) -> MemoryLimit:
    """Return the limit with the least left, of the machine and all cgroups: it will be hit first.

    Dirty file pages are not available, whatever MemAvailable says.
    """
    total = meminfo.get("MemTotal", 0)
    unwritten = meminfo.get("Dirty", 0) + meminfo.get("Writeback", 0)
    available = max(0, meminfo.get("MemAvailable", meminfo.get("MemFree", 0)) - unwritten)
    machine = MemoryLimit("machine", total, max(0, total - available))
    candidates = [machine] if total else []
    candidates += [limit for limit in limits if not total or limit.limit < total]
    return min(candidates, key=lambda limit: limit.available, default=machine)
