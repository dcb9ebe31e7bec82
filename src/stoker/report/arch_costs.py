"""What each GPU architecture costs in a recorded build: compile time and device code, and so what leaving it out saves.

Pure. CPU time is what was seen of nvcc's passes while they ran, time by the clock what nvcc wrote in its own traces;
bytes are known where the build was verified.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from stoker.model.units import format_bytes, format_duration
from stoker.report.recorded import RecordedBuild

MAX_ARCHS = 100

LEAST_SEEN = 2.0
"""CPU seconds of a job and architecture, on average, below which what was seen once a second says little."""

LEAST_SHARE = 0.5
"""Share of the CUDA jobs in which passes must have been seen."""

TRACED = "By the clock: nvcc's own traces (device_time), which are longer on a busy machine."
SAMPLED = (
    "CPU time: that of cicc and ptxas, seen once a second in {seen} of {jobs} CUDA jobs; preprocessing is left out, "
    "and a pass shorter than a second may be missed or counted with the one before."
)
TOO_SHORT = (
    "CPU time: the passes of nvcc were too short to be seen often enough once a second; device_time: true in a profile "
    "measures them by the clock."
)

_NUMBER = re.compile(r"(\d{2,3}[af]?)$")
_ARCH = re.compile(r"\d{2,3}[af]?")


@dataclass(frozen=True, slots=True)
class ArchCost:
    """One architecture (`80`, `90a`): the CPU seconds of nvcc's passes, the seconds by the clock in its own traces, and
    bytes of device code; None where that is not known."""

    arch: str
    cpu: float | None
    clock: float | None
    size: int | None


@dataclass(frozen=True, slots=True)
class ArchCosts:
    """All architectures of a build, in their order, and how that was measured. `cpu` is the CPU time of all jobs."""

    costs: tuple[ArchCost, ...] = ()
    how: str = ""
    cpu: float = 0.0


def arch_costs(build: RecordedBuild, traced: Mapping[str, float]) -> ArchCosts:
    """Return the cost of each architecture; `traced` are seconds by nvcc's own traces (time_traces.py).

    Where times are known, code for others came with a library, and leaving that out is not up to the build.
    """
    sizes: dict[str, int] = {}
    report = build.state.verification
    for file in report.files if report is not None else ():
        for held in file.archs:
            match = _NUMBER.search(held.arch)
            arch = match[1] if match else held.arch
            sizes[arch] = sizes.get(arch, 0) + held.bytes
    seen, how = _seen(build)
    if traced:
        how = f"{TRACED} {how}" if seen else TRACED
    names = sorted({*seen, *traced} or sizes, key=lambda arch: (len(arch.rstrip("af")), arch))[:MAX_ARCHS]
    costs = tuple(ArchCost(arch, seen.get(arch), traced.get(arch), sizes.get(arch)) for arch in names)
    return ArchCosts(costs, how, sum(job.cpu or 0.0 for job in build.jobs))


def _seen(build: RecordedBuild) -> tuple[dict[str, float], str]:
    """Return what was seen of nvcc's passes, and how well; nothing where that is too little to go by."""
    jobs = [job for job in build.jobs if job.archs or (job.tool == "nvcc" and job.began is not None)]
    having = [job for job in jobs if job.archs]
    seconds: dict[str, float] = {}
    parts = 0
    for job in having:
        for arch, cpu in job.archs:
            if _ARCH.fullmatch(arch) and (arch in seconds or len(seconds) < MAX_ARCHS):
                seconds[arch] = seconds.get(arch, 0.0) + max(0.0, cpu)
                parts += 1
    if not jobs:
        return {}, ""
    if len(having) < LEAST_SHARE * len(jobs) or sum(seconds.values()) < LEAST_SEEN * parts:
        return {}, TOO_SHORT
    return seconds, SAMPLED.format(seen=len(having), jobs=len(jobs))


def cost_rows(found: ArchCosts) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return headings and rows of a table: what leaving each architecture out would save, as far as that is known."""
    head = ("leaving out", "saves CPU time", "of all jobs'", "by the clock", "device code")
    rows = [
        (
            cost.arch,
            "" if cost.cpu is None else format_duration(cost.cpu),
            "" if cost.cpu is None or found.cpu <= 0 else f"{100 * cost.cpu / found.cpu:.0f} %",
            "" if cost.clock is None else format_duration(cost.clock),
            "" if cost.size is None else format_bytes(cost.size),
        )
        for cost in found.costs
    ]
    known = [n for n in range(len(head)) if not n or any(row[n] for row in rows)]
    return tuple(head[n] for n in known), tuple(tuple(row[n] for n in known) for row in rows)
