"""Compilers' own traces within a build's: clang's -ftime-trace and nvcc's -fdevice-time-trace. Pure; reads no file.

clang says in `beginningOfTime` when its trace begins; nvcc says nothing of the kind, so its trace ends with its job.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stoker.model.codec import real
from stoker.model.text import clean
from stoker.report.chrome import FIRST_COMPILER, TraceEvent, micros, process
from stoker.report.job_records import JobRecord
from stoker.report.phases import together
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

FOR_ALL = ("cudafe++", "gcc (compiling)", "gcc (preprocessing 4)")
"""Processes of nvcc that run once for all architectures, though it names one at some of them."""

MAX_ARCHS = 100

Lane = tuple[float, float]
"""A process and a thread, as the compiler numbers them."""

_ARCH = re.compile(r"\[(?:compute|sm|lto)_(\d{2,3}[af]?)\]")


@dataclass(frozen=True, slots=True)
class TimeTrace:
    """What a compiler wrote about one job: its events, and when they begin (Unix time), None where it does not say.

    `archs` is the GPU architecture for which nvcc worked in a lane, as far as leaving it out would save that.
    """

    job: JobRecord
    events: tuple[TraceEvent, ...]
    begins: float | None
    archs: Mapping[Lane, str] = field(default_factory=dict)


def time_trace(job: JobRecord, data: object) -> TimeTrace | None:
    """Return a compiler's trace from its decoded JSON; None for what is none. Events of no use are left out."""
    if not isinstance(data, Mapping) or not isinstance(data.get("traceEvents"), list):
        return None
    raw = [e for e in data["traceEvents"][:MAX_EVENTS] if isinstance(e, Mapping)]
    events = tuple(e for e in map(_event, raw) if e is not None)
    begins = real(data.get("beginningOfTime"))
    return TimeTrace(job, events, begins / 1e6 if begins else None, _archs(raw))


def _archs(raw: Sequence[Mapping[str, Any]]) -> dict[Lane, str]:
    """Return what nvcc worked for, from the names of its lanes: `k.cu [compute_80]` of a process `cicc`."""
    names = {(e.get("name"), _lane(e)): _args(e).get("name") for e in raw if e.get("ph") == "M"}
    once = {lane[0] for (kind, lane), name in names.items() if kind == "process_name" and name in FOR_ALL}
    found = {}
    for (kind, lane), name in names.items():
        match = _ARCH.search(str(name)) if kind == "thread_name" and lane[0] not in once else None
        if match is not None:
            found[lane] = match[1]
    return found


def _args(e: Mapping[str, Any]) -> Mapping[str, Any]:
    args = e.get("args")
    return args if isinstance(args, Mapping) else {}


def _lane(e: Mapping[str, Any]) -> Lane:
    return real(e.get("pid")) or 0, real(e.get("tid")) or 0


def arch_seconds(traces: Iterable[TimeTrace]) -> dict[str, float]:
    """Return for how many seconds compilers worked for each GPU architecture (`80`, `90a`), and for it alone."""
    seconds: dict[str, float] = {}
    for trace in traces:
        for lane, arch in trace.archs.items():
            spans = ((e["ts"], e["ts"] + e["dur"]) for e in trace.events if e["lane"] == lane)
            if arch in seconds or len(seconds) < MAX_ARCHS:
                seconds[arch] = seconds.get(arch, 0.0) + together(spans) / 1e6
    return seconds


def _event(data: Mapping[str, Any]) -> TraceEvent | None:
    if data.get("ph") != "X":
        return None
    ts, dur = real(data.get("ts")), real(data.get("dur"))
    name = clean(str(data.get("name", "")))
    if ts is None or dur is None or ts < 0 or dur < LEAST_MICROS or name.startswith("Total "):
        return None
    detail = clean(str(_args(data).get("detail", "")))
    return {"name": name, "ts": ts, "dur": dur, "lane": _lane(data), "detail": detail}


def merged(build: RecordedBuild, traces: Iterable[TimeTrace]) -> Iterator[TraceEvent]:
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


def templates(traces: Iterable[TimeTrace]) -> list[tuple[str, float, int]]:
    """Return the templates that took most time to instantiate: name, seconds in all, how often. Longest first.

    A template's time holds that of those which it instantiates in turn.
    """
    seconds: dict[str, float] = {}
    count: Counter[str] = Counter()
    for trace in traces:
        for e in trace.events:
            name = _template(e)
            if name and (name in seconds or len(seconds) < MAX_TEMPLATES):
                seconds[name] = seconds.get(name, 0.0) + e["dur"] / 1e6
                count[name] += 1
    return [(name, seconds[name], count[name]) for name in sorted(seconds, key=lambda n: seconds[n], reverse=True)]


def _template(event: TraceEvent) -> str:
    for word in TEMPLATES:
        if event["name"].startswith(word):
            return str(event["detail"] or event["name"].removeprefix(word).strip())
    return ""
