"""Medians, spreads and where figures are written: JSON beside the script's choice, and the tables of bench/README.md.

Knows nothing of what was measured.
"""

from __future__ import annotations

import json
import math
import os
import platform
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

README = Path(__file__).with_name("README.md")


class Spread(NamedTuple):
    """Several values of one thing: their median, least and most."""

    median: float
    low: float
    high: float

    def text(self, digits: int = 2) -> str:
        """`1.02 (1.00–1.05)`."""
        return f"{self.median:.{digits}f} ({self.low:.{digits}f}–{self.high:.{digits}f})"


def spread(values: Sequence[float]) -> Spread:
    """Of at least one value."""
    return Spread(statistics.median(values), min(values), max(values))


def percentile(values: Sequence[float], percent: float) -> float:
    """The value that this percent of all do not exceed, by nearest rank."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def machine() -> str:
    """What it ran on, in one line."""
    model = next((line.split(": ", 1)[1] for line in _lines("/proc/cpuinfo") if line.startswith("model name")), "?")
    memory = next(int(line.split()[1]) for line in _lines("/proc/meminfo") if line.startswith("MemTotal"))
    cores = len(os.sched_getaffinity(0))
    day = time.strftime("%d %B %Y")
    python = platform.python_version()
    return f"{cores} cores ({model}), {memory / 2**20:.1f} GiB, Linux {platform.release()}, Python {python}; {day}"


def load() -> float:
    """Runnable processes on the whole machine, mean of the last minute."""
    return os.getloadavg()[0]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def publish(name: str, result: dict[str, Any], text: str, *, out: Path | None, write: bool) -> None:
    """Print the tables; keep `result` as JSON in `out`; with `write`, put the tables into bench/README.md.

    There they stand between `<!-- NAME -->` and `<!-- /NAME -->`, and nothing else does.
    """
    print(text)
    if out is not None:
        out.write_text(json.dumps(result, indent=1) + "\n")
    if write:
        begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        page = README.read_text()
        before, found, rest = page.partition(begin)
        if not found or end not in rest:
            raise SystemExit(f"{README} has no place for {name}")
        README.write_text(f"{before}{begin}{text}\n{end}{rest.partition(end)[2]}")


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines()
