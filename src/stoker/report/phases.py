"""Where a recorded build's time went: by kind of work and by target, and what its jobs waited for. Pure."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stoker.model.tool import COMPILERS
from stoker.report.job_records import JobRecord
from stoker.report.recorded import RecordedBuild
from stoker.report.wait_causes import kind_of_cause

MAX_TARGETS = 40
"""Targets that are listed one by one, those with most CPU time; the others are one."""

LEAST_ACTIVITY = 2.0
"""Seconds of what ran without a scheduler: less is the moment in which the build begins."""

_CMAKE_TARGET = re.compile(r"CMakeFiles/([^/]{1,200})\.dir/")


@dataclass(frozen=True, slots=True)
class Phase:
    """A kind of work, or that of one target. `seconds` is for how long any of it ran, `cpu` CPU seconds, `peak` the
    memory of its largest job in bytes."""

    name: str
    jobs: int
    seconds: float
    cpu: float
    peak: int


def phases(build: RecordedBuild) -> list[Phase]:
    """Return what the build did, in the order in which it began."""
    kinds: dict[str, list[JobRecord]] = defaultdict(list)
    for job in build.jobs:
        if job.began is not None:
            kinds[_KINDS[job.tool]].append(job)
    found = [(min(j.began or j.born for j in jobs), _phase(name, jobs)) for name, jobs in kinds.items()]
    alone: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for one in build.activities:
        if one.ended - one.started < LEAST_ACTIVITY:
            continue
        alone[f"no scheduler: {one.name}"].append((one.started, one.ended))
    found += [(spans[0][0], Phase(name, 0, together(spans), 0.0, 0)) for name, spans in alone.items()]
    return [phase for _, phase in sorted(found, key=lambda pair: pair[0])]


def targets(build: RecordedBuild) -> list[Phase]:
    """Return the compiles by target, those with most CPU time first."""
    by_target: dict[str, list[JobRecord]] = defaultdict(list)
    for job in build.jobs:
        if job.began is not None and job.tool in COMPILERS:
            by_target[target_of(job.output)].append(job)
    found = sorted((_phase(name, jobs) for name, jobs in by_target.items()), key=lambda p: p.cpu, reverse=True)
    if len(found) <= MAX_TARGETS:
        return found
    rest = [job for phase in found[MAX_TARGETS:] for job in by_target[phase.name]]
    return [*found[:MAX_TARGETS], _phase(f"{len(found) - MAX_TARGETS} others", rest)]


def target_of(output: str) -> str:
    """Return what a compile is for: CMake's target, else the folder of its output."""
    match = _CMAKE_TARGET.search(output)
    return match[1] if match else output.rpartition("/")[0] or "."


def waits(jobs: Iterable[JobRecord]) -> list[tuple[str, float, int]]:
    """Return what jobs waited for: the cause as `kind_of_cause` gives it, seconds of all jobs together, how many jobs:
    each once, as at the end of the build."""
    seconds: dict[str, float] = defaultdict(float)
    count: Counter[str] = Counter()
    for job in jobs:
        for cause, span in job.waited:
            seconds[kind_of_cause(cause)] += span
        count.update({kind_of_cause(cause) for cause, _ in job.waited})
    longest = sorted(seconds, key=lambda cause: seconds[cause], reverse=True)
    return [(cause, seconds[cause], count[cause]) for cause in longest]


def together(spans: Iterable[tuple[float, float]]) -> float:
    """Return for how many seconds any of these was."""
    total, reached = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total


def _phase(name: str, jobs: Sequence[JobRecord]) -> Phase:
    spans = [(job.began or job.born, job.ended) for job in jobs]
    cpu = sum(job.cpu or 0.0 for job in jobs)
    return Phase(name, len(jobs), together(spans), cpu, max(job.peak for job in jobs))


_KINDS = {
    "cxx": "compile C and C++",
    "nvcc": "compile CUDA",
    "link": "link",
    "archive": "archive",
    "other": "generate code, install and others",
}
