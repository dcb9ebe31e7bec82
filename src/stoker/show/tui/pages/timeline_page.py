"""The timeline: memory, jobs, CPU and decisions over a build or a part of it, and details of one moment. Pure.

Does not know Textual. The screen's last line is left to the footer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from stoker.model.known_peak import peak_rank
from stoker.model.progress import progress_of
from stoker.model.state import BuildState, DecisionEntry, Notice
from stoker.model.timeline import TimelinePoint
from stoker.model.units import format_bytes, format_duration
from stoker.show.governing_text import is_person, is_routine
from stoker.show.tui.pages import decision_lines, header, meters
from stoker.show.tui.pages.chart import AXIS_WIDTH, Area, chart, marks, memory_top, sample, time_axis, time_labels
from stoker.show.tui.pages.lines import BLANK, GAP, Line, Part, elide_path, fit, pad, whole_clauses, width_of, wrap
from stoker.show.tui.pages.moment import Moment, time_of_day
from stoker.show.tui.pages.names import distinct_names, matches, plain_name
from stoker.show.tui.terminal.glyphs import Glyphs

MOST_ZOOM = 8
"""Maximum number of times the span can be halved."""

LEAST_COLUMNS, LEAST_HEIGHT = 10, 12
"""Minimum columns of the charts, and lines of the page."""

LEAST_POINTS = 2
"""Minimum measurements for a chart."""

UNMEASURED_AFTER = 2
"""Spacings of the timeline after the last measurement from which a chart of an ended build is empty."""

LEGEND_FROM = 20
"""Lines of the page from which the decisions' marks have a legend."""

LEAST_ROWS = 7
"""Minimum lines of the three charts together."""

ENDS_FREEZE = ("thaw", "shed", "kill")
"""First words of decisions after which a job is no longer frozen."""

PEAK_CELLS = 15
"""Cells of a job's peak memory, with the word."""

DETAIL_ROWS, DECISION_ROWS = 5, 2
"""Lines about the moment at the cursor: its figures, a decision, and jobs on the others."""


@dataclass(frozen=True, slots=True)
class TimelineView:
    """How often the span was halved, the Unix time at the cursor (None without one), and the filter's words."""

    zoom: int = 0
    at: float | None = None
    words: str = ""


def span_of(state: BuildState, view: TimelineView) -> tuple[float, float]:
    """Return the Unix times at both ends of the charts: the newest part of the build, or the part around the cursor."""
    start, end = _whole_span(state)
    length = (end - start) / 2**view.zoom
    if view.at is None:
        return end - length, end
    first = min(max(start, view.at - length / 2), end - length)
    return first, first + length


def _whole_span(state: BuildState) -> tuple[float, float]:
    """Return the first and the last Unix time of the whole build, from its first measurement on."""
    points = state.timeline.points
    return points[0].time, max(points[-1].time, points[0].time + 1, state.ended or 0.0)


def _with_end(state: BuildState, points: tuple[TimelinePoint, ...]) -> tuple[TimelinePoint, ...]:
    """Return the points, and one of zeros where an ended build had not been measured for a while at its end: a chart
    holds the last value, which nobody knows to be true."""
    silent_from = points[-1].time + UNMEASURED_AFTER * state.timeline.spacing
    if state.ended is None or state.ended <= silent_from:
        return points
    return (*points, TimelinePoint(silent_from, 0, 0, 0, 0.0))


def moved_cursor(state: BuildState, view: TimelineView, columns: int, by: int) -> TimelineView:
    """Move the cursor `by` columns to the right; without a cursor, place it at the end."""
    points = state.timeline.points
    if len(points) < 2 or columns < 1:
        return view
    start, end = span_of(state, view)
    at = end if view.at is None else view.at + by * (end - start) / columns
    return replace(view, at=min(points[-1].time, max(points[0].time, at)))


def cursor_at_end(state: BuildState, view: TimelineView, which: int) -> TimelineView:
    """Place the cursor at the first measurement (`which` 0) or the last one (-1)."""
    points = state.timeline.points
    return replace(view, at=points[which].time) if len(points) >= LEAST_POINTS else view


def decisions_of(state: BuildState, words: str) -> list[DecisionEntry]:
    """Return the decisions that match `words`, including routine ones."""
    return [d for d in state.decisions if matches(words, plain_name(d.what), d.who, d.why)]


def _entries(m: Moment, words: str) -> list[DecisionEntry | Notice]:
    """Return the matching entries of the page of decisions, so that one start has one count on both pages."""
    every = decision_lines.page_entries(m.state, m.left_at, m.now)
    return [entry for entry in every if matches(words, *decision_lines.texts(entry))]


