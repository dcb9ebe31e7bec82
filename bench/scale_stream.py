"""Generates the records of a synthetic build, as an engine would write them: 30 jobs at once, one sample per second.

Uses constant memory, so that the consumer can be measured. Knows nothing of journals.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from stoker.model import events as ev
from stoker.model.samples import JobSample, MachineSample
from stoker.model.tool import Tool

GIB = 2**30
AT_ONCE = 30
MEAN_SECONDS = (2.2, 0.7)
"""Mean and deviation of the logarithm of a job's seconds: half take less than 9 s."""

START = 1_700_000_000.0
TOOLS: tuple[Tool, ...] = ("cxx", "cxx", "cxx", "cxx", "nvcc", "other")


@dataclass(slots=True)
class _Job:
    jid: int
    output: str
    tool: Tool
    ends: float
    seconds: float


def looks(jobs: int) -> Iterator[tuple[float, list[ev.Event]]]:
    """Unix time and events of each look at a build with so many jobs, from its start to its end."""
    dice = random.Random(1)
    now, begun, offset = START, 0, 0
    running: list[_Job] = []
    yield now, _begin(jobs)
    while begun < jobs or running:
        events: list[ev.Event] = []
        for job in [j for j in running if j.ends <= now]:
            running.remove(job)
            offset += 90
            events.append(_finished(job, offset, int(dice.uniform(0.2, 2.0) * GIB)))
        while begun < jobs and len(running) < AT_ONCE:
            begun += 1
            job = _next(begun, now, dice)
            running.append(job)
            events += _started(job, now)
        events += _told(running, now, dice, jobs - begun)
        yield now, events
        now += 1.0
    yield now, [ev.SchedulerEnded(1), ev.BuildEnded("done", 0, "")]


def _begin(jobs: int) -> list[ev.Event]:
    command = ("ninja", "-C", "build")
    return [
        ev.BuildStarted("scale", "scale", command, "/src", "/src/output.log", "host", 32, 64 * GIB, "0"),
        ev.EngineStarted(1, adopted=False),
        ev.StepStarted(1, 1, "build", command, 2),
        ev.SchedulerStarted(1, "ninja", 3, "/src/build", "1.13.1", 256),
        ev.SchedulerPlanned(1, jobs, "dry-run"),
    ]


def _next(number: int, now: float, dice: random.Random) -> _Job:
    seconds = max(0.5, dice.lognormvariate(*MEAN_SECONDS))
    folder = f"src/CMakeFiles/library_{number // 60}.dir/module"
    return _Job(number, f"{folder}/unit_{number}.cpp.o", TOOLS[number % len(TOOLS)], now + seconds, round(seconds, 3))


def _started(job: _Job, now: float) -> list[ev.Event]:
    why = f"admit {job.output} (needs ~0.9 GiB, 21.3 GiB stay free)"
    told = [ev.Decided("governor", why, "")] if job.jid % 20 == 0 else []
    return [
        ev.JobStarted(job.jid, 1, 4000 + job.jid % 30000, job.output, job.tool, round(now, 2), "on_deck", GIB),
        *told,
        ev.JobMoved(job.jid, "running", GIB),
    ]


def _finished(job: _Job, offset: int, peak: int) -> ev.Event:
    return ev.JobFinished(job.jid, 1, job.output, job.tool, job.seconds, "ok", peak, job.seconds, offset)


def _told(running: list[_Job], now: float, dice: random.Random, left: int) -> list[ev.Event]:
    """What an engine says once a second, and the time left every five."""
    used = int(dice.uniform(10, 40) * GIB)
    cores = tuple(dice.randrange(101) for _ in range(32))
    machine = MachineSample(95.0, cores, 32.0, 64 * GIB, used, 64 * GIB - used, "machine", load=31.0)
    samples = tuple(JobSample(j.jid, int(dice.uniform(0.1, 2) * GIB), 99.0, "cc1plus") for j in running)
    told: list[ev.Event] = [ev.Sampled(machine, samples, used, 120, int(now - START) * 2**20, "", 0, 30 * GIB, 4 * GIB)]
    if int(now - START) % 5 == 0:
        told.append(ev.Estimated(left / 3.0, left / 3.3, left / 2.7))
    return told
