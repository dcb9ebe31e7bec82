"""Faults in the middle of a governed build, and what must be true afterwards whatever they were.

One round is one build in a memory group of its own, with one or two faults at random moments. Everything that the
build is made of lives in that group, so nothing can be left behind unseen.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stoker.act.tree import start_ticks
from support.burn import Burn, write_burns
from support.grouped import Grouped
from support.memory_group import MIB, MemoryGroup
from support.procs import process, stopped
from support.program import until

JOBS = 14
LIMIT, SUNKEN_LIMIT = 700 * MIB, 450 * MIB
"""Two of the larger jobs beside stoker's own 60 MiB fit into either; a wide plain ninja fits into neither."""

END_SECONDS = 90.0
"""A build that takes longer than this after a fault hangs: it takes 4 s, and the longest silence that the keeper
waits out before it stands in for an engine is a quarter of a minute."""

GONE_SECONDS = 45.0
"""How long keeper and engine may take to leave after the build's end."""


@dataclass(slots=True)
class Round:
    """What was done to one build, and what became of it. All lists are empty when nothing is wrong."""

    faults: list[str] = field(default_factory=list)
    state: str = ""
    reason: str = ""
    hung: bool = False
    left_stopped: list[str] = field(default_factory=list)
    orphans: list[str] = field(default_factory=list)
    lost_records: int = 0
    untrue: list[str] = field(default_factory=list)

    @property
    def wrong(self) -> bool:
        """Whether anything that must never happen has happened."""
        return bool(self.hung or self.left_stopped or self.orphans or self.lost_records or self.untrue)


class Attack:
    """The faults. Each returns whether it found somebody to harm."""

    def __init__(self, stoker: Grouped, build: str, chance: random.Random) -> None:
        self._stoker = stoker
        self._build = build
        self._chance = chance

    def engine_killed(self) -> bool:
        return _signal(self._engine(), signal.SIGKILL)

    def engine_killed_often(self) -> bool:
        """More often than the keeper restarts it in a minute."""
        killed = 0
        for _ in range(8):
            killed += _signal(self._engine(), signal.SIGKILL)
            time.sleep(0.2)
        return killed > 0

    def engine_stopped(self) -> bool:
        """Stopped for good: nobody sets it going again but the keeper."""
        return _signal(self._engine(), signal.SIGSTOP)

    def keeper_killed(self) -> bool:
        return _signal(self._stoker.keeper(self._build)["keeper_pid"], signal.SIGKILL)

    def ninja_killed(self) -> bool:
        ninjas = self._stoker.ninjas()
        return bool(ninjas) and _signal(ninjas[0].pid, signal.SIGKILL)

    def job_killed(self) -> bool:
        jobs = self._stoker.jobs()
        return bool(jobs) and _signal(self._chance.choice(self._chance.choice(jobs)).pid, signal.SIGKILL)

    def limit_cut(self) -> bool:
        if self._stoker.group.limit == SUNKEN_LIMIT:
            return False
        with contextlib.suppress(OSError):  # it holds more than that for as long as we wait
            self._stoker.group.lower_limit(SUNKEN_LIMIT)
            return True
        return False

    def _engine(self) -> int:
        """The newest engine, alive or not; the first one takes a moment to write itself down."""

        def told() -> list[int]:
            return [e["pid"] for e in self._stoker.events(self._build) if e["type"] == "engine_started"]

        return int(until(told, "an engine")[-1])


FAULTS: Mapping[str, Callable[[Attack], bool]] = {
    "engine killed": Attack.engine_killed,
    "engine killed often": Attack.engine_killed_often,
    "engine stopped": Attack.engine_stopped,
    "keeper killed": Attack.keeper_killed,
    "ninja killed": Attack.ninja_killed,
    "job killed": Attack.job_killed,
    "limit cut": Attack.limit_cut,
}

FATAL = {"keeper killed", "ninja killed", "job killed", "limit cut"}
"""Faults after which a build may fail, if it says why. After all others it must get through."""


