"""Figures of a comparison in words. Pure; unaware of where they are shown."""

from __future__ import annotations

from stoker.model.units import format_bytes, format_duration
from stoker.report.comparison import Change

LONG = 36000.0
"""Seconds from which on hours with a tenth say it in a column's width."""


def figure_text(figure: str, value: float | None) -> str:
    """A figure of `report.comparison` as people read it; a dash where nobody measured it."""
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
    """By how much it has changed: +12 %; empty where that is not known."""
    return "" if change.share is None else f"{100 * change.share:+.0f} %"
