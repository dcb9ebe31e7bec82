"""Formats the figures of a comparison. Pure; knows no screens."""

from __future__ import annotations

from stoker.model.units import format_bytes, format_duration
from stoker.report.comparison import Change

UNLIKE = "the figures in all are of unlike work, so none is called better or worse"
"""Where a build did not end well."""

LONG = 36000.0
"""Seconds from which on a duration is shown in hours with one decimal, to fit a column."""


def figure_text(figure: str, value: float | None) -> str:
    """Return a figure of `report.comparison` as text; a dash if it was not measured."""
    if value is None:
        return "-"
    if figure == "peak_bytes":
        return format_bytes(value) if value else "-"
    if figure.endswith("seconds"):
        return _span(value)
    return f"{value:.0f}" if value == round(value) else f"{value:.1f}"


def _span(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    return format_duration(seconds) if seconds < LONG else f"{seconds / 3600:.1f} h"


def share_text(change: Change) -> str:
    """Return the relative change: +12 %; empty if it is unknown."""
    return "" if change.share is None else f"{100 * change.share:+.0f} %"