def at_decision(m: Moment, view: TimelineView, by: int) -> TimelineView:
    """Move the cursor to the next matching decision, or with a negative `by` to the previous one; without a cursor, to
    the last one. Routine decisions are skipped, as in the list of decisions."""
    times = [entry.time for entry in _entries(m, view.words)]
    if view.at is None:
        goal = times[-1:]
    else:
        goal = [t for t in times if t > view.at][:1] if by > 0 else [t for t in times if t < view.at][-1:]
    return replace(view, at=goal[0]) if goal else view


def timeline(m: Moment, width: int, height: int, g: Glyphs, view: TimelineView = TimelineView()) -> list[Line]:
    """Return memory, running jobs and CPU over the build or a part of it, with the decisions marked."""
    state = m.state
    lines = [header.title(m, width, g)]
    points, columns = state.timeline.points, width - AXIS_WIDTH
    if columns < LEAST_COLUMNS or height < LEAST_HEIGHT:
        needs = [f"{AXIS_WIDTH + LEAST_COLUMNS} columns"] if columns < LEAST_COLUMNS else []
        needs += [f"{LEAST_HEIGHT + 1} rows"] if height < LEAST_HEIGHT else []
        return [
            *lines,
            *_message(f"The terminal is too small for the timeline, which needs {' and '.join(needs)}.", width),
        ]
    if len(points) < LEAST_POINTS:
        return [*lines, BLANK, *_message("The timeline needs a few seconds of measurements.", width)]
    start, end = span_of(state, view)
    detail = DETAIL_ROWS if view.at is not None and height >= 12 + DETAIL_ROWS else 0
    signs = [_signs(width, g)] if height >= LEGEND_FROM else []
    lines += _charts(m, columns, height - len(lines) - detail - len(signs), g, (start, end))
    offset = start - state.started
    labels = time_labels(offset, offset + end - start, columns)
    marked = _decision_marks(decisions_of(state, view.words), start, end, g)
    lines += [*signs, marks("decisions", columns, marked), *time_axis(columns, labels, g)]
    if view.at is None:
        return lines
    column = AXIS_WIDTH + min(columns - 1, int((view.at - start) / (end - start) * columns))
    first = 2
    lines[first:-1] = [line if line in signs else _struck(line, column, g) for line in lines[first:-1]]
    return [*lines, *_moment_lines(m, view, (end - start) / columns, width, g)[:detail]]


def _signs(width: int, g: Glyphs) -> Line:
    """Return the legend of the line of decisions; entries that do not fit completely are left out."""
    signs = (
        (g.governor, "text", "job started or held"),
        (g.frozen, "frozen", "frozen"),
        (g.killed, "killed", "stopped for memory"),
        (g.person, "person", "a person"),
    )
    parts: list[Part] = [Part(" " * AXIS_WIDTH)]
    for sign, ink, words in signs:
        entry = [Part(sign, ink), Part(f" {words}", "text_dim"), GAP]
        if width_of(parts) + width_of(entry[:2]) <= width:
            parts += entry
    return tuple(parts)


def _message(text: str, width: int) -> list[Line]:
    return [(Part(piece, "text_dim"),) for piece in wrap(text, width, 4)]


def memory_of_life(state: BuildState, width: int, rows: int, g: Glyphs) -> list[Line]:
    """Return a legend and the memory over the whole build, in `rows` lines with the axis; none if there is no data."""
    points = state.timeline.points
    if len(points) < 2 or rows < 6 or width - AXIS_WIDTH < LEAST_COLUMNS:
        return []
    span = _whole_span(state)
    lines = _memory(state, width - AXIS_WIDTH, rows - 3, g, _with_end(state, points), span)
    columns = width - AXIS_WIDTH
    labels = time_labels(span[0] - state.started, span[1] - state.started, columns)
    return [*lines, *time_axis(columns, labels, g)]


def _memory(
    state: BuildState,
    columns: int,
    rows: int,
    g: Glyphs,
    points: tuple[TimelinePoint, ...],
    span: tuple[float, float],
    title: str = "",
) -> list[Line]:
    """Return the legend below a `title`, and `rows` lines of memory."""
    times = [p.time for p in points]
    used, own = (
        sample(times, values, columns, *span)
        for values in ([p.memory_used for p in points], [p.build_rss for p in points])
    )
    budget = state.machine.memory_budget if state.machine else state.memory_total
    top, label = memory_top(max(*used, *own), budget)
    areas = [Area(own, "memory_build"), Area(used, "memory", line=True)]
    limit, named = budget if budget <= top else None, format_bytes(budget)
    legend = _legend(state, columns + AXIS_WIDTH, g, budget, title)
    return [
        legend,
        *chart(areas, top, rows, g, label, limit=limit, limit_ink="memory_limit", limit_label=named),
    ]


