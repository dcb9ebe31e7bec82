"""Charts of a recorded build as SVG: memory against its budget, jobs against their level, and every job in its lane.

Pure. Legible without a script; a browser shows a shape's <title> under the pointer. Bounded for any number of jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from xml.sax.saxutils import escape

from stoker.model.text import clean
from stoker.model.units import clock_step, format_bytes, format_duration
from stoker.report.job_records import JobRecord
from stoker.report.lanes import lanes
from stoker.report.recorded import MachinePoint, RecordedBuild
from stoker.report.svg import COLOURS

WIDTH, LEFT, RIGHT = 1080.0, 64.0, 12.0
HEIGHT, HEAD, FOOT = 240.0, 26.0, 24.0

MAX_LANES = 200
"""Lanes of the Gantt that are drawn: more jobs at once than any screen has lines for."""

LEAST_WIDTH = 0.4
"""Pixels of a job that is drawn by itself; shorter ones that follow each other in a lane are one shape."""

TOOL_COLOURS = {"cxx": COLOURS[0], "nvcc": COLOURS[2], "link": COLOURS[4], "archive": COLOURS[5], "other": COLOURS[6]}
BAD = COLOURS[1]
MOST_PROMISED = 1.2
"""Up to so many times of what was used, and of the budget, promises are drawn."""

STEPS = 6
"""Marks on an axis, about."""

Place = Callable[[float], float]


def memory_chart(build: RecordedBuild) -> str:
    """Memory over time: what the build holds, what counts against the budget, what is promised, and the budget.

    What was used sets the scale, and the budget: a job that runs alone as it fits nowhere, a link at the end of a
    build, may be promised any number of times as much, and the line is cut.
    """
    points = build.moments
    used = max([p.used for p in points] + [min(build.budget, _twice(points))] + [1])
    top = max(used, min(max((p.promised for p in points), default=0), MOST_PROMISED * used))
    series = [
        _area([(p.time, p.used) for p in points], "#8b949e", "in use in all"),
        _area([(p.time, p.build) for p in points], COLOURS[0], "the build"),
        _line([(p.time, p.promised) for p in points], COLOURS[2], "promised"),
        _line([(p.time, p.budget) for p in points if p.budget <= top], COLOURS[1], "budget"),
    ]
    return _chart(build, "Memory", series, top * 1.05, format_bytes)


def _twice(points: Sequence[MachinePoint]) -> int:
    """A budget beyond twice of what was ever used is not drawn: it would make a line of all else."""
    return 2 * max((p.used for p in points), default=0)


def jobs_chart(build: RecordedBuild) -> str:
    """Jobs over time: how many ran, how many were on deck, and the level."""
    points = build.moments
    top = max([max(p.running, p.on_deck, p.level) for p in points] + [1])
    series = [
        _area([(p.time, p.on_deck) for p in points], "#8b949e", "on deck"),
        _area([(p.time, p.running) for p in points], COLOURS[0], "running"),
        _line([(p.time, p.level) for p in points], COLOURS[1], "level"),
        _line([(p.time, p.cores) for p in points], COLOURS[2], "cores kept busy"),
    ]
    return _chart(build, "Jobs", series, top * 1.05, lambda value: f"{value:g}")


Series = tuple[str, str, bool, Sequence[tuple[float, float]]]
"""Name, colour, whether it is filled, and points: Unix time and value."""


def _area(points: Sequence[tuple[float, float]], colour: str, name: str) -> Series:
    return name, colour, True, points


def _line(points: Sequence[tuple[float, float]], colour: str, name: str) -> Series:
    return name, colour, False, points


def _chart(
    build: RecordedBuild, title: str, series: Iterable[Series], top: float, label: Callable[[float], str]
) -> str:
    across, bottom = _across(build), HEIGHT - FOOT

    def up(value: float) -> float:
        return bottom - (bottom - HEAD) * min(1.0, max(0.0, value / top))

    parts = _time_axis(build, HEAD, bottom)
    step = _step(top)
    for n in range(int(top / step) + 1):
        y = up(n * step)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(_text(LEFT - 6, y + 4, label(n * step), anchor="end"))
    x = LEFT
    for name, colour, filled, points in series:
        if not points:
            continue
        parts.append(f'<rect x="{x}" y="6" width="10" height="10" fill="{colour}"/>' + _text(x + 14, 15, name))
        x += 34 + 6.6 * len(name)
        path = _steps([(across(t), up(v)) for t, v in points])
        if filled:
            first, last = across(points[0][0]), across(points[-1][0])
            shape = f"M{first:.1f},{bottom:.1f}L{path}L{last:.1f},{bottom:.1f}Z"
            parts.append(f'<path d="{shape}" fill="{colour}" fill-opacity=".45" stroke="{colour}" stroke-width=".5"/>')
        else:
            parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
    return _svg(title, HEIGHT, parts)


def _steps(places: Sequence[tuple[float, float]]) -> str:
    return "L".join(f"{x:.1f},{y:.1f}" for x, y in places)


def gantt(build: RecordedBuild, critical: Iterable[JobRecord]) -> str:
    """Every job that was seen to run, in its lane, the critical path framed."""
    on_path = {id(job) for job in critical}
    jobs = sorted((job for job in build.jobs if job.began is not None and job.jid), key=lambda job: job.began or 0.0)
    places = lanes((job.began or 0.0, job.ended) for job in jobs)
    count = min(MAX_LANES, max(places, default=0) + 1)
    row = 18.0 if count <= 12 else max(4.0, 320.0 / count)
    bottom = HEAD + count * row
    across = _across(build)
    parts = _legend() + _time_axis(build, HEAD, bottom)
    ends = [0.0] * count
    for job, lane in zip(jobs, places, strict=True):
        if lane >= count:
            continue
        a, b = across(job.began or 0.0), across(job.ended)
        if b - a < LEAST_WIDTH and a - ends[lane] < LEAST_WIDTH and id(job) not in on_path:
            continue
        ends[lane] = b
        parts.append(_bar(job, a, max(LEAST_WIDTH, b - a), HEAD + lane * row, row, across, framed=id(job) in on_path))
    return _svg("Jobs in their lanes", bottom + FOOT, parts)


def _held(job: JobRecord) -> str:
    return f"memory {job.known_peak.text}, " if job.known_peak is not None else ""


def _bar(job: JobRecord, x: float, width: float, y: float, row: float, across: Place, *, framed: bool) -> str:
    good = job.fate in ("ok", "running")
    colour = TOOL_COLOURS[job.tool] if good else BAD
    frame = ' class="path"' if framed else ""
    what = f"{clean(job.output, 200)}\n{format_duration(job.seconds)}, {_held(job)}{job.fate}"
    shape = f'x="{x:.1f}" y="{y + 1:.1f}" width="{width:.1f}" height="{row - 2:.1f}"'
    frozen = "".join(
        f'<rect x="{across(a):.1f}" y="{y + row / 3:.1f}" width="{max(1.0, across(b) - across(a)):.1f}"'
        f' height="{row / 3:.1f}" class="frozen"/>'
        for a, b in job.stops
    )
    return f'<g><title>{escape(what)}</title><rect {shape} fill="{colour}"{frame}/>{frozen}</g>'


def _legend() -> list[str]:
    names = [*TOOL_COLOURS.items(), ("failed or killed", BAD)]
    parts, x = [], LEFT
    for name, colour in names:
        parts.append(f'<rect x="{x}" y="6" width="10" height="10" fill="{colour}"/>' + _text(x + 14, 15, name))
        x += 34 + 6.6 * len(name)
    parts.append(f'<rect x="{x}" y="6" width="10" height="10" class="path" fill="none"/>')
    return [*parts, _text(x + 14, 15, "critical path; pale within: frozen")]


def _across(build: RecordedBuild) -> Place:
    span = build.seconds or 1.0
    width = WIDTH - LEFT - RIGHT

    def place(time: float) -> float:
        return LEFT + width * min(1.0, max(0.0, (time - build.started) / span))

    return place


def _time_axis(build: RecordedBuild, top: float, bottom: float) -> list[str]:
    across, parts = _across(build), []
    step = clock_step(build.seconds, 2 * STEPS)
    for n in range(int(build.seconds / step) + 1):
        x = across(build.started + n * step)
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{top:.1f}" y2="{bottom:.1f}"/>')
        parts.append(_text(x, bottom + 15, format_duration(n * step), anchor="middle"))
    return parts


def _step(top: float) -> float:
    """A round distance between marks, in powers of two where there are many: bytes are read so."""
    step = 1.0
    while top / step > STEPS:
        step *= 2
    return step


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _svg(title: str, height: float, parts: Iterable[str]) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH:.0f} {height:.0f}" role="img" aria-label="{escape(title)}">'
        f"<title>{escape(title)}</title>{''.join(parts)}</svg>"
    )
