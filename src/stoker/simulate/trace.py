"""Reads and writes traces: what every job of a build really took, as JSON lines. Decides nothing.

One job per line: `output`, `tool`; `wall_s` and `cpu_s`, its seconds; `peak_mib`, the largest memory of its process
tree; `samples`, a list of `[seconds since its start, MiB, innermost process]`; `deps` (optional), the outputs that it
waits for. Jobs are in the order in which ninja would start them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from stoker.decide.memory.curves import Point, simplified
from stoker.model.codec import real

MIB = 2**20

MAX_LINE = 4 * 2**20
"""Characters per line: four samples a second for ten hours. A longer line is not a trace, and may never end."""

TRUTH_POINTS = 64
"""Points kept of a recorded curve: four times as many as the policy may know, at a fraction of the samples' cost."""


class TraceError(ValueError):
    """A trace cannot be read; the message names the line and what is wrong with it."""


@dataclass(frozen=True, slots=True)
class TraceJob:
    """One job as it really behaves. `points` are bytes over CPU seconds; it keeps `width` cores busy while it runs."""

    output: str
    tool: str
    points: tuple[Point, ...]
    width: float = 1.0
    deps: tuple[str, ...] = ()
    expected: tuple[float, float] | None = None
    """The bytes and the CPU seconds that stoker expected of it in the recorded build."""

    @property
    def cpu(self) -> float:
        """CPU seconds of the whole job."""
        return self.points[-1].age

    @property
    def seconds(self) -> float:
        """Seconds that it takes on its own cores."""
        return self.cpu / self.width

    @property
    def peak(self) -> float:
        """The largest size in bytes."""
        return max(p.size for p in self.points)

    @property
    def memory_time(self) -> float:
        """Bytes times seconds, over its whole life."""
        return sum((b.age - a.age) * (a.size + b.size) / 2 for a, b in pairwise(self.points)) / self.width


def read(path: Path) -> tuple[TraceJob, ...]:
    """Return all jobs of a trace file; raises TraceError, or OSError if the file cannot be opened."""
    with path.open(encoding="utf-8", errors="replace") as file:
        jobs = tuple(_parse(iter(lambda: file.readline(MAX_LINE), ""), path))
    if not jobs:
        raise TraceError(f"{path} holds no job; a trace has one JSON object a line")
    _check(jobs, path)
    return jobs


def write(jobs: Iterable[TraceJob], path: Path) -> int:
    """Write a trace; return the number of its jobs."""
    count = 0
    with path.open("w", encoding="utf-8") as out:
        for line in lines(jobs):
            out.write(line)
            count += 1
    return count


def lines(jobs: Iterable[TraceJob]) -> Iterator[str]:
    """Yield the lines of a trace."""
    for job in jobs:
        yield json.dumps(_encode(job), separators=(",", ":")) + "\n"


def _parse(lines: Iterable[str], path: Path) -> Iterator[TraceJob]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        if len(line) >= MAX_LINE:
            raise TraceError(f"{path}, line {number}: longer than any trace has; one JSON object a line is wanted")
        try:
            yield _decode(json.loads(line))
        except (KeyError, TypeError, ValueError, IndexError, RecursionError) as err:
            what = f"no {err}" if isinstance(err, KeyError) else str(err)
            raise TraceError(f"{path}, line {number}: {what}; a job has output, tool, wall_s, cpu_s, samples") from err


def _decode(data: dict[str, Any]) -> TraceJob:
    wall, cpu = _number(data["wall_s"]), _number(data["cpu_s"])
    if wall <= 0 or cpu <= 0:
        raise ValueError("wall_s and cpu_s are more than 0")
    samples = [(_number(s[0]), _number(s[1]) * MIB, str(s[2]) if len(s) > 2 else "") for s in data.get("samples", ())]
    peak = _number(data.get("peak_mib", 0)) * MIB
    samples = samples or [(0.0, peak, "")]
    seen = max(size for _, size, _ in samples)
    grow = peak / seen if peak > seen > 0 else 1.0
    # Recorded next to other jobs, wall time is longer than CPU time; on its own core the job takes its CPU time.
    points = [Point(max(0.0, t) * cpu / wall, size * grow, phase) for t, size, phase in samples]
    if points[0].age > 0:
        points.insert(0, points[0]._replace(age=0.0))
    if points[-1].age < cpu:
        points.append(points[-1]._replace(age=cpu))
    if any(a.age > b.age for a, b in pairwise(points)):
        raise ValueError("samples are in the order of time and end with wall_s")
    deps = data.get("deps", ())
    width = max(1.0, cpu / wall)
    return TraceJob(
        str(data["output"]),
        str(data.get("tool", "other")),
        simplified(points, TRUTH_POINTS),
        width,
        tuple(map(str, deps)),
    )


def _number(value: object) -> float:
    number = real(value)
    if number is None:
        raise ValueError(f"{str(value)[:24]!r} is no time and no size")
    return number


def _encode(job: TraceJob) -> dict[str, Any]:
    data: dict[str, Any] = {
        "output": job.output,
        "tool": job.tool,
        "wall_s": round(job.seconds, 3),
        "cpu_s": round(job.cpu, 3),
        "peak_mib": round(job.peak / MIB, 1),
        "samples": [[round(p.age / job.width, 3), round(p.size / MIB, 1), p.phase] for p in job.points],
    }
    if job.deps:
        data["deps"] = list(job.deps)
    return data


def _check(jobs: tuple[TraceJob, ...], path: Path) -> None:
    """Check that an earlier job makes every dependency, which also rules out cycles."""
    made: set[str] = set()
    for number, job in enumerate(jobs, 1):
        missing = next((d for d in job.deps if d not in made), None)
        if missing is not None:
            raise TraceError(f"{path}, job {number}: {job.output} depends on {missing}, which no earlier job makes")
        made.add(job.output)