def _charts(m: Moment, columns: int, height: int, g: Glyphs, span: tuple[float, float]) -> list[Line]:
    """Return memory, jobs and CPU, in `height` lines minus those of the marks and the axis."""
    state = m.state
    recent = state.recent.points
    finer = state.recent.spacing < state.timeline.spacing and len(recent) > 1 and recent[0].time <= span[0]
    points = recent if finer else state.timeline.points
    points = _with_end(state, points)
    shown = tuple(p for p in points if span[0] <= p.time <= span[1]) or points[-1:]
    times = [p.time for p in shown]

    def series(values: list[float]) -> list[float]:
        return sample(times, values, columns, *span)

    jobs = series([p.running for p in shown])
    cpu, own_cpu = series([p.cpu_percent for p in shown]), series([p.build_cpu for p in shown])
    deck, frozen = series([p.on_deck for p in shown]), series([p.frozen for p in shown])
    rows = height - 6 - any(deck)
    marks_frozen = any(frozen) and rows > LEAST_ROWS
    rows -= marks_frozen
    memory_rows = max(3, rows // 2)
    small = max(2, (rows - memory_rows) // 2)
    lines = _memory(state, columns, memory_rows, g, shown, span, "memory")
    most, p = max(1.0, max(jobs)), progress_of(state)
    stopped = f", {p.frozen} frozen" if any(frozen) else ""
    waiting = f", {p.on_deck} on deck" if any(deck) else ""
    now = "" if state.over else f"  now {p.running}{stopped}{waiting}"
    lines.append((Part(" " * AXIS_WIDTH), Part("running jobs", "running"), Part(now, "text_dim")))
    lines += chart([Area(jobs, "running")], most, small, g, f"{most:.0f}")
    if marks_frozen:
        lines += chart([Area(frozen, "frozen")], max(frozen), 1, g, _frozen_label(max(frozen)))
    if any(deck):
        lines += chart([Area(deck, "on_deck")], max(deck), 1, g, f"deck {max(deck):.0f}")
    lines.append(_cpu_legend(state, g))
    return [*lines, *chart([Area(own_cpu, "cpu"), Area(cpu, "text_dim", line=True)], 100, small, g, "100 %")]


def _cpu_legend(state: BuildState, g: Glyphs) -> Line:
    """Return the legend of the CPU use, with the latest shares of the whole machine."""
    own = whole = ""
    if not state.over:
        last, cores = state.timeline.points[-1], len(state.machine.cpu_cores) if state.machine is not None else 0
        own, whole = f" {last.build_cpu:.0f} %", f" {last.cpu_percent:.0f} %"
        whole += f" of {meters.cores_text(cores)}" if cores else ""
    edge = g.edges[0 if g.ascii else 1]
    shares = (Part(f"{g.block} build{own}", "cpu"), GAP, Part(f"{edge} in all{whole}", "text_dim"))
    return (Part(" " * AXIS_WIDTH), Part("cpu", "cpu"), GAP, *shares)


def _frozen_label(most: float) -> str:
    """Return the axis label of the frozen jobs, in at most eight cells."""
    return next(label for label in (f"frozen {most:.0f}", f"frz {most:.0f}", f"{most:.0f}") if len(label) <= 8)


def _struck(line: Line, cell: int, g: Glyphs) -> Line:
    """Return a line of single-cell characters with the cursor drawn through it."""
    parts, at = list[Part](), 0
    for part in fit(line, max(width_of(line), cell + 1)):
        left = cell - at
        at += len(part.text)
        if 0 <= left < len(part.text):
            cut = (part.text[:left], g.mark, part.text[left + 1 :])
            parts += [
                Part(text, ink) for text, ink in zip(cut, (part.ink, "accent bold", part.ink), strict=True) if text
            ]
        else:
            parts.append(part)
    return tuple(parts)


def _moment_lines(m: Moment, view: TimelineView, step: float, width: int, g: Glyphs) -> list[Line]:
    """Return details of one moment: figures, the jobs that are still known, and the nearest decision."""
    state, at = m.state, view.at or 0.0
    point = max((p for p in state.timeline.points if p.time <= at), key=lambda p: p.time, default=None)
    if point is None:
        return []
    when = Part(f"{format_duration(at - state.started)}  {time_of_day(at)}  ", "accent bold")
    figures = f"build {format_bytes(point.build_rss)}, in all {format_bytes(point.memory_used)}"
    figures += f", cpu {point.build_cpu:.0f} of {point.cpu_percent:.0f} %, {point.running} running"
    figures += f", {point.frozen} frozen" if point.frozen else ""
    figures += f", {point.on_deck} on deck" if point.on_deck else ""
    lines = [fit((when, Part(whole_clauses(figures, width - width_of((when,))))), width)]
    jobs = [*_jobs_at(state, at)]
    names = distinct_names(job.name for job in jobs)
    every = sorted((job._replace(name=names[job.name]) for job in jobs), reverse=True)
    known = [job for job in every if matches(view.words, job.name)] or every  # the words may be those of a decision
    near = [e for e in _entries(m, view.words) if abs(e.time - at) <= 2 * max(step, state.timeline.spacing)]
    nearest: DecisionEntry | Notice | None = min(near, key=lambda e: abs(e.time - at), default=None)
    decided = decision_lines.one_entry(nearest, width, DECISION_ROWS, g) if nearest is not None else []
    named = known[: DETAIL_ROWS - 1 - len(decided)]
    lines += [_known_line(job, width, g) for job in named]
    more = (len(known) if known is not every else max(point.running + point.frozen, len(known))) - len(named)
    if named and more:
        lines[-1] = (*lines[-1], Part(f"  +{more} more", "text_dim"))
    if not named:
        lines.append((Part("the jobs of that moment are no longer kept; stoker events lists them", "text_dim"),))
    return [*lines, *decided]


class _Known(NamedTuple):
    """A job at one moment: its peak memory as far as it is known now, its name, and whether it was frozen and has ended
    since."""

    peak: int
    name: str
    frozen: bool
    ended: bool


def _known_line(job: _Known, width: int, g: Glyphs) -> Line:
    """Return one job. The peak of one that has not ended is left out: the figure of a past moment would grow."""
    peak = f"peak {format_bytes(job.peak):>8}" if job.peak else ""
    size = Part(pad(peak if job.ended else "not ended yet", PEAK_CELLS), "text_dim")
    mark = (Part(f"{g.frozen} ", "frozen"),) if job.frozen else ()
    return (size, *mark, Part(elide_path(job.name, width - PEAK_CELLS - 2 - width_of(mark), g.ellipsis)))


def _jobs_at(state: BuildState, at: float) -> Iterator[_Known]:
    """Yield the jobs that are known to have been running or frozen then, by their outputs.

    What each held just then is not kept: only its peak.
    """
    history, frozen = state.history, _frozen_at(state, at)
    ended = {(job.output, job.ended): job for job in (*history.recent, *history.heaviest, *history.slowest)}
    for past in ended.values():
        if past.ended - past.stood - past.seconds <= at <= past.ended:
            peak = peak_rank(past.peak)[0]
            yield _Known(peak, past.output, past.output in frozen, ended=True)
    for job in (*state.jobs.values(), *state.leaving.values()):
        if job.running_since is not None and job.running_since <= at:
            now_frozen = job.frozen_at is not None and job.frozen_at <= at
            yield _Known(job.peak_rss, job.output, now_frozen or job.output in frozen, ended=False)


def _frozen_at(state: BuildState, at: float) -> set[str]:
    """Return the outputs of the jobs that single decisions had frozen by then."""
    frozen: set[str] = set()
    for decision in state.decisions:
        verb, _, name = decision.what.partition(" ")
        if decision.time > at:
            break
        if verb == "freeze":
            frozen.add(name)
        elif verb in ENDS_FREEZE:
            frozen.discard(name)
    return frozen


def _legend(state: BuildState, width: int, g: Glyphs, budget: float, title: str) -> Line:
    """Return the legend with the current sizes; for an ended build, the peaks. The title is left out first."""
    own = state.memory.build_peak if state.over else state.memory.build
    used = state.memory.used_peak if state.over else state.machine.memory_used if state.machine else 0
    parts = [
        Part(pad("at most" if state.over else "", AXIS_WIDTH), "text_dim"),
        Part(f"{g.block} build {format_bytes(own)}", "memory_build"),
        GAP,
        Part(f"{g.edges[0 if g.ascii else 1]} in all {format_bytes(used)}", "memory"),
        GAP,
        Part(f"{g.dash} budget", "memory_limit"),
    ]
    size = Part(f" {format_bytes(budget)}", "memory_limit")  # the axis shows it too
    parts += [size] * (width_of((*parts, size)) <= width)
    head = [Part(title, "memory_build"), GAP] if title else []
    return tuple([parts[0], *head, *parts[1:]] if width_of((*head, *parts)) <= width else parts)


def _decision_marks(
    decisions: Sequence[DecisionEntry], start: float, end: float, g: Glyphs
) -> list[tuple[float, str, str]]:
    """Return the marks of decisions; later marks cover earlier ones, so routine ones come first, a person's last."""
    span = max(1e-9, end - start)
    ranked = sorted(decisions, key=lambda d: (is_person(d), not is_routine(d)))
    return [((d.time - start) / span, *_decision_mark(d, g)) for d in ranked]


def _decision_mark(decision: DecisionEntry, g: Glyphs) -> tuple[str, str]:
    if is_person(decision):
        return g.person, "person"
    if decision.what.startswith("freeze "):
        return g.frozen, "frozen"
    if decision.what.startswith("shed "):
        return g.killed, "killed"
    return g.governor, "text_dim" if is_routine(decision) else "text"
