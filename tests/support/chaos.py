"""Faults in the middle of a governed build, and what must be true afterwards whatever they were.

One round is one build in a memory group of its own, with one or two faults at random moments. Everything that the
build is made of lives in that group, so nothing can be left behind unseen.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stoker.act.watchdog_call import watchdogs_and_engines_of
from stoker.config.paths import BuildPaths
from stoker.contract.process import start_ticks
from support.burn import Burn, write_burns
from support.grouped import Grouped
from support.memory_group import MIB, MemoryGroup
from support.procs import process, stopped
from support.program import Stoker, kill_supervisors, supervisors_in, until

JOBS = 14
PAGE = os.sysconf("SC_PAGE_SIZE")
STATE_DISK_FULL = "state disk full"
STATE_DISK_MIB = 1
"""What a build of 14 jobs writes down fits into it several times."""

LIMIT, SUNKEN_LIMIT = 700 * MIB, 450 * MIB
"""Two of the larger jobs beside stoker's own 60 MiB fit into either; a wide plain ninja fits into neither."""

END_SECONDS = 90.0
"""A build that takes longer than this after a fault hangs: it takes 4 s, and the longest silence that the supervisor
waits out before it stands in for an engine is a quarter of a minute."""

GONE_SECONDS = 45.0
"""How long supervisor and engine may take to leave after the build's end."""


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
    miscounted: list[str] = field(default_factory=list)

    @property
    def wrong(self) -> bool:
        """Whether anything that must never happen has happened."""
        lists = (self.left_stopped, self.orphans, self.untrue, self.miscounted)
        return bool(self.hung or self.lost_records or any(lists))


class Attack:
    """The faults. Each returns whether it found somebody to harm."""

    def __init__(self, stoker: Grouped, build: str, chance: random.Random) -> None:
        self._stoker = stoker
        self._build = build
        self._chance = chance

    def engine_killed(self) -> bool:
        return _signal(self._engine(), signal.SIGKILL)

    def engine_killed_often(self) -> bool:
        """More often than the supervisor restarts it in a minute."""
        killed = 0
        for _ in range(8):
            killed += _signal(self._engine(), signal.SIGKILL)
            time.sleep(0.2)
        return killed > 0

    def engine_stopped(self) -> bool:
        """Stopped for good: nobody sets it going again but the supervisor."""
        return _signal(self._engine(), signal.SIGSTOP)

    def supervisor_killed(self) -> bool:
        """A standby takes its place."""
        return _signal(self._supervisor(), signal.SIGKILL)

    def supervisor_killed_often(self) -> bool:
        """Until there is no standby left; then the engine calls a watchdog."""
        killed = 0
        while supervisors := supervisors_in(self._stoker.supervisor(self._build)):
            killed += _signal(supervisors[-1], signal.SIGKILL)
            time.sleep(self._chance.uniform(0.0, 0.5))
        return killed > 0

    def supervisor_stopped(self) -> bool:
        return _signal(self._supervisor(), signal.SIGSTOP)

    def supervisor_and_engine_killed(self) -> bool:
        """At once, in either order."""
        pids = [self._supervisor(), self._engine()]
        self._chance.shuffle(pids)
        return sum(_signal(pid, signal.SIGKILL) for pid in pids) == len(pids)

    def supervisor_watchdog_and_engine_killed(self) -> bool:
        """Within two seconds: the supervisor, who has taken its place, and the engine."""
        killed = _signal(self._supervisor(), signal.SIGKILL)
        time.sleep(self._chance.uniform(0.0, 1.0))
        killed |= _signal(self._supervisor(), signal.SIGKILL)
        time.sleep(self._chance.uniform(0.0, 1.0))
        return _signal(self._engine(), signal.SIGKILL) and killed

    def supervisors_watchdog_and_engine_killed(self) -> bool:
        """Supervisor and standbys, then the watchdog that the engine calls and the engine: a command repairs that."""
        kill_supervisors(self._stoker.supervisor(self._build))
        time.sleep(self._chance.uniform(0.0, 2.0))
        while pids_left := watchdogs_and_engines_of(BuildPaths(self._stoker.folder(self._build))):
            for pid in pids_left:
                _signal(pid, signal.SIGKILL)
        return self._heal()

    def all_killed(self) -> bool:
        """Whoever might start another is killed with the others: a command heals that."""
        self._stoker.kill_supervisors_and_engine(self._build)
        return self._heal()

    def _heal(self) -> bool:
        time.sleep(self._chance.uniform(0.0, 1.0))
        words = Stoker.argv(self._stoker, "status", self._build)
        healed = subprocess.run(self._stoker.group.wrap(words), env=self._stoker.env, capture_output=True, check=False)
        return healed.returncode == 0

    def _supervisor(self) -> int:
        """The supervisor that acts, 0 if there is none."""
        return next(reversed(supervisors_in(self._stoker.supervisor(self._build))), 0)

    def ninja_killed(self) -> bool:
        ninjas = self._stoker.ninjas()
        return bool(ninjas) and _signal(ninjas[0].pid, signal.SIGKILL)

    def job_killed(self) -> bool:
        """Between two jobs there may be none for a moment, and on a busy machine for a while."""
        while not _over(self._stoker, self._build):
            jobs = self._stoker.jobs()
            if jobs and _signal(self._chance.choice(self._chance.choice(jobs)).pid, signal.SIGKILL):
                return True
            time.sleep(0.02)
        return False

    def state_disk_full(self) -> bool:
        """To the end and beyond: nothing of it is given back."""
        with contextlib.suppress(OSError), (self._stoker.state / "filler").open("wb", buffering=0) as filler:
            while True:
                filler.write(bytes(PAGE))
        return True

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
    "supervisor killed": Attack.supervisor_killed,
    "supervisor killed often": Attack.supervisor_killed_often,
    "supervisor stopped": Attack.supervisor_stopped,
    "supervisor and engine killed": Attack.supervisor_and_engine_killed,
    "supervisor, its successor and engine killed": Attack.supervisor_watchdog_and_engine_killed,
    "supervisors, watchdog and engine killed": Attack.supervisors_watchdog_and_engine_killed,
    "all killed": Attack.all_killed,
    "ninja killed": Attack.ninja_killed,
    "job killed": Attack.job_killed,
    "limit cut": Attack.limit_cut,
    STATE_DISK_FULL: Attack.state_disk_full,
}

