"""Compilers' own traces within a build's: clang's -ftime-trace and nvcc's -fdevice-time-trace. Pure; reads no file.

clang says in `beginningOfTime` when its trace begins; nvcc says nothing of the kind, so its trace ends with its job.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from stoker.model.codec import real
from stoker.model.text import clean
from stoker.report.chrome import FIRST_COMPILER, TraceEvent, micros, process
from stoker.report.job_records import JobRecord
from stoker.report.recorded import RecordedBuild

LEAST_MICROS = 2000
"""Microseconds of an event that is kept: a compiler writes thousands of shorter ones for each file."""

MAX_EVENTS = 300_000
"""Events of all compilers together: some 60 MB, which Perfetto still opens."""

MAX_TEMPLATES = 20_000
"""Different templates that are counted."""

TEMPLATES = (
    "InstantiateFunction",
    "InstantiateClass",
    "Instantiating Template Function",
    "Instantiating Template Class",
)
"""Names, or their beginnings, of events about one template: clang's, then nvcc's."""


@dataclass(frozen=True, slots=True)
class TimeTrace:
    """What a compiler wrote about one job: its events, and when they begin (Unix time), None where it does not say."""

    job: JobRecord
    events: tuple[TraceEvent, ...]
    begins: float | None


def time_trace(job: JobRecord, data: object) -> TimeTrace | None:
    """Return a compiler's trace from its decoded JSON; None for what is none. Events of no use are left out."""
    if not isinstance(data, Mapping) or not isinstance(data.get("traceEvents"), list):
        return None
    events = tuple(e for e in map(_event, data["traceEvents"][:MAX_EVENTS]) if e is not None)
    begins = real(data.get("beginningOfTime"))
    return TimeTrace(job, events, begins / 1e6 if begins else None)


def _event(data: object) -> TraceEvent | None:
    if not isinstance(data, Mapping) or data.get("ph") != "X":
        return None
    ts, dur = real(data.get("ts")), real(data.get("dur"))
    name = clean(str(data.get("name", "")))
    if ts is None or dur is None or ts < 0 or dur < LEAST_MICROS or name.startswith("Total "):
        return None
    args = data.get("args")
    detail = clean(str(args.get("detail", ""))) if isinstance(args, Mapping) else ""
    pid, tid = (real(data.get(key)) or 0 for key in ("pid", "tid"))
    return {"name": name, "ts": ts, "dur": dur, "lane": (pid, tid), "detail": detail}


def merged(build: RecordedBuild, traces: Iterator[TimeTrace]) -> Iterator[TraceEvent]:
    """Yield their events as a build's trace has them: a process for each, the events no longer than its job."""
    count = 0
    for number, trace in enumerate(traces):
        pid = FIRST_COMPILER + number
        start = micros(build, trace.job.began or trace.job.born)
        end = micros(build, trace.job.ended)
        first = min((e["ts"] for e in trace.events), default=0)
        last = max((e["ts"] + e["dur"] for e in trace.events), default=0)
        shift = (trace.begins - build.started) * 1e6 if trace.begins is not None else max(start - first, end - last)
        lanes = {lane: tid for tid, lane in enumerate(sorted({e["lane"] for e in trace.events}), 1)}
        yield from process(pid, clean(trace.job.output), pid)
        for e in trace.events:
            ts = round(max(start, e["ts"] + shift))
            dur = round(min(end, e["ts"] + shift + e["dur"])) - ts
            if dur <= 0 or count >= MAX_EVENTS:
                continue
            count += 1
            place = {"ph": "X", "pid": pid, "tid": lanes[e["lane"]], "ts": ts, "dur": dur}
            yield {"name": e["name"], "cat": "compiler", **place, "args": {"detail": e["detail"]}}


def templates(traces: Iterator[TimeTrace]) -> list[tuple[str, float, int]]:
    """Return the templates that took most time to instantiate: name, seconds in all, how often. Longest first.

    A template's time holds that of those which it instantiates in turn.
    """
    seconds: Counter[str] = Counter()
    count: Counter[str] = Counter()
    for trace in traces:
        for e in trace.events:
            name = _template(e)
            if name and (name in seconds or len(seconds) < MAX_TEMPLATES):
                seconds[name] += e["dur"] / 1e6
                count[name] += 1
    return [(name, total, count[name]) for name, total in seconds.most_common()]


def _template(event: TraceEvent) -> str:
    for word in TEMPLATES:
        if event["name"].startswith(word):
            return str(event["detail"] or event["name"].removeprefix(word).strip())
    return ""
