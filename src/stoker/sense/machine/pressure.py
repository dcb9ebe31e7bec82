"""Pressure stall information of the build's own cgroup, or of the machine.

Unaware of the consequences.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from stoker.model.samples import Pressure
from stoker.sense.proc.processes import PROC
from stoker.sense.proc.procfs import read_once


def read_pressure(
    resource: str, cgroup: Path | None = None, proc_root: Path = PROC, *, own: bool = False
) -> Pressure | None:
    """Return PSI of "cpu", "memory" or "io": that of `cgroup` if it has any, otherwise the machine's; None without PSI.

    `own`: only the build lives in that group.
    """
    if cgroup is not None:
        pressure = parse_pressure(read_once(f"{cgroup}/{resource}.pressure"))
        if pressure is not None:
            return replace(pressure, own=own)
    return parse_pressure(read_once(f"{proc_root}/pressure/{resource}"))


def parse_pressure(data: bytes | None) -> Pressure | None:
    """Return the 10-second averages of a pressure file; "full" is 0 where the kernel does not report it (CPU)."""
    averages: dict[bytes, float] = {}
    for line in (data or b"").splitlines():
        kind, _, rest = line.partition(b" ")
        try:
            averages[kind] = float(rest.split()[0].removeprefix(b"avg10="))
        except (ValueError, IndexError):
            return None
    if b"some" not in averages:
        return None
    return Pressure(averages[b"some"], averages.get(b"full", 0.0))
