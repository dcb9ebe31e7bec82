"""Charts of block columns: areas over time with a limit line, as lines of inked text. Pure.

Knows no builds: series are plain numbers, inks are theme tokens.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from stoker.model.units import clock_step, format_bytes, format_duration
from stoker.show.tui.pages.lines import Line, Part, pad
from stoker.show.tui.terminal.glyphs import Glyphs

AXIS_WIDTH = 10
"""Cells to the left of the columns: a figure of at most eight cells, a blank and the axis."""

BUDGET_FROM = 0.4
ROUND = (1, 2, 3, 4, 6, 8, 10, 15, 20, 30, 40, 60, 80, 100, 150, 200, 300, 400, 600, 800, 1024)
"""Share of the budget that the peak must reach for the chart to end at the budget; else it ends at a round size."""

GLYPH_FROM = 0.25
"""Share of a cell from which an area with its own glyph fills the cell."""


@dataclass(frozen=True, slots=True)
class Area:
    """One series: a value per column, drawn as a filled area. Earlier areas are drawn in front."""

    values: Sequence[float]
    ink: str
    line: bool = False
    """Draw only the upper edge, so that it is visible without colour."""
    glyph: str = ""
    """Fills its cells instead of the chart's growing columns."""


def sample(times: Sequence[float], values: Sequence[float], columns: int, start: float, end: float) -> list[float]:
    """Return one value per column: the largest in its time span, else the last one before it; 0 before the first."""
    if columns <= 0:
        return []
    result = [-1.0] * columns
    span = max(end - start, 1e-9)
    for time, value in zip(times, values, strict=True):
        at = min(columns - 1, max(0, int((time - start) / span * columns)))
        result[at] = max(result[at], value)
    last = 0.0
    for i, value in enumerate(result):
        last = result[i] = value if value >= 0 else last
    return result


def chart(
    areas: Sequence[Area],
    top: float,
    rows: int,
    g: Glyphs,
    top_label: str,
    limit: float | None = None,
    limit_ink: str = "rule",
    limit_label: str = "",
) -> list[Line]:
    """Return `rows` lines with the axis at the left. `top` is the value at the upper edge; `limit` is a dashed line,
    whose label takes precedence over that of the upper edge: one label is not written twice."""
    columns = len(areas[0].values) if areas else 0
    # In whole rows, as a share of a row that is computed from its floor may round to a little above 1.
    heights = [replace(area, values=[min(value / top, 1.0) * rows for value in area.values]) for area in areas]
    limit_row = None if limit is None else min(rows - 1, max(0, int((1 - limit / top) * rows)))
    lines: list[Line] = []
    for row in range(rows):
        label = top_label * (top_label != limit_label) if row == 0 else "0" if row == rows - 1 else ""
        if row == limit_row and limit_label:
            label = limit_label
        axis = Part(pad(label, AXIS_WIDTH - 2, right=True) + f" {g.axis}", "text_dim")
        below = rows - 1 - row
        cells = [_cell(heights, i, below, g, row == limit_row, limit_ink) for i in range(columns)]
        lines.append((axis, *_merged(cells)))
    return lines


def memory_top(peak: float, budget: float) -> tuple[float, str]:
    """Return the value at a memory chart's upper edge, and its label: the budget, if the peak is near it.

    Otherwise a round size above the peak, so that the data fills the chart.
    """
    if BUDGET_FROM * budget <= peak < 1.1 * budget:
        return max(peak, budget * 1.04), format_bytes(budget)
    unit = 1024.0 ** max(0, int(math.log(max(peak, 1.0), 1024)))
    top = unit * next((step for step in ROUND if step * unit >= peak), ROUND[-1])
    return top, format_bytes(top)


def _cell(areas: Sequence[Area], column: int, below: int, g: Glyphs, on_limit: bool, limit_ink: str) -> Part:
    """Return the cell of a column that has so many rows `below` it, of areas whose values are heights in rows."""
    for area in areas:
        share = area.values[column] - below
        if share <= 0:
            continue
        if area.line:
            if share <= 1:
                return Part(g.edges[min(len(g.edges) - 1, int(share * len(g.edges)))], area.ink)
            continue
        if area.glyph:
            if share >= GLYPH_FROM:
                return Part(area.glyph, area.ink)
            continue
        level = min(len(g.levels) - 1, round(share * (len(g.levels) - 1)))
        if level:
            return Part(g.levels[level], area.ink)
    return Part(g.dash, limit_ink) if on_limit else Part(" ")


def _merged(cells: Sequence[Part]) -> list[Part]:
    merged: list[Part] = []
    for cell in cells:
        if merged and merged[-1].ink == cell.ink:
            merged[-1] = Part(merged[-1].text + cell.text, cell.ink)
        else:
            merged.append(cell)
    return merged


LABEL_COLUMNS = 8
"""Columns for one label and what is around it: `1:02:20` takes seven."""

MOST_LABELS = 8


def time_labels(begin: float, end: float, columns: int) -> list[tuple[float, str]]:
    """Return round times from `begin` to `end`, in seconds since the build's start, with their shares of the width."""
    span = max(end - begin, 1.0)
    step = clock_step(span, max(2, min(MOST_LABELS, columns // LABEL_COLUMNS)) - 1)
    first = math.ceil(begin / step)
    times = [step * number for number in range(first, math.floor((begin + span) / step) + 1)]
    return [((time - begin) / span, format_duration(time)) for time in times]


def time_axis(columns: int, labels: Sequence[tuple[float, str]], g: Glyphs) -> list[Line]:
    """Return the line below a chart and its labels, each centred at its share (0..1) of the width."""
    row = [" "] * columns
    for share, label in labels:
        start = min(max(0, round(share * columns) - len(label) // 2), max(0, columns - len(label)))
        if all(c == " " for c in row[max(0, start - 1) : start + len(label) + 1]):
            row[start : start + len(label)] = label
    line = Part(" " * (AXIS_WIDTH - 1) + g.corner + g.rule * columns, "text_dim")
    return [(line,), (Part(" " * AXIS_WIDTH + "".join(row[:columns]), "text_dim"),)]


def marks(label: str, columns: int, places: Sequence[tuple[float, str, str]]) -> Line:
    """Return marks (share of the width, glyph, ink) on one labelled line; later marks cover earlier ones."""
    cells = [Part(" ")] * columns
    for share, glyph, ink in places:
        if 0 <= share <= 1 and columns:
            cells[min(columns - 1, int(share * columns))] = Part(glyph, ink)
    return (Part(pad(label, AXIS_WIDTH), "text_dim"), *_merged(cells))
