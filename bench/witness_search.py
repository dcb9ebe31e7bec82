"""Searches the shortest schedule with full knowledge, and proves that a build can follow it.

Knows jobs, cores and bytes. Knows neither policies nor what is compared.
"""

from __future__ import annotations

import math
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

from stoker.simulate.simulated_machine import NEVER, Live, Machine
from stoker.simulate.trace import TraceJob

SOURCE = Path(__file__).with_name("witness_search.cpp")
EVERYTHING = 10**9
"""A window through which every job is seen at once."""

MARGIN = 1.0
"""Bytes beyond the budget that rounding may come to."""

STRETCH = 1 + 1e-9
"""By this every start is later, so that rounding lets nothing begin before that has ended which it follows."""


def search(
    jobs: Sequence[TraceJob], cores: int, budget: float, slot: float, rounds: int, seed: int = 1
) -> tuple[float, ...]:
    """Return when each job starts, in seconds, on a time that is cut into slots of so many; the search makes so many
    attempts to shorten the schedule."""
    lives = [held(job, slot) for job in jobs]
    head = f"{cores} {budget!r} {rounds} {seed} {len(jobs)}"
    lines = [head, *(" ".join([str(len(life)), *(repr(size) for size in life)]) for life in lives)]
    done = subprocess.run([_program()], input="\n".join(lines), capture_output=True, text=True, check=True)
    return tuple(slot * int(line) for line in done.stdout.split())


def held(job: TraceJob, slot: float) -> list[float]:
    """Return the most that a job holds in each slot of its life."""
    most = [0.0] * max(1, math.ceil(job.seconds / slot - 1e-9))
    for before, after in pairwise(job.points):
        begin, end = before.age / job.width, after.age / job.width
        for number in range(int(begin / slot), min(len(most), int(end / slot) + 1)):
            most[number] = max(most[number], *_at_edges(before.size, after.size, begin, end, number * slot, slot))
    return most


def _at_edges(left: float, right: float, begin: float, end: float, start: float, slot: float) -> tuple[float, float]:
    """Return what is held at both ends of the part of a straight line that lies in a slot."""
    if end <= begin:
        return left, right
    slope = (right - left) / (end - begin)
    ages = max(begin, start), min(end, start + slot)
    return left + slope * (ages[0] - begin), left + slope * (ages[1] - begin)


class Planned:
    """A driver that starts each job at its time, and stops none."""

    def __init__(self, starts: Sequence[float]) -> None:
        self._starts = [STRETCH * start for start in starts]

    def tick(self, machine: Machine) -> float:
        """Start what is due; return when the next is."""
        machine.ended.clear()
        machine.offer(EVERYTHING)
        due: list[Live] = [live for live in machine.deck.values() if self._starts[live.jid] <= machine.now]
        for live in due:
            machine.start(live)
        return min((self._starts[jid] for jid in machine.deck), default=NEVER)


def followed(jobs: Sequence[TraceJob], cores: int, budget: float, starts: Sequence[float]) -> float:
    """Return how long the build takes on the simulated machine if each job starts at its time.

    Raises ValueError unless all jobs fit into the budget and the cores all the time.
    """
    machine, driver, most = Machine(jobs, cores, budget + MARGIN), Planned(starts), 0
    while not machine.over:
        until = driver.tick(machine)
        most = max(most, len(machine.running))
        machine.advance(until)
    if machine.tally.kills or most > cores:
        raise ValueError(f"the schedule holds more than {budget:.0f} bytes, or runs {most} jobs on {cores} cores")
    return machine.now


@cache
def _program() -> str:
    """Build the search; it is kept until this process ends."""
    _FOLDERS.append(tempfile.TemporaryDirectory(prefix="witness-"))
    program = str(Path(_FOLDERS[0].name) / "search")
    subprocess.run(["g++", "-O2", "-std=c++17", "-o", program, str(SOURCE)], check=True)
    return program


_FOLDERS: list[tempfile.TemporaryDirectory[str]] = []
