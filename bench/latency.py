"""Measures the time from a key or an event to its effect on jobs (in /proc) and on the screen. See bench/README.md.

    python -m bench.latency [--jobs 30] [--times 40] [--json FILE] [--write]

The jobs burn CPU time, and all run. The level is lowered and raised by one, and everything is frozen and thawed: by
keys typed into the real screen on a PTY, and by the protocol's commands, as sent by `stoker jobs` and `stoker pause`.
Reactions without a user are in reactions.py.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bench.catalogue import memory_groups
from bench.figures import add_arguments, load, machine, percentile, publish, table
from bench.reactions import attach_to_screen, death_to_next, memory_to_freeze
from stoker.config.paths import BuildPaths
from stoker.report.svg import Axis, Bar, bars
from stoker.serve.client import BuildSource
from support.burn import burns, write_burns
from support.procs import below
from support.program import PATIENCE, Stoker, until
from support.terminal import Terminal

FOREVER = 100_000.0
POLL_SECONDS = 0.001
TARGET_MS = 150.0


class Jobs:
    """All jobs of the build, running or stopped; none of them ends by itself."""

    def __init__(self, supervisor: int, count: int) -> None:
        self._supervisor = supervisor
        until(lambda: len(self._find()) >= count, "the jobs")
        time.sleep(1.0)  # the last of a wide window may still be on its way
        self._files = [os.open(f"/proc/{pid}/stat", os.O_RDONLY) for pid in self._find()]

    def _find(self) -> list[int]:
        ours = below([self._supervisor])
        ninjas = {p.pid for p in ours if p.name == "ninja"}
        return [p.pid for p in ours if p.parent in ninjas]

    def going(self) -> int:
        """How many are not stopped."""
        return sum(b") T " not in os.pread(fd, 128, 0) for fd in self._files)

    def close(self) -> None:
        """Let go of their files."""
        for fd in self._files:
            os.close(fd)


def effect(jobs: Jobs, wanted: int, act: Callable[[], object]) -> float:
    """Milliseconds from the act until so many jobs are going."""
    begin = time.monotonic()
    act()
    while jobs.going() != wanted:
        if time.monotonic() - begin > PATIENCE:
            raise AssertionError(f"{jobs.going()} jobs are going, not {wanted}")
        time.sleep(POLL_SECONDS)
    return 1000 * (time.monotonic() - begin)


def series(jobs: Jobs, count: int, times: int, acts: dict[str, Callable[[], object]]) -> dict[str, list[float]]:
    """Each act so many times, in an order that always leads back to `count` running jobs."""
    wanted = {"level down": count - 1, "level up": count, "pause now": 0, "resume": count}
    found: dict[str, list[float]] = {name: [] for name in wanted}
    chance = random.Random(1)
    for _ in range(times):
        for name in wanted:
            time.sleep(chance.uniform(0.3, 0.9))
            found[name].append(effect(jobs, wanted[name], acts[name]))
    return found


def by_command(paths: BuildPaths) -> dict[str, Callable[[], object]]:
    """What `stoker jobs`, `pause` and `unpause` send, without the start of a Python."""
    source = BuildSource(paths)

    def send(verb: str, **arguments: object) -> Callable[[], object]:
        return lambda: asyncio.run(source.command(verb, **arguments))

    return {
        "level down": send("level", change=-1),
        "level up": send("level", change=1),
        "pause now": send("pause", now=True),
        "resume": send("resume"),
    }


def by_key(terminal: Terminal) -> dict[str, Callable[[], object]]:
    """What a person types."""
    keys = {"level down": "-", "level up": "+", "pause now": "P", "resume": "P"}
    return {name: partial(terminal.send, key) for name, key in keys.items()}


def measure(count: int, times: int) -> dict[str, Any]:
    """Both ways, on one build."""
    root = Path(tempfile.mkdtemp(prefix="stoker-latency-"))
    stoker = Stoker(root)
    try:
        folder = write_burns(root / "project", burns(count, FOREVER))
        started = stoker.run("run", "--detach", "-j", str(count), "--", "ninja", "-C", str(folder))
        assert started.returncode == 0, started.stderr
        build = started.stdout.decode().strip()
        jobs = Jobs(stoker.supervisor(build)["supervisor_pid"], count)
        os.environ["XDG_RUNTIME_DIR"], os.environ["XDG_STATE_HOME"] = str(stoker.runtime), str(stoker.state)
        found = {"command": series(jobs, count, times, by_command(BuildPaths(stoker.folder(build))))}
        terminal = Terminal(stoker.argv("attach", build), stoker.env, root, columns=100, lines=30)
        try:
            terminal.wait_for("running")
            found["key"] = series(jobs, count, times, by_key(terminal))
        finally:
            terminal.close()
        jobs.close()
        return found
    finally:
        stoker.end_all()
        shutil.rmtree(stoker.runtime, ignore_errors=True)
        shutil.rmtree(root, ignore_errors=True)


def reactions(count: int, times: int) -> dict[str, list[float]]:
    """What happens by itself. Memory only where this machine lets us limit it."""
    found = {
        "a job's end, until the next goes on": death_to_next(times),
        "attach, until the screen shows the jobs": attach_to_screen(times, count),
    }
    if not memory_groups():
        found["memory below the floor, until a job is frozen"] = memory_to_freeze(times)
    return found


def rows(found: dict[str, dict[str, list[float]]]) -> list[Sequence[str]]:
    """A line for each way and act."""
    return [
        [way, act, *(f"{percentile(values, p):.0f}" for p in (50, 95, 100))]
        for way, acts in found.items()
        for act, values in acts.items()
    ]


def plots_of(found: dict[str, dict[str, list[float]]]) -> dict[str, str]:
    """The middle one of each act, up to the one that 95 of 100 do not exceed."""
    groups = {
        act: [
            Bar(percentile(found[way][act], 50), min(found[way][act]), percentile(found[way][act], 95)) for way in found
        ]
        for act in next(iter(found.values()))
    }
    axis = Axis("ms until the jobs have stopped or go on: median, least to 95 of 100", mark=TARGET_MS)
    return {"latency": bars("From a key or a command to its effect", [f"by {way}" for way in found], groups, axis)}


def main() -> None:
    """Measure and publish."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--jobs", type=int, default=30)
    parser.add_argument("--times", type=int, default=40, help="how often each act is done in each way")
    add_arguments(parser)
    args = parser.parse_args()
    before = load()
    found = measure(args.jobs, args.times)
    events = {"": reactions(args.jobs, args.times)}
    head = f"{machine()}; load before: {before:.1f}; {args.jobs} running jobs, each act {args.times} times."
    text = (
        f"{head} Target: p95 ≤ {TARGET_MS:.0f} ms.\n\n{table(('by', 'act', 'p50, ms', 'p95', 'most'), rows(found))}\n\n"
        f"By themselves:\n\n{table(('what', 'p50, ms', 'p95', 'most'), [row[1:] for row in rows(events)])}\n"
    )
    plots = plots_of(found)
    found = {**found, "by itself": events[""]}
    summary = {f"{way}, {act}": percentile(ms, 95) for way, acts in found.items() for act, ms in acts.items()}
    publish("latency", found, text, out=args.json, write=args.write, summary=summary, plots=plots)


if __name__ == "__main__":
    main()
