"""Measures how soon stoker reacts to events rather than to a user: a job's end, falling memory, a new viewer.

Each function returns milliseconds, one value per repetition. Does not know how they are reported.
"""

from __future__ import annotations

import math
import os
import random
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from stoker.sense.machine.cgroup import Cgroups
from support.burn import burns, write_burns
from support.grouped import Grouped, is_held
from support.memory_group import MIB, MemoryGroup
from support.procs import Process, below, command, processes, stopped
from support.program import PATIENCE, Stoker, until, write_ninja
from support.terminal import Terminal

POLL_SECONDS = 0.001
REST = (0.3, 0.9)
"""Seconds between two times, at random, so that no rhythm of stoker's is met."""

PLACES = 8
FIRST = 20
"""Of the jobs that end one by one: how many run at once, and how many more there are than times."""

LIMIT, FLOOR, NEAR, BELOW = 1200 * MIB, 48 * MIB, 150 * MIB, 30 * MIB
"""A memory group, its floor (decide/policy/thresholds.py), and what is left of it before and behind the step."""

GROWING = 3
GROWTH_SECONDS, GROWTH_MIB = 4000.0, 2000
"""Jobs that grow by 5 MiB in a CPU second, and so may be frozen, for as long as they are needed."""

TRIES = 4
"""Builds for each freeze, at the most; one build each: stoker learns that its jobs grow, and lets them go on late."""

PRIORS = """\
grows: {output: "o*", spread: 0.1, time_spread: 0.1, points: {0: 10 MiB, 4000: 10 MiB}}
"""
"""They are expected not to, or they would be stopped long before, as soon as what is left is less than they need."""

HOG = """
import sys
held = []
for line in sys.stdin:
    for _ in range(int(line) >> 20):
        held.append(bytearray(1 << 20))
    print("done", flush=True)
"""
"""Each line says how many more bytes to hold. Little by little, so that it is seen to come."""


def death_to_next(times: int) -> list[float]:
    """From the end of a job's process until a job that was held goes on."""
    jobs = times + FIRST
    with _stoker() as stoker:
        folder = stoker.root / "project"
        write_ninja(folder, [(f"o{n}", f"read x <go{n}; touch o{n}") for n in range(jobs)])
        for n in range(jobs):
            os.mkfifo(folder / f"go{n}")
        build = _started(stoker, "-j", str(PLACES), "--", "ninja", "-C", str(folder))
        supervisor = stoker.supervisor(build)["supervisor_pid"]
        until(lambda: len(_going(supervisor)) == PLACES and len(_jobs(supervisor)) > PLACES, "jobs on deck")
        return [_one_death(folder, supervisor) for _ in _times(times)]


def _one_death(folder: Path, supervisor: int) -> float:
    """End the oldest that runs."""
    until(lambda: len(_going(supervisor)) == PLACES and len(_jobs(supervisor)) > PLACES, "jobs on deck")
    going = {job[0].pid for job in _going(supervisor)}
    waiting = [job[0].pid for job in _jobs(supervisor) if job[0].pid not in going]
    pid = min(going)
    name = command(pid)[2].split(";")[0].rpartition("<")[2]
    end = os.pidfd_open(pid)
    (folder / name).write_text("\n")
    select.select([end], [], [], PATIENCE)
    os.close(end)
    return _until(lambda: len(stopped(waiting)) < len(waiting))


def memory_to_freeze(times: int) -> list[float]:
    """From the moment when something else has taken the memory below the floor until a job that grows is stopped."""
    found: list[float] = []
    for _ in range(TRIES * times):
        if len(found) >= times:
            return found[:times]
        found += _freeze()
    raise AssertionError("jobs are stopped before memory is short, every time")


def _freeze() -> list[float]:
    """One build; none if it was stopped too soon."""
    with _stoker(MemoryGroup(LIMIT)) as stoker:
        assert isinstance(stoker, Grouped)
        folder = write_burns(stoker.root / "project", burns(GROWING, GROWTH_SECONDS, GROWTH_MIB))
        priors = stoker.root / "config" / "stoker" / "priors.yaml"
        priors.parent.mkdir(parents=True)
        priors.write_text(PRIORS)
        _started(stoker, "-j", str(GROWING), "--", "ninja", "-C", str(folder))
        words = stoker.group.wrap([sys.executable, "-I", "-c", HOG])
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as hog:
            found = _one_freeze(stoker, hog)
            hog.kill()
        return [] if found is None else [found]


