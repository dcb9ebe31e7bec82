"""Small SVG plots for a README: bars with whiskers, and lines. Legible in dark and light, without a script or a font.

Colours are those of Okabe and Ito, which differ to the colour-blind too. Knows nothing of what is shown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6bb1", "#7f7f7f")
STYLE = """<style>
text{font:12px system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif;fill:#24292f}
.title{font-weight:600;font-size:14px}.small{font-size:11px;fill:#57606a}.card{fill:#fff;stroke:#d0d7de}
.grid{stroke:#d8dee4}.mark{stroke:#24292f;stroke-dasharray:4 3}.whisker{stroke:#24292f}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.small{fill:#9198a1}.card{fill:#0d1117;stroke:#30363d}
.grid{stroke:#21262d}.mark,.whisker{stroke:#e6edf3}}
</style>"""

WIDTH = 760
BAR, GAP, BETWEEN = 14, 2, 12
"""Pixels: of a bar, between bars of a group, and between groups."""

LETTER = 6.9
"""Pixels of a letter at 12 px, on average: enough to place what stands beside text."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A value, its spread if it was measured several times, and a word that stands for it where there is no value."""

    value: float | None
    low: float | None = None
    high: float | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Axis:
    """A scale from `low` to `high`, `log` or not; `mark` is a value that everything is held against."""

    label: str
    log: bool = False
    mark: float | None = None
    top: float | None = None
    """Bars beyond this are cut off there; their text says the value."""


def bars(title: str, series: Sequence[str], groups: Mapping[str, Sequence[Bar]], axis: Axis) -> str:
    """Horizontal bars, one for each series, in groups that are named at the left."""
    left = 16 + LETTER * max(map(len, groups))
    right = WIDTH - 84
    values = [v for row in groups.values() for bar in row for v in (bar.value, bar.high) if v is not None]
    high = min(max([*values, axis.mark or 0.0]) * 1.03, axis.top or math.inf)
    low = min([v for v in values if v > 0], default=1.0) / 1.5 if axis.log else 0.0
    place = _scale(low, high, left, right, log=axis.log)
    head = 50 if len(series) > 1 else 34
    body: list[str] = []
    y = head + 6.0
    for name, row in groups.items():
        middle = y + (len(row) * (BAR + GAP)) / 2 + 3
        body.append(_text(left - 8, middle, name, anchor="end"))
        for colour, bar in zip(COLOURS, row, strict=False):
            body.append(_bar(bar, colour, y, left, place, high))
            y += BAR + GAP
        y += BETWEEN
    marks = _ticks(low, high, log=axis.log)
    grid = [_tick(place(value), head, y, value) for value in marks]
    if axis.mark is not None:
        x = place(axis.mark)
        grid.append(f'<line class="mark" x1="{x:.1f}" x2="{x:.1f}" y1="{head}" y2="{y:.1f}"/>')
    label = _text((left + right) / 2, y + 30, axis.label, kind="small", anchor="middle")
    return _page(title, y + 42, [_legend(series) if len(series) > 1 else "", *grid, *body, label])


def lines(title: str, series: Mapping[str, Sequence[tuple[float, float]]], x: Axis, y: Axis) -> str:
    """One line for each series, with a dot at each point."""
    left, right, head, foot = 64.0, WIDTH - 24.0, 76.0, 318.0
    xs = [p[0] for points in series.values() for p in points]
    ys = [p[1] for points in series.values() for p in points]
    low_y = min(ys) / 1.5 if y.log else 0.0
    high_y = max([*ys, y.mark or 0.0]) * (1.5 if y.log else 1.08)
    across = _scale(min(xs), max(xs), left + 10, right - 10, log=x.log)
    up = _scale(low_y, high_y, foot, head, log=y.log)
    parts = [_legend(list(series))]
    for value in _ticks(low_y, high_y, log=y.log):
        parts.append(f'<line class="grid" x1="{left}" x2="{right}" y1="{up(value):.1f}" y2="{up(value):.1f}"/>')
        parts.append(_text(left - 6, up(value) + 4, _short(value), kind="small", anchor="end"))
    if y.mark is not None:
        parts.append(f'<line class="mark" x1="{left}" x2="{right}" y1="{up(y.mark):.1f}" y2="{up(y.mark):.1f}"/>')
    parts += [_text(across(v), foot + 16, _short(v), kind="small", anchor="middle") for v in sorted(set(xs))]
    for colour, points in zip(COLOURS, series.values(), strict=False):
        places = [(across(a), up(b)) for a, b in points]
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3.5" fill="{colour}"/>' for a, b in places]
    parts.append(_text((left + right) / 2, foot + 36, x.label, kind="small", anchor="middle"))
    parts.append(_text(16, head - 8, y.label, kind="small"))
    return _page(title, foot + 48, parts)


def _bar(bar: Bar, colour: str, y: float, left: float, place: Callable[[float], float], high: float) -> str:
    if bar.value is None:
        return _text(left + 4, y + BAR - 3, bar.note, kind="small")
    end = place(min(bar.value, high))
    parts = [f'<rect x="{left:.1f}" y="{y:.1f}" width="{max(1.0, end - left):.1f}" height="{BAR}" fill="{colour}"/>']
    reach = end
    if bar.low is not None and bar.high is not None and bar.high > bar.low:
        a, b, middle = place(min(bar.low, high)), place(min(bar.high, high)), y + BAR / 2
        parts.append(f'<line class="whisker" x1="{a:.1f}" x2="{b:.1f}" y1="{middle:.1f}" y2="{middle:.1f}"/>')
        reach = max(reach, b)
    said = f"{_short(bar.value)} {bar.note}".strip()
    return "".join([*parts, _text(reach + 4, y + BAR - 3, said, kind="small")])


def _tick(x: float, top: float, bottom: float, value: float) -> str:
    line = f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{bottom:.1f}"/>'
    return line + _text(x, bottom + 14, _short(value), kind="small", anchor="middle")


def _legend(series: Sequence[str]) -> str:
    parts, x = [], 16.0
    for colour, name in zip(COLOURS, series, strict=False):
        parts.append(f'<rect x="{x:.1f}" y="32" width="10" height="10" fill="{colour}"/>')
        parts.append(_text(x + 14, 41, name, kind="small"))
        x += 30 + 6.2 * len(name)
    return "".join(parts)


def _scale(low: float, high: float, start: float, end: float, *, log: bool) -> Callable[[float], float]:
    if log:
        low, high = math.log(low), math.log(high)
    span = (high - low) or 1.0

    def place(value: float) -> float:
        value = math.log(max(value, 1e-12)) if log else value
        return start + (end - start) * min(1.0, max(0.0, (value - low) / span))

    return place


def _ticks(low: float, high: float, *, log: bool) -> list[float]:
    """Round values within a scale."""
    if log:
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        steps = (1, 2, 5) if high / low < 100 else (1,)
        return [v for p in powers for s in steps if low <= (v := s * 10.0**p) <= high]
    step = 10.0 ** math.floor(math.log10((high - low) / 4))
    step = next(step * by for by in (1, 2, 5, 10) if (high - low) / (step * by) <= 6)
    return [step * n for n in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _short(value: float) -> str:
    if value >= 10_000:
        return f"{value / 1000:g}k" if value % 1000 == 0 else f"{value / 1000:.0f}k"
    if value >= 100 or value == round(value):
        return f"{value:.0f}"
    return f"{value:.3g}"


def _text(x: float, y: float, text: str, *, kind: str = "", anchor: str = "") -> str:
    kinds = (f' class="{kind}"' if kind else "") + (f' text-anchor="{anchor}"' if anchor else "")
    return f'<text x="{x:.1f}" y="{y:.1f}"{kinds}>{escape(text)}</text>'


def _page(title: str, height: float, parts: Sequence[str]) -> str:
    size = f'width="{WIDTH}" height="{height:.0f}" viewBox="0 0 {WIDTH} {height:.0f}"'
    card = f'<rect class="card" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1:.0f}" rx="6"/>'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img"><title>{escape(title)}</title>'
    return "\n".join([head, STYLE, card, _text(16, 22, title, kind="title"), *parts, "</svg>"]) + "\n"
