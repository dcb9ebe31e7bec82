"""Numbers as people read them, and back. Unaware of everything else."""

from __future__ import annotations

import math
import re

_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_SUFFIXES = {
    "": 1,
    "b": 1,
    "k": 2**10,
    "m": 2**20,
    "g": 2**30,
    "t": 2**40,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}
MAX_SIZE = 2.0**63
"""More bytes than any machine has."""

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", re.IGNORECASE | re.ASCII)


def format_bytes(size: float) -> str:
    """Format bytes in binary units with at most one decimal: 512 B, 1.5 KiB, 22.9 GiB."""
    value = float(size)
    for unit in _BINARY[:-1]:
        if abs(value) < 1000:
            return f"{value:.0f} {unit}" if unit == "B" or abs(value) >= 100 else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} {_BINARY[-1]}"


def format_of(used: float, total: float) -> str:
    """Format two sizes in the unit of the larger, so that they compare: 22.9 of 55.0 GiB, 0.7 of 23.5 GiB."""
    number, _, unit = format_bytes(max(used, total)).partition(" ")
    scale = max(used, total) / float(number) if float(number) else 1.0

    def figure(size: float) -> str:
        own, _, own_unit = format_bytes(size).partition(" ")
        return own if own_unit == unit else f"{size / scale:.1f}" if size else "0"

    return f"{figure(used)} of {figure(total)} {unit}"


def parse_size(text: str) -> int:
    """Parse "12 GiB", "64G" (binary), "500MB" (decimal) or "1024" into bytes. Raises ValueError with the remedy."""
    match = _SIZE.fullmatch(text)
    factor = _SUFFIXES.get(match[2].lower()) if match else None
    size = float(match[1]) * factor if match is not None and factor is not None else MAX_SIZE
    if size >= MAX_SIZE:
        raise ValueError(f"{text[:40]!r} is not a size; write it as 64G, 512 MiB or 500MB")
    return int(size)


def format_share(share: float) -> str:
    """Format 0..1 as whole percent, rounded down: only what is complete is 100 %."""
    return f"{int(100 * share + 1e-9)} %"


def format_duration(seconds: float) -> str:
    """Format seconds as a clock: 0:07, 12:34, 1:02:03, 2d 03:04:05."""
    whole = max(0, int(seconds))
    days, rest = divmod(whole, 86400)
    hours, rest = divmod(rest, 3600)
    minutes, secs = divmod(rest, 60)
    if days:
        return f"{days}d {hours:02}:{minutes:02}:{secs:02}"
    return f"{hours}:{minutes:02}:{secs:02}" if hours else f"{minutes}:{secs:02}"


def format_rough(seconds: float) -> str:
    """Format seconds as a person would state a remaining time: 40 s, 5 min, 1 h 20 min."""
    if seconds < 90:
        return f"{max(0, round(seconds)):d} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours >= 10:
        return f"{round(seconds / 3600)} h"
    return f"{hours} h {minutes:02} min"


CLOCK_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)
"""Seconds between two marks on a time axis that people read easily."""


def clock_step(span: float, most: float) -> float:
    """Return the seconds between the marks of an axis of `span` seconds: the least of CLOCK_STEPS, or days, that makes
    at most so many of it."""
    days = CLOCK_STEPS[-1] * math.ceil(span / CLOCK_STEPS[-1] / most)
    return next((step for step in CLOCK_STEPS if span <= most * step), days)


def format_band(low: float, high: float) -> str:
    """Format a band of remaining seconds, in the unit of its high end: 24-31 min, 0.5-2 min, 50 min-2 h 10 min."""
    first, last = _rough_beside(low, high), _rough_beside(high, high)
    if first == last:
        return last
    if first.rsplit(" ", 1)[-1] == last.rsplit(" ", 1)[-1] and " h " not in first + last:
        first = first.rsplit(" ", 1)[0]
    return f"{first}–{last}"


def format_left(seconds: float, low: float, high: float) -> str:
    """Remaining seconds with their band, in one unit: 27 min (24-31 min), 1.5 min (1-2 min). Only the band if rounding
    puts the middle on its edge."""
    middle, band = _rough_beside(seconds, high), format_band(low, high)
    return band if middle in (_rough_beside(low, high), _rough_beside(high, high)) else f"{middle} ({band})"


def _rough_beside(seconds: float, most: float) -> str:
    """Format seconds as roughly as `most` seconds, so that both compare: 1.5 min next to 2 min, 40 s next to 80 s."""
    if most < 90:
        return format_rough(seconds)
    minutes = seconds / 60
    if minutes < 1.75:
        return f"{round(2 * minutes) / 2:g} min"
    if round(most / 60) < 90 or round(minutes) < 60:
        return f"{round(minutes)} min"
    return format_rough(seconds) if round(minutes) >= 90 else f"1 h {round(minutes) - 60:02} min"
