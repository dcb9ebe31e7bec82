"""What each GPU architecture costs in a recorded build: compile time and device code, and so what leaving it out saves.

Pure. Time is known where nvcc wrote its own traces, bytes where the build was verified.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from stoker.model.state import BuildState

_NUMBER = re.compile(r"(\d{2,3}[af]?)$")


@dataclass(frozen=True, slots=True)
class ArchCost:
    """One architecture (`80`, `90a`): compilers' seconds, and bytes of device code; None where that is not known."""

    arch: str
    seconds: float | None
    size: int | None


def arch_costs(state: BuildState, seconds: Mapping[str, float]) -> list[ArchCost]:
    """Return the cost of each architecture, in their order; `seconds` are those of compilers (time_traces.py)."""
    sizes: dict[str, int] = {}
    for file in state.verification.files if state.verification is not None else ():
        for held in file.archs:
            match = _NUMBER.search(held.arch)
            arch = match[1] if match else held.arch
            sizes[arch] = sizes.get(arch, 0) + held.bytes
    names = sorted({*sizes, *seconds}, key=lambda arch: (len(arch.rstrip("af")), arch))
    return [ArchCost(arch, seconds.get(arch), sizes.get(arch)) for arch in names]
