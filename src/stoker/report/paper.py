"""Turns a recorded build into a simulated one: its jobs in the form of `simulate`, and the machine that they ran on.
Pure.

Assumes that a job takes what it took: CPU seconds, memory over them, what it waits for; stoker expects of it what it
expected then. Everything else that kept the build from the cores, such as other work, is one number, the average over
the build. A model, and no more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from stoker.decide.memory.curves import Point, simplified
from stoker.report.job_records import JobRecord
from stoker.report.phases import together
from stoker.report.recorded import RecordedBuild, SchedulerRecord
from stoker.simulate.trace import TRUTH_POINTS, TraceJob

LEAST_CPU = 0.005
"""CPU seconds of a job at least: a clock tick is twice that, and a job without any would not be one."""

MAX_PAIRS = 20_000
"""Pairs of jobs of two groups that wait for each other one by one; above, all of a group is waited for at once."""

MOST_OTHERS = 1000.0
"""Cores' worth of other work, at most."""


class NothingRanError(ValueError):
    """No job of this build can be simulated; the message says why."""


@dataclass(frozen=True, slots=True)
class PaperBuild:
    """A build to simulate, and the machine as it was. `measured` is for how many seconds any job stood or ran in the
    recorded build, `outside` the rest of its time; `others` the cores' worth of other work beside it. `level` is the
    level that a person set for most of the time, None where it was automatic."""

    jobs: tuple[TraceJob, ...]
    cores: int
    memory: float
    others: float
    level: int | None
    measured: float
    outside: float


def on_paper(build: RecordedBuild) -> PaperBuild:
    """Return the build on paper. Raises NothingRanError."""
    kept = _kept(build.jobs)
    if not kept:
        raise NothingRanError(f"{build.state.id} has no job that ran; there is nothing to put on paper")
    share = sum(j.cpu or 0.0 for j in kept) / max(LEAST_CPU, sum(j.seconds for j in kept))
    traced = {id(job): _traced(job, name, share) for name, job in _named(kept)}
    measured = together((j.born, j.ended) for j in kept)
    cores = _cores(build)
    return PaperBuild(
        tuple(_with_deps(build, kept, traced)),
        cores,
        max(1.0, build.budget - build.others),
        _others(build, cores, sum(job.cpu for job in traced.values())),
        _level(build),
        measured,
        max(0.0, build.seconds - measured),
    )


def _kept(jobs: Sequence[JobRecord]) -> list[JobRecord]:
    """Return the jobs that are work to do: without those that were killed and built again."""
    made = {job.output for job in jobs if job.fate == "ok"}
    return [
        job for job in jobs if job.began is not None and not (job.fate in ("killed", "unknown") and job.output in made)
    ]


def _named(jobs: Sequence[JobRecord]) -> Iterator[tuple[str, JobRecord]]:
    """Each job with a name of its own: two schedulers may make files of one name."""
    seen: dict[str, int] = {}
    for job in jobs:
        seen[job.output] = count = seen.get(job.output, 0) + 1
        yield (job.output if count == 1 else f"{job.output} ({count})"), job


def _traced(job: JobRecord, name: str, share: float) -> TraceJob:
    """What the job really took. One that was too short to be measured took what time it had, at the build's pace."""
    seconds = max(LEAST_CPU, job.seconds)
    cpu = max(LEAST_CPU, job.cpu or 0.0, 0.0 if job.cpu and job.points else seconds * min(1.0, share))
    last = max((p.cpu for p in job.points), default=0.0)
    scale = cpu / last if last > 0 else 0.0
    points = [Point(min(cpu, p.cpu * scale), float(p.rss), p.phase) for p in job.points]
    if not points or last <= 0:
        points = [Point(0.0, float(job.peak)), Point(cpu, float(job.peak))]
    grow = job.peak / max(1.0, max(p.size for p in points)) if job.peak else 1.0
    points = [p._replace(size=p.size * grow) for p in points]
    if points[0].age > 0:  # nothing is known before the first sample: memory rises from nothing, as compilers' does
        points.insert(0, Point(0.0, 0.0, points[0].phase))
    if points[-1].age < cpu:
        points.append(points[-1]._replace(age=cpu))
    expected = (float(job.expected), job.lasts or cpu) if job.expected else None
    return TraceJob(name, job.tool, simplified(points, TRUTH_POINTS), max(1.0, cpu / seconds), expected=expected)


