"""A recorded build in Chrome's trace event format, for Perfetto and Catapult. Pure; unaware of files.

Times are whole microseconds since the build's start. Processes: the build with a lane for each job that ran at once,
the jobs that were too short to be seen, the steps, and one for each compiler's own trace.
Format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from stoker.model.text import clean
from stoker.report.job_records import JobRecord
from stoker.report.lanes import lanes
from stoker.report.recorded import RecordedBuild

TraceEvent = dict[str, Any]

BUILD, SHORT, STEPS, FIRST_COMPILER = 1, 2, 3, 100
"""Numbers of the processes."""

COLOURS = {"failed": "terrible", "killed": "bad", "unknown": "grey", "interrupted": "grey", "running": "grey"}
"""Catapult's names of colours (`ColorScheme`), for jobs that did not end well; others get one by their names."""


def chrome_trace(build: RecordedBuild, compilers: Iterable[TraceEvent] = ()) -> dict[str, Any]:
    """Return the whole trace; `compilers` are events from compilers' own traces (time_traces.py)."""
    events = [*_named(build), *_jobs(build), *_counters(build), *_acts(build), *_steps(build), *compilers]
    return {
        "traceEvents": events,
        "displayTimeUnit": "ms",
        "otherData": {
            "build": clean(build.state.id),
            "command": clean(" ".join(build.state.command)),
            "tool": "stoker",
        },
    }


def micros(build: RecordedBuild, time: float) -> int:
    """Return a Unix time as microseconds since the build's start; what clocks set before it is its start."""
    return max(0, round((min(time, build.ended) - build.started) * 1e6))


def _named(build: RecordedBuild) -> Iterator[TraceEvent]:
    names = {BUILD: f"build {build.state.id}", SHORT: "too short to be seen", STEPS: "steps"}
    for place, (pid, name) in enumerate(names.items()):
        yield from process(pid, clean(name), place)
    for tid, name in enumerate(("steps", "without a scheduler"), 1):
        yield _thread(STEPS, tid, name)


def process(pid: int, name: str, place: int) -> Iterator[TraceEvent]:
    """Yield what names a process and puts it into its place."""
    yield {"name": "process_name", "ph": "M", "pid": pid, "tid": 0, "args": {"name": name}}
    yield {"name": "process_sort_index", "ph": "M", "pid": pid, "tid": 0, "args": {"sort_index": place}}


def _thread(pid: int, tid: int, name: str) -> TraceEvent:
    return {"name": "thread_name", "ph": "M", "pid": pid, "tid": tid, "args": {"name": name}}


def _jobs(build: RecordedBuild) -> Iterator[TraceEvent]:
    for pid, word in ((BUILD, "lane"), (SHORT, "short")):
        jobs = [job for job in build.jobs if job.began is not None and (job.jid is not None) == (pid == BUILD)]
        jobs.sort(key=lambda job: job.began or 0.0)
        spans = [(micros(build, job.began or 0.0), micros(build, job.ended)) for job in jobs]
        places = lanes(spans)
        for lane in range(max(places, default=-1) + 1):
            yield _thread(pid, lane + 1, f"{word} {lane + 1}")
            yield {
                "name": "thread_sort_index",
                "ph": "M",
                "pid": pid,
                "tid": lane + 1,
                "args": {"sort_index": lane + 1},
            }
        for job, (start, end), lane in zip(jobs, spans, places, strict=True):
            yield from _job(build, job, {"pid": pid, "tid": lane + 1}, start, end)
    for job in build.jobs:
        if job.began is None:
            why = {"why": "another job failed while it was on deck" if job.fate == "dropped" else "it never ran"}
            yield _instant(build, f"dropped {clean(job.output)}", "job", job.ended, why)


def _job(build: RecordedBuild, job: JobRecord, place: TraceEvent, start: int, end: int) -> Iterator[TraceEvent]:
    event = {"name": clean(job.output) or "?", "cat": job.tool, "ph": "X", **place, "ts": start, "dur": end - start}
    if job.fate in COLOURS:
        event["cname"] = COLOURS[job.fate]
    yield {**event, "args": _details(job)}
    for frozen, thawed in job.stops:
        a, b = max(start, micros(build, frozen)), min(end, micros(build, thawed))
        if b > a:
            yield {"name": "frozen", "cat": "frozen", "ph": "X", **place, "ts": a, "dur": b - a, "args": {}}


def _details(job: JobRecord) -> dict[str, Any]:
    details: dict[str, Any] = {"outcome": job.fate, "peak_bytes": job.peak, "waited_s": round(job.waiting, 3)}
    if job.cpu is not None:
        details["cpu_s"] = round(job.cpu, 3)
    if job.killed_by:
        details["killed_by"] = job.killed_by
    return details | {f"waited_for_{cause}_s": round(seconds, 3) for cause, seconds in job.waited}


def _counters(build: RecordedBuild) -> Iterator[TraceEvent]:
    for moment in build.moments:
        place = {"ph": "C", "pid": BUILD, "tid": 0, "ts": micros(build, moment.time)}
        mib = {"build": moment.build, "others": max(0, moment.used - moment.build)}
        yield {"name": "memory (MiB)", **place, "args": {k: round(v / 2**20, 1) for k, v in mib.items()}}
        yield {"name": "jobs", **place, "args": {"running": moment.running, "on deck": moment.on_deck}}
        yield {"name": "cores kept busy", **place, "args": {"cores": round(moment.cores, 2)}}


def _acts(build: RecordedBuild) -> Iterator[TraceEvent]:
    for decision in build.decisions:
        why = {"why": clean(decision.why), "who": clean(decision.who)}
        yield _instant(build, clean(decision.what), "decision", decision.time, why)
    for level in build.levels:
        name = f"level {level.mode} {level.target}" + ("" if level.paused == "no" else f", {level.paused} pause")
        yield _instant(build, name, "level", level.time, {"guarded": level.guarded})
    for notice in build.state.notices:
        yield _instant(build, clean(notice.text), "notice", notice.time, {"severity": notice.severity})


def _instant(build: RecordedBuild, name: str, kind: str, time: float, args: dict[str, Any]) -> TraceEvent:
    place = {"pid": BUILD, "tid": 0, "ts": micros(build, time)}
    return {"name": name, "cat": kind, "ph": "i", "s": "p", **place, "args": args}


def _steps(build: RecordedBuild) -> Iterator[TraceEvent]:
    for tid, stretches in enumerate((build.steps, build.activities), 1):
        for one, end in zip(stretches, _ends(build, [s.started for s in stretches]), strict=True):
            start = micros(build, one.started)
            dur = max(0, min(micros(build, one.ended), end) - start)
            place = {"ph": "X", "pid": STEPS, "tid": tid, "ts": start, "dur": dur}
            yield {"name": clean(one.name) or "?", "cat": "step", **place, "args": {"exit_code": one.exit_code}}


def _ends(build: RecordedBuild, starts: Sequence[float]) -> list[int]:
    """The latest end of each stretch: the next one's beginning."""
    return [micros(build, after) for _, after in pairwise((*starts, build.ended))]
