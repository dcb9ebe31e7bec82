"""A governor with one way to change ninja's level: kill it with everything that runs, and restart it.

    python -m bench.kill_and_restart LIMIT LEVEL -- ninja -C FOLDER

Works like the best-known script of this kind, and like `stoker simulate --policy kill-and-restart`: the level begins at
LEVEL; memory in use above a share of LIMIT (bytes) halves the level, after a pause; five finished jobs at a reduced
level double it, if the use, scaled accordingly, stays below. That script checks every 15 s and pauses for 30 s in
builds of hours; these take a minute, so both are a tenth of that. It runs inside the memory group that it watches.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from stoker.simulate.drivers import KillAndRestart
from support.memory_group import Group, own_folder

LOOK_SECONDS = KillAndRestart.TICK / 10
PAUSE_SECONDS = KillAndRestart.PAUSE / 10


def end_others(group: Group) -> None:
    """SIGKILL for all in the group but this process, until it is the only one."""
    while others := [pid for pid in group.pids() if pid != os.getpid()]:
        for pid in others:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)
        time.sleep(0.01)


def finished(folder: Path) -> int:
    """Jobs that ninja's log tells of."""
    log = folder / ".ninja_log"
    return len(log.read_text().splitlines()) - 1 if log.exists() else 0


def run_at(command: Sequence[str], folder: Path, level: int, highest: int, limit: int) -> tuple[int | None, int]:
    """One ninja at one level: its status, None if it did not end by itself, and the level that is due then."""
    group, before = Group(own_folder()), finished(folder)
    ninja = subprocess.Popen([*command, f"-j{level}"])
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return ninja.wait(LOOK_SECONDS), max(1, level // 2)
        following = next_level(level, highest, group.held, limit, finished(folder) - before)
        if following != level:
            end_others(group)
            return None, following


def next_level(level: int, highest: int, held: int, limit: int, done: int) -> int:
    """The level that memory in use (`held` of `limit`, bytes) and the jobs `done` at this level ask for."""
    most = KillAndRestart.THRESHOLD * limit
    if held > most:
        return max(1, level // 2)
    if level < highest and done >= KillAndRestart.UPSHIFT_AFTER and 2 * held < most:
        return min(highest, 2 * level)
    return level


def main() -> int:
    """Run the command to its end; its status."""
    limit, highest, command = int(sys.argv[1]), int(sys.argv[2]), sys.argv[4:]
    folder, level = Path(command[command.index("-C") + 1]), highest
    while True:
        status, following = run_at(command, folder, level, highest, limit)
        if status == 0 or (status is not None and level == 1):
            return status
        print(f"kill-and-restart: -j{level} to -j{following}", flush=True)
        if following < level:
            time.sleep(PAUSE_SECONDS)
        level = following


if __name__ == "__main__":
    sys.exit(main())
