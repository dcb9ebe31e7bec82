"""Computes medians and spreads, and writes figures: JSON, plots, and the tables of bench/README.md.

Every bench writes the same kind of JSON (see `publish`). Does not know what was measured.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import math
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

README = Path(__file__).with_name("README.md")
BEGUN = time.time()
LOAD_BEFORE = os.getloadavg()[0]


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


def versions() -> dict[str, str]:
    """Of what a figure may depend on; stoker's with its commit, where the checkout tells."""
    found = {name: importlib.metadata.version(name) for name in ("stoker", "ninja", "textual")}
    describe = ["git", "-C", str(README.parent), "describe", "--always", "--dirty"]
    told = subprocess.run(describe, capture_output=True, text=True, check=False).stdout.strip()
    return {**found, "commit": told, "python": platform.python_version(), "kernel": platform.release()}


def load() -> float:
    """Runnable processes on the whole machine, mean of the last minute."""
    return os.getloadavg()[0]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What every bench takes."""
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep every single figure here; plots beside it")
    parser.add_argument("--write", action="store_true", help="put tables and plots into bench/")


def publish(
    name: str,
    figures: Any,
    text: str,
    *,
    out: Path | None,
    write: bool,
    summary: Mapping[str, Any] | None = None,
    plots: Mapping[str, str] | None = None,
) -> None:
    """Print the tables, and keep what was measured.

    `out` gets JSON: `bench`, `machine`, `versions`, `date`, `seconds` (how long it took), `load` (before and after),
    `figures` (every single one), `summary` (what they come to), `text` (the tables), `plots` (their names). With
    `write`, the tables go into bench/README.md and the plots, which are SVG, into bench/plots/.
    """
    print(text)
    text = "\n\n".join([*(f"![{plot}](plots/{plot}.svg)" for plot in plots or ()), text.strip()])
    if out is not None:
        told = {
            "bench": name,
            "machine": machine(),
            "versions": versions(),
            "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(BEGUN)),
            "seconds": round(time.time() - BEGUN, 1),
            "load": [round(LOAD_BEFORE, 2), round(load(), 2)],
            "summary": summary or {},
            "figures": figures,
            "plots": list(plots or ()),
            "text": text,
        }
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(told, indent=1) + "\n")
        draw(plots or {}, out.parent)
    if write:
        draw(plots or {}, README.parent)
        fill(README, name, text)


def fill(page: Path, name: str, text: str) -> None:
    """Put `text` where the page says `<!-- NAME -->` to `<!-- /NAME -->`, in place of what stands there."""
    begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
    before, found, rest = page.read_text().partition(begin)
    if not found or end not in rest:
        raise SystemExit(f"{page} has no place for {name}")
    page.write_text(f"{before}{begin}{text}\n{end}{rest.partition(end)[2]}")


def draw(plots: Mapping[str, str], folder: Path) -> None:
    """Put plots, SVG by name, into the folder's `plots`."""
    for name, svg in plots.items():
        (folder / "plots").mkdir(exist_ok=True)
        (folder / "plots" / f"{name}.svg").write_text(svg)


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines()