def write_project(folder: Path) -> Path:
    """Jobs of a quarter of a second to one, of 20 to 150 MiB."""
    jobs = [Burn(f"o{n:03}", 0.25 + 0.25 * (n % 4), (20, 150, 60, 90, 40)[n % 5]) for n in range(JOBS)]
    return write_burns(folder, jobs)


def play(root: Path, project: Path, chance: random.Random, only: Sequence[str] = ()) -> Round:
    """One build in `root` with faults (or just these, in this order), to its end and beyond."""
    for output in project.glob("o*"):
        output.unlink()
    (project / ".ninja_log").unlink(missing_ok=True)
    with MemoryGroup(LIMIT) as group:
        stoker = Grouped(root, group)
        build = stoker.detach("ninja", "-C", str(project))
        result = Round()
        attack = Attack(stoker, build, chance)
        for name in only or chance.sample(list(FAULTS), chance.choice((1, 1, 2))):
            time.sleep(chance.uniform(0.2, 2.0))
            if not _over(stoker, build) and FAULTS[name](attack):
                result.faults.append(name)
        _judge(result, stoker, build, project)
        return result


def _judge(result: Round, stoker: Grouped, build: str, project: Path) -> None:
    """Wait for the end, then look at what is left and at what is told."""
    result.hung = not _within(END_SECONDS, lambda: _over(stoker, build))
    gone = _within(GONE_SECONDS, lambda: not stoker.group.pids())
    if not gone:
        pids = stoker.group.pids()
        result.left_stopped = [_words(pid) for pid in stopped(pids)]
        result.orphans = [_words(pid) for pid in pids]
    status = stoker.status(build)
    result.state, result.reason = status["state"], status["reason"]
    result.lost_records = _lost(stoker.events(build), status["state"])
    result.untrue = _untruths(result, status, project)


def _lost(events: Sequence[Mapping[str, Any]], state: str) -> int:
    """Records that the journal should have: numbers left out, the end, and the end of each job of a whole build.

    A job that failed before the plan was read is told under its command's name; its good end, under its own.
    """
    if not events:
        return 1
    told = {e["output"] for e in events if e["type"] == "job_finished" and e["outcome"] == "ok"}
    untold = JOBS - len(told) if state == "done" else 0
    cut_short = bool(events[-1]["type"] != "build_ended")
    return int(events[-1]["seq"]) - len(events) + cut_short + untold


def _untruths(result: Round, status: dict[str, Any], project: Path) -> list[str]:
    outputs = len(list(project.glob("o[0-9]*")))
    found = []
    if status["state"] not in ("done", "failed"):
        found.append(f"ended as {status['state']}")
    if status["state"] == "done" and outputs != JOBS:
        found.append(f"done with {outputs} of {JOBS} outputs")
    if status["state"] == "failed" and not set(result.faults) & FATAL:
        found.append(f"failed for nothing: {status['reason']}")
    if status["state"] == "failed" and not status["reason"]:
        found.append("failed without a reason")
    if status["state"] == "done" and status["exit_code"] != 0:
        found.append(f"done with exit status {status['exit_code']}")
    return found


def _over(stoker: Grouped, build: str) -> bool:
    """The build has ended: the keeper says so, or it is gone and so is the command."""
    if (stoker.folder(build) / "exit.json").exists():
        return True
    keeper = json.loads((stoker.folder(build) / "keeper.json").read_bytes())
    whole = ("keeper_pid", "keeper_start"), ("build_pid", "build_start")
    return all(start_ticks(keeper[pid]) != keeper[start] for pid, start in whole)


def _within(seconds: float, condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _signal(pid: int, signum: signal.Signals) -> bool:
    if not pid:
        return False
    try:
        os.kill(pid, signum)
    except ProcessLookupError:
        return False
    return True


def _words(pid: int) -> str:
    """A process as a person would want to hear of it."""
    p = process(pid)
    return f"{pid} gone" if p is None else f"{pid} {p.name} {p.state}"
