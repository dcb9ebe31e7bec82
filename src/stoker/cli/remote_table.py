"""`stoker simulate --remote`: its words, and its table. Parses and prints only."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from stoker.model.units import format_bytes, format_duration
from stoker.simulate.remote_build import MOST_SLOTS, STEPS, Far, RemoteResult, simulate_remote
from stoker.simulate.trace import TraceJob

HEAD = ("slots", "makespan", "x alone", "went away", "at once", "on the wire", "bound by")

_WORDS = re.compile(r"(\d{1,5})(?:,(\d{1,6}(?:\.\d{1,6})?)([MG]?))?", re.ASCII)
_BITS = {"": 1e9, "M": 1e6, "G": 1e9}


def far_of(text: str) -> Far:
    """Parse `100` or `100,10G`: slots, and what the wire from here carries in bits a second."""
    match = _WORDS.fullmatch(text)
    slots = int(match[1]) if match is not None else 0
    bits = float(match[2] or 1) * _BITS[match[3] or ""] if match is not None else 0.0
    if not 1 <= slots <= MOST_SLOTS or bits <= 0:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not SLOTS[,BANDWIDTH]: 1 to {MOST_SLOTS} slots, as in 100 or 100,10G (bits a second)"
        )
    return Far(slots, bits / 8)


def ladder(
    jobs: Sequence[TraceJob], cores: int, far: Far, done: Callable[[float], None] = lambda _: None
) -> list[RemoteResult]:
    """Return the build without others, with the usual numbers of slots below that, and with that.

    `done` is called with the share of it that is done.
    """
    results: list[RemoteResult] = []
    steps = [0, *(step for step in STEPS if step < far.slots), far.slots]
    for number, slots in enumerate(steps, 1):
        results.append(simulate_remote(jobs, cores, Far(slots, far.bandwidth, far.costs)))
        done(number / len(steps))
    return results


def as_json(results: Sequence[RemoteResult], far: Far) -> dict[str, Any]:
    """Return what a program gets."""
    return {"costs": asdict(far.costs), "compared": [{**asdict(r), "bound_by": r.bound_by} for r in results]}


def lines(results: Sequence[RemoteResult], cores: int, far: Far) -> list[str]:
    """Return the table, and what it rests on."""
    rows = [HEAD, *(_row(r, results[0].makespan) for r in results)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEAD))]
    table = ["  ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows]
    costs = far.costs
    sizes = f"{format_bytes(costs.sent)} go and {format_bytes(costs.received)} come back"
    return [
        *table,
        "",
        f"{cores} cores here, {8 * far.bandwidth / 1e9:g} Gbit/s each way.",
        f"Of each C++ compilation {costs.here:.0%} stays here, and {sizes} for a CPU second of it.",
        "Memory is plenty; nvcc, links and all else stay here. The model: docs/fleet.md",
    ]


def _row(result: RemoteResult, alone: float) -> tuple[str, ...]:
    return (
        str(result.slots),
        format_duration(result.makespan),
        f"{result.makespan / alone:.2f}" if alone else "",
        str(result.went),
        str(result.most),
        format_bytes(result.sent),
        result.bound_by,
    )