def _one_freeze(stoker: Grouped, hog: subprocess.Popen[str]) -> float | None:
    """Take memory in two steps, so that it is looked at often before the second one. 0 if the job is stopped sooner.

    None if one is stopped before the second step: stoker expects that it climbs into what is left.
    """
    until(lambda: len(stoker.going()) == GROWING, "jobs that run")
    pids = [job[0].pid for job in stoker.going()]
    _ask(hog, _left(stoker) - NEAR)
    _wait(hog)
    time.sleep(1.5)
    if stopped(pids):
        return None
    _ask(hog, _left(stoker) - BELOW)
    short = math.inf

    def look() -> bool:
        nonlocal short
        if short == math.inf and _left(stoker) < FLOOR:
            short = time.monotonic()
        return bool(stopped(pids))

    _until(look)
    return 1000 * max(0.0, time.monotonic() - short)


def _left(stoker: Grouped) -> int:
    """What the group has left, as stoker reads it."""
    return Cgroups(memory_v1=(stoker.group.folder,)).memory_limits()[0].available


def _ask(hog: subprocess.Popen[str], size: int) -> None:
    assert hog.stdin is not None
    hog.stdin.write(f"{max(0, size)}\n")
    hog.stdin.flush()


def _wait(hog: subprocess.Popen[str]) -> None:
    assert hog.stdout is not None
    assert hog.stdout.readline() == "done\n"


def attach_to_screen(times: int, jobs: int) -> list[float]:
    """From the start of `stoker attach` until the terminal shows the running jobs."""
    with _stoker() as stoker:
        folder = write_burns(stoker.root / "project", burns(jobs, GROWTH_SECONDS))
        build = _started(stoker, "-j", str(jobs), "--", "ninja", "-C", str(folder))
        until(lambda: stoker.status(build)["progress"]["running"] == jobs, "all jobs at work")
        return [_one_attach(stoker, build) for _ in _times(times)]


def _one_attach(stoker: Stoker, build: str) -> float:
    begin = time.monotonic()
    terminal = Terminal(stoker.argv("attach", build), stoker.env, stoker.root, columns=100, lines=30)
    try:
        terminal.wait_for(lambda seen: "o000" in seen and "running" in seen)
        return 1000 * (time.monotonic() - begin)
    finally:
        terminal.close()


# -- what is common --------------------------------------------------------------------------------------------


@contextmanager
def _stoker(group: MemoryGroup | None = None) -> Iterator[Stoker]:
    """A stoker of its own, all of which is gone behind the block."""
    root = Path(tempfile.mkdtemp(prefix="stoker-reactions-"))
    stoker = Stoker(root) if group is None else Grouped(root, group)
    try:
        yield stoker
    finally:
        stoker.end_all()
        if group is not None:
            group.close()
        shutil.rmtree(stoker.runtime, ignore_errors=True)
        shutil.rmtree(root, ignore_errors=True)


def _started(stoker: Stoker, *words: str) -> str:
    started = stoker.run("run", "--detach", *words)
    assert started.returncode == 0, started.stderr
    return started.stdout.decode().strip()


def _times(count: int) -> Iterator[int]:
    chance = random.Random(1)
    for number in range(count):
        time.sleep(chance.uniform(*REST))
        yield number


def _until(condition: Callable[[], bool]) -> float:
    """Milliseconds until it is so."""
    begin = time.monotonic()
    while not condition():
        if time.monotonic() - begin > PATIENCE:
            raise AssertionError("nothing happened")
        time.sleep(POLL_SECONDS)
    return 1000 * (time.monotonic() - begin)


def _jobs(supervisor: int) -> list[list[Process]]:
    """Every job of the build with all below it, zombies left out."""
    table = {p.pid: p for p in processes().values() if p.state not in "ZX"}
    ours = below([supervisor], table)
    ninjas = {p.pid for p in ours if p.name == "ninja"}
    return [[p, *below([p.pid], table)] for p in ours if p.parent in ninjas]


def _going(supervisor: int) -> list[list[Process]]:
    return [job for job in _jobs(supervisor) if not is_held(job)]