LOSES_RECORDS = {STATE_DISK_FULL}
"""Faults after which the journal may lack records of jobs, but neither the end nor what was counted."""

LOSES_STATUS = {"supervisor killed often", "supervisors, watchdog and engine killed", "all killed"}
"""Faults that leave nobody who could learn how the command ended."""

SUPERVISORS_KILLED = {
    "supervisor killed": 1,
    "supervisor and engine killed": 1,
    "supervisor, its successor and engine killed": 2,
}
"""A third one has no standby."""

KILLS_JOBS = {"ninja killed", "job killed", "limit cut"}


def write_project(folder: Path) -> Path:
    """Jobs of a quarter of a second to one, of 20 to 150 MiB."""
    jobs = [Burn(f"o{n:03}", 0.25 + 0.25 * (n % 4), (20, 150, 60, 90, 40)[n % 5]) for n in range(JOBS)]
    return write_burns(folder, jobs)


def play(root: Path, project: Path, chance: random.Random, only: Sequence[str] = ()) -> Round:
    """One build in `root` with faults (or just these, in this order), to its end and beyond."""
    for output in project.glob("o*"):
        output.unlink()
    (project / ".ninja_log").unlink(missing_ok=True)
    names = only or chance.sample(list(FAULTS), chance.choice((1, 1, 2)))
    with MemoryGroup(LIMIT) as group, _state_disk(root / "state", small=STATE_DISK_FULL in names):
        stoker = Grouped(root, group)
        build = stoker.detach("ninja", "-C", str(project))
        result = Round()
        attack = Attack(stoker, build, chance)
        for name in names:
            time.sleep(chance.uniform(0.2, 2.0))
            if not _over(stoker, build) and FAULTS[name](attack):
                result.faults.append(name)
        _judge(result, stoker, build, project)
        return result


@contextlib.contextmanager
def _state_disk(folder: Path, *, small: bool) -> Iterator[None]:
    """A disk of its own for what a build writes down, where it is to be filled."""
    if not small:
        yield
        return
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={STATE_DISK_MIB}m", "tmpfs", str(folder)], check=True)
    try:
        yield
    finally:
        shutil.copytree(folder, folder.with_name("state-kept"), ignore=shutil.ignore_patterns("filler"))
        until(
            lambda: subprocess.run(["umount", str(folder)], check=False, capture_output=True).returncode == 0,
            "the unmounting",
        )


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
    if not set(result.faults) & LOSES_RECORDS:
        result.lost_records = _lost(stoker.events(build), status["state"])
    result.untrue = _untruths(result, status, project)
    result.miscounted = _miscounts(status, project)


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
    lost = bool(set(result.faults) & LOSES_STATUS) or sum(SUPERVISORS_KILLED.get(name, 0) for name in result.faults) > 2
    if status["state"] == "failed" and not lost and not set(result.faults) & KILLS_JOBS:
        found.append(f"failed for nothing: {status['reason']}")
    if status["state"] == "failed" and status["exit_code"] is None and not lost:
        found.append(f"status lost for nothing: {status['reason']}")
    if status["state"] == "failed" and not status["reason"]:
        found.append("failed without a reason")
    if status["state"] == "done" and status["exit_code"] != 0:
        found.append(f"done with exit status {status['exit_code']}")
    return found


def _miscounts(status: dict[str, Any], project: Path) -> list[str]:
    """What the screens' figures and ninja's own log disagree on."""
    progress, found = status["progress"], []
    log = project / ".ninja_log"
    recorded = {line.split("\t")[3] for line in log.read_text().splitlines()[1:]} if log.exists() else set[str]()
    if progress["finished"] != len(recorded):
        found.append(f"{progress['finished']} finished, ninja recorded {len(recorded)}")
    if progress["total"] > JOBS or (progress["total_known"] and progress["total"] != JOBS):
        found.append(f"total {progress['total']} of {JOBS}")
    if progress["failed"] > JOBS - len(recorded):  # with nobody left to hold any, some may die for want of memory
        found.append(f"{progress['failed']} failed, ninja recorded {len(recorded)} that ended well")
    if progress["running"] or progress["on_deck"]:
        found.append(f"{progress['running']} running, {progress['on_deck']} on deck at the end")
    return found


def _over(stoker: Grouped, build: str) -> bool:
    """The build has ended: the supervisor says so, or it is gone with its standbys and so is the command."""
    if (stoker.folder(build) / "exit.json").exists():
        return True
    supervisor = stoker.supervisor(build)
    return not supervisors_in(supervisor) and start_ticks(supervisor["build_pid"]) != supervisor["build_start"]


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
