"""The memory of the last minutes, and what running jobs are expected to hold in the next ones, as one chart. Pure.

Knows neither Textual nor colours (inks name theme tokens), and not where the moment came from.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass

from rich.cells import cell_len

from stoker.model.samples import OUTLOOK_SECONDS
from stoker.model.state import BuildState
from stoker.model.timeline import MAX_RECENT_POINTS, RECENT_SPACING, TimelinePoint
from stoker.model.to_come import held_by_started, still_to_come
from stoker.model.units import format_bytes, format_rough
from stoker.show.budget_text import promised_of
from stoker.show.tui.pages.chart import AXIS_WIDTH, Area, chart, memory_top
from stoker.show.tui.pages.lines import Line, Part, fit
from stoker.show.tui.pages.moment import Moment
from stoker.show.tui.terminal.glyphs import Glyphs

PAST_SHARE = 0.6
"""Share of the chart's columns to the left of now, once a build is old enough to fill them."""

COLUMN_SECONDS = (1, 2, 3, 4, 5)
"""Possible durations of a column: short while a build is young. Longer ones cost fewer bytes, because all columns
shift by one at the end of each."""

REMEMBERED, WORTH_SEEING = int(RECENT_SPACING * MAX_RECENT_POINTS), 300
"""Seconds of the recorded past, and those for which columns get longer, if need be."""

START, LEAST_BETWEEN = "start", 4
"""Marks the start of a young build on the axis, and cells from there to the end of `now`."""

LEAST_COLUMNS = 20
LEAST_POINTS = 2
"""Minimum columns and measurements for a chart."""


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """Columns over time: `past` of them up to Unix time `now`, the others after it; each covers `step` seconds."""

    columns: int
    past: int
    step: int
    now: float

    def column(self, time: float) -> int:
        """Return the column of a Unix time, which may be outside. Steps begin at round times, so columns are stable."""
        return self.past - 1 + math.floor(time / self.step) - math.floor(self.now / self.step)


def axis_of(state: BuildState, columns: int) -> TimeAxis:
    """Return the axis for a build. That of a young one begins at its start and grows; the forecast has the rest."""
    foreseen = state.level.target is not None
    most = int(columns * PAST_SHARE) if foreseen else columns
    age = min(state.time - state.started, WORTH_SEEING)
    step = next((s for s in COLUMN_SECONDS if s * most >= age), COLUMN_SECONDS[-1])
    lived = math.floor(state.time / step) - math.floor(state.started / step) + 1
    past = max(1, min(most, REMEMBERED // step, lived))
    ahead = min(columns - past, OUTLOOK_SECONDS[-1] // step) if foreseen else 0
    return TimeAxis(past + ahead, past, step, state.time)


def is_worth_drawing(state: BuildState, width: int) -> bool:
    """Return whether there is something to draw, and room for it."""
    points = len(state.timeline.points)
    return state.machine is not None and points >= LEAST_POINTS and width - AXIS_WIDTH >= LEAST_COLUMNS


def memory_chart(m: Moment, width: int, rows: int, g: Glyphs, margin: int = AXIS_WIDTH) -> list[Line]:
    """Return `rows` lines, the last of which is the axis; the columns begin after `margin` cells."""
    state = m.state
    axis = axis_of(state, width - margin)
    points = state.timeline.points if state.timeline.spacing <= state.recent.spacing else state.recent.points
    used, own = _past(axis, points)
    expected = _to_come(axis, state)
    budget = state.machine.memory_budget if state.machine is not None else state.memory_total
    top, label = memory_top(max(*used, *own, *expected), budget)
    areas = [Area(own, "memory_build"), Area(used, "memory", line=True), Area(expected, "memory", glyph=g.promised)]
    limit, named = budget if budget <= top else None, format_bytes(budget)
    lines = chart(areas, top, rows - 1, g, label, limit=limit, limit_ink="memory_limit", limit_label=named)
    indent = Part(" " * (margin - AXIS_WIDTH))
    promised = f"{g.promised} {promised_of(state)}" if any(expected) else ""
    return [*((indent, *line) for line in lines), _axis_line(axis, state.started, margin, g, promised)]


def _past(axis: TimeAxis, points: tuple[TimelinePoint, ...]) -> tuple[list[float], list[float]]:
    """Return the maximum per column of the memory in use and of the build's own, up to now; 0 before the first."""
    used, own = [0.0] * axis.columns, [0.0] * axis.columns
    measured = [False] * axis.past
    for point in points:
        at = axis.column(point.time)
        if at < axis.past:
            at = max(at, 0)
            measured[at] = True
            used[at], own[at] = max(used[at], point.memory_used), max(own[at], point.build_rss)
    for at in range(1, axis.past):
        if not measured[at]:
            used[at], own[at] = used[at - 1], own[at - 1]
    return used, own


def _to_come(axis: TimeAxis, state: BuildState) -> list[float]:
    """Return the memory in use if running jobs hold what is expected of them and the rest does not change; 0 up to now,
    and beyond the forecast."""
    outlook, expected = state.memory.outlook, [0.0] * axis.columns
    if not outlook or state.machine is None or all(job.state == "on_deck" for job in state.jobs.values()):
        return expected  # between two measurements the last job may have ended
    if state.level.paused == "hard":  # frozen jobs keep what they hold
        return [state.machine.memory_used if at >= axis.past else 0.0 for at in range(axis.columns)]
    used, held = state.machine.memory_used, held_by_started(state)
    besides, most = max(0, used - held), used + still_to_come(state)
    for at in range(axis.past, axis.columns):
        stretch = bisect_left(OUTLOOK_SECONDS, (at - axis.past + 1) * axis.step)
        if stretch < len(outlook) and outlook[stretch]:
            expected[at] = min(most, outlook[stretch] + besides)
    return expected


def _left_label(axis: TimeAxis, started: float, g: Glyphs) -> str:
    """Return how far back the axis begins, or that it begins at the start of the build; empty where it has no room."""
    start = axis.column(started)
    label = f"{format_rough(axis.past * axis.step)} ago" if start < 0 else g.rule * start + START
    return label if cell_len(label) + LEAST_BETWEEN <= axis.past else ""


def _axis_line(axis: TimeAxis, started: float, margin: int, g: Glyphs, promised: str) -> Line:
    """Return the axis with its labels: how far it reaches back and ahead."""
    left = _left_label(axis, started, g)
    if axis.past == axis.columns:
        text = f"{left}{g.rule * (axis.past - cell_len(left) - 3)}now"
    else:
        ahead = f"in {format_rough((axis.columns - axis.past) * axis.step)}"
        words = f"now {promised}".rstrip()
        room = axis.columns - axis.past - cell_len(ahead)
        words = words if cell_len(words) < room else "now"
        text = f"{left}{g.rule * (axis.past - cell_len(left))}{words}{g.rule * (room - cell_len(words))}{ahead}"
    return fit((Part(" " * (margin - 1)), Part(g.corner + text, "text_dim")), margin + axis.columns)