def _with_deps(build: RecordedBuild, jobs: Sequence[JobRecord], traced: dict[int, TraceJob]) -> Iterator[TraceJob]:
    """Yield the jobs with what they wait for: by the graph of their scheduler, and all of a scheduler that ran before.

    Those come first that others wait for.
    """
    members: dict[tuple[int, int | None], list[TraceJob]] = defaultdict(list)
    for job in jobs:
        members[job.sid, job.group].append(traced[id(job)])
    before: list[str] = []
    for batch in _batches(jobs):
        batch_ends: list[TraceJob] = []
        for sid in batch:
            scheduler = next((s for s in build.schedulers if s.sid == sid), None)
            batch_ends += _of_scheduler(scheduler, sid, members, before)
        if batch_ends:
            yield from batch_ends
            end = TraceJob(f"end of scheduler {batch[-1]}", "other", _INSTANT, 1.0, tuple(j.output for j in batch_ends))
            yield end
            before = [end.output]


_INSTANT = (Point(0.0, 0.0), Point(LEAST_CPU, 0.0))


def _batches(jobs: Sequence[JobRecord]) -> list[list[int]]:
    """Return schedulers by number, those together that ran at the same time, one batch after the other."""
    spans: dict[int, tuple[float, float]] = {}
    for job in jobs:
        start, end = spans.get(job.sid, (job.born, job.ended))
        spans[job.sid] = (min(start, job.born), max(end, job.ended))
    batches: list[list[int]] = []
    reached = float("-inf")
    for sid, (start, end) in sorted(spans.items(), key=lambda item: item[1]):
        if start >= reached or not batches:
            batches.append([])
        batches[-1].append(sid)
        reached = max(reached, end)
    return batches


def _of_scheduler(
    scheduler: SchedulerRecord | None,
    sid: int,
    members: dict[tuple[int, int | None], list[TraceJob]],
    before: Sequence[str],
) -> list[TraceJob]:
    """The jobs of one scheduler; without a graph, nothing within it waits."""
    found = [replace(job, deps=tuple(before)) for job in members.get((sid, None), ())]
    deps = scheduler.deps if scheduler is not None else ()
    waited_for: dict[int, tuple[str, ...]] = {}
    groups = max([len(deps), *(g + 1 for s, g in members if s == sid and g is not None)], default=0)
    for group in range(groups):
        needs = [n for d in (deps[group] if group < len(deps) else ()) if d < group for n in waited_for.get(d, ())]
        mine = members.get((sid, group), [])
        if len(needs) * max(1, len(mine)) > MAX_PAIRS:
            joint = TraceJob(f"before group {group} of {sid}", "other", _INSTANT, 1.0, (*before, *needs))
            found.append(joint)
            needs = [joint.output]
        found += [replace(job, deps=(*before, *needs)) for job in mine]
        waited_for[group] = tuple(job.output for job in mine) or tuple(needs)
    return found


def _cores(build: RecordedBuild) -> int:
    machine = build.state.machine
    return max(1, round(machine.cpu_available) if machine is not None else build.state.cores)


def _others(build: RecordedBuild, cores: int, cpu: float) -> float:
    """Return the other work, in cores' worth, beside which jobs use so many CPU seconds in the time that they had."""
    spans = [(s.running, s.seconds) for s in build.speeds if s.running > 0]
    if not spans or cpu <= 0:
        return 0.0

    def used(others: float) -> float:
        return sum(seconds * n * min(1.0, cores / (n + others)) for n, seconds in spans)

    low, high = 0.0, MOST_OTHERS
    if used(low) <= cpu:
        return 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if used(middle) > cpu else (low, middle)
    return low


def _level(build: RecordedBuild) -> int | None:
    """Return the level that held longest."""
    held: dict[int | None, float] = defaultdict(float)
    for level, until in zip(build.levels, [*(v.time for v in build.levels[1:]), build.ended], strict=False):
        held[level.target if level.mode == "manual" else None] += until - level.time
    return max(held, key=lambda level: held[level]) if held else None
