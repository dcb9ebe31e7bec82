"""The list of builds with their trends, and the details of the chosen one below. Pure: trend lines in, lines out.

Does not know Textual, or where the builds come from.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from stoker.model.text import clean
from stoker.model.units import format_bytes, format_duration, format_share
from stoker.report.trends import BEFORE, TrendLine, alike
from stoker.show.tui.pages.lines import (
    BLANK,
    GAP,
    Line,
    Part,
    aimed,
    elide_end,
    elide_path,
    fit,
    pad,
    section,
    spread,
    width_of,
)
from stoker.show.tui.terminal.glyphs import Glyphs

BuildOrder = Literal["began", "took", "trend", "memory"]

BUILD_ORDERS: tuple[BuildOrder, ...] = ("began", "took", "trend", "memory")
"""Sort orders of builds, in the order in which a key cycles through them."""

Side = Literal["A", "B"]

SLOWER, FASTER = 1.1, 0.9
"""Ratios to earlier similar builds from which on a build is highlighted."""

DETAIL_LINES = 6
"""Lines about the chosen build: a rule, command, folder, time and memory, or why it cannot be read."""

INKS = {"done": "ok", "failed": "error", "stopped": "warn", "unreadable": "error", "running": "running"}


@dataclass(frozen=True, slots=True)
class HistoryView:
    """What the user has chosen: a row, the order, the builds marked for a comparison; and what the list contains.

    `folder` is empty for all folders. `unread` is the number of journals still to be read, `words` the filter.
    """

    chosen: int = 0
    order: BuildOrder = "began"
    marks: Mapping[str, Side] = field(default_factory=dict)
    folder: str = ""
    unread: int = 0
    words: str = ""


def ordered_builds(lines: Sequence[TrendLine], order: BuildOrder) -> list[TrendLine]:
    """Return the builds, newest first, or largest first by the chosen figure."""
    newest = sorted(lines, key=lambda line: line.started, reverse=True)
    if order == "took":
        newest.sort(key=lambda line: -line.seconds)
    elif order == "trend":
        newest.sort(key=lambda line: -(line.share or 0.0))
    elif order == "memory":
        newest.sort(key=lambda line: -(line.peak or 0))
    return newest


def texts_of_build(line: TrendLine) -> tuple[str, ...]:
    """Return the texts of a row that the filter searches."""
    return line.id, line.name, line.outcome, " ".join(line.command), line.cwd


def history(
    shown: Sequence[TrendLine], every: Sequence[TrendLine], view: HistoryView, width: int, height: int, g: Glyphs
) -> list[Line]:
    """Return the page in `height` lines: a title, the builds `shown`, and the chosen one compared with `every`."""
    if not shown:
        return [_title(len(every), view, width, g), BLANK, *_nothing(view, width, g)]
    details = height >= DETAIL_LINES + 8
    room = max(1, height - 2 - (DETAIL_LINES if details else 0))
    first = max(0, min(view.chosen - room // 2, len(shown) - room))
    seen = f" ({first + 1}{g.en_dash}{first + room})" if len(shown) > room else ""
    columns = _columns(shown, width)
    lines = [_title(len(every), view, width, g, seen), _heads(view, columns, width, g)]
    for at, line in enumerate(shown[first : first + room], first):
        lines.append(aimed(_row(line, view, columns, width, g, chosen=at == view.chosen), f"row:{at}"))
    lines += [BLANK] * (room - (len(lines) - 2))
    return [*lines, *_details(shown[view.chosen], every, width, g)] if details else lines


def _title(count: int, view: HistoryView, width: int, g: Glyphs, seen: str = "") -> Line:
    what = f"{count} {'build' if count == 1 else 'builds'}{seen}"
    where = f"of {clean(view.folder, 300)}" if view.folder else "of all folders"
    reading = f"reading {view.unread} more{g.ellipsis}" if view.unread else ""
    room = max(8, width - len(what) - len(reading) - 4)
    left = (Part(what, "accent bold"), Part(" "), Part(elide_path(where, room, g.ellipsis), "text"))
    return spread(left, (Part(reading, "text_dim"),), width)


def _nothing(view: HistoryView, width: int, g: Glyphs) -> list[Line]:
    if view.unread:
        return []
    if view.words:
        return [(Part("No build has these words.", "text_dim"),)]
    texts = ["No build of this folder yet. Start one with:  stoker run -- ninja -C build"]
    if not view.folder:
        texts = ["No builds yet. Start one with:  stoker run -- ninja -C build"]
    return [(Part(elide_end(text, width, g.ellipsis), "text"),) for text in texts]


# -- the list ----------------------------------------------------------------------------------------------------

_BEGAN, _ID, _OUTCOME = 11, 4, 10
_FIGURES = (("took", 8), ("trend", 6), ("jobs", 6), ("memory", 8))
_HITS_FROM = 100
"""Screen width from which cache hits are shown."""


def _columns(shown: Sequence[TrendLine], width: int) -> tuple[tuple[str, int], ...]:
    """Return the columns of figures; trends only if some build has one, which requires earlier similar builds."""
    trends = any(line.share is not None for line in shown)
    figures = tuple(column for column in _FIGURES if trends or column[0] != "trend")
    return (*figures, ("hits", 5)) if width >= _HITS_FROM else figures


def _heads(view: HistoryView, columns: tuple[tuple[str, int], ...], width: int, g: Glyphs) -> Line:
    def head(title: str) -> str:
        return title + (g.sorted_by if title == view.order else "")

    figures = "".join(" " + pad(head(title), size, right=True) for title, size in columns)
    began = f"    {pad(head('began'), _BEGAN)} {pad('ID', _ID)}"
    what = "command" if view.folder else "name: command"
    return fit((Part(f"{began}{figures}  {pad('outcome', _OUTCOME)} {what}", "text_dim"),), width)


def _row(
    line: TrendLine, view: HistoryView, columns: tuple[tuple[str, int], ...], width: int, g: Glyphs, *, chosen: bool
) -> Line:
    mark = view.marks.get(line.id, "")
    parts = [
        Part(f"{g.pointer if chosen else ' '} ", "accent"),
        Part(f"{mark or ' '} ", "person bold"),
        Part(f"{_when(line.started)} {pad(clean(line.short_id), _ID)}", "text_dim"),
    ]
    for title, size in columns:
        text, ink = _figure(line, title, g)
        parts.append(Part(" " + pad(text, size, right=True), ink))
    parts += [GAP, Part(pad(clean(line.outcome), _OUTCOME), INKS.get(line.outcome, "accent")), Part(" ")]
    room = max(0, width - width_of(parts))
    whose = "" if view.folder else f"{clean(line.name, 60)}: "
    command = elide_end(whose + clean(" ".join(line.command), 300), room, g.ellipsis)
    parts.append(Part(pad(command, room), "text_dim"))
    if chosen:
        parts = [part._replace(ink="cursor_text on cursor") for part in parts]
    return fit(parts, width)


def _when(started: float) -> str:
    return time.strftime("%m-%d %H:%M", time.localtime(started)) if started else " " * _BEGAN


def _figure(line: TrendLine, title: str, g: Glyphs) -> tuple[str, str]:
    if title == "took":
        return format_duration(line.seconds), "text"
    if title == "trend":
        return _trend(line)
    if line.jobs is None or line.peak is None:
        return ("", "text") if line.fault else (g.ellipsis, "text_dim")
    if title == "jobs":
        return str(line.jobs), "text"
    if title == "memory":
        return format_bytes(line.peak) if line.peak else g.dash, "text"
    return "" if line.cache_hits is None else format_share(line.cache_hits), "text"


def _trend(line: TrendLine) -> tuple[str, str]:
    if line.share is None:
        return "", "text_dim"
    return f"x{line.share:.2f}", "warn" if line.share >= SLOWER else "ok" if line.share <= FASTER else "text_dim"


# -- the chosen build ----------------------------------------------------------------------------------------------


def _details(line: TrendLine, every: Sequence[TrendLine], width: int, g: Glyphs) -> list[Line]:
    """Return the chosen build in full, and its time and memory among similar builds."""
    name = elide_end(clean(line.name) or "build", width // 2, g.ellipsis)
    lines = [section(f"{name}  {clean(line.id, 60)}", width, g)]
    lines.append(_labelled("command", elide_end(clean(" ".join(line.command)), width - 9, g.ellipsis)))
    lines.append(_labelled("folder", elide_path(clean(line.cwd), width - 9, g.ellipsis)))
    if line.fault:
        lines.append(_labelled("fault", elide_end(clean(line.fault, 300), width - 9, g.ellipsis)))
        return lines
    like = sorted((one for one in every if one is line or alike(one, line)), key=lambda one: one.started)
    columns = max(4, min(40, width - 9 - 40))
    lines.append(_course("time", [one.seconds for one in like], _beside(line, like), like.index(line), columns, g))
    peaks = [float(one.peak or 0) for one in like]
    most = g.ellipsis if line.peak is None else format_bytes(line.peak) if line.peak else "not measured"
    lines.append(_course("memory", peaks, most, like.index(line), columns, g))
    return lines


def _labelled(label: str, text: str) -> Line:
    return Part(pad(label, 9), "text_dim"), Part(text)


def _beside(line: TrendLine, like: Sequence[TrendLine]) -> str:
    """Return its time, compared with earlier similar builds."""
    took = format_duration(line.seconds)
    if line.share is None:
        return took
    before = min(BEFORE, sum(one.started < line.started for one in like))
    usual = format_duration(line.seconds / line.share)
    return f"{took}, usually {usual} (median of {before} similar builds)"


def _course(label: str, values: Sequence[float], text: str, at: int, columns: int, g: Glyphs) -> Line:
    """Return a column per similar build, the oldest at the left, the chosen one highlighted."""
    first = max(0, min(at - columns // 2, len(values) - columns))
    most = max(values, default=0.0) or 1.0
    bars = [
        Part(g.levels[max(1, round(value / most * (len(g.levels) - 1)))], "accent bold" if n == at else "text_dim")
        for n, value in enumerate(values[first : first + columns], first)
    ]
    return (Part(pad(label, 9), "text_dim"), *bars, GAP, Part(text))
