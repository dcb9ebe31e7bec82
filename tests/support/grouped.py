"""A stoker whose supervisor, engine and build live in a memory group, as they would in a container."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from stoker.contract.process import start_ticks
from support.memory_group import MemoryGroup
from support.procs import Process, below, process
from support.program import PATIENCE, Stoker, until

LONG = max(240.0, 2 * PATIENCE)
"""Seconds after which a test gives up on a real build: the longest takes a quarter of that on an idle machine."""


class Grouped(Stoker):
    """Builds are started in `group`; all other commands come from outside, as from another login."""

    def __init__(self, root: Path, group: MemoryGroup) -> None:
        super().__init__(root)
        self.group = group

    def argv(self, *words: str) -> list[str]:
        argv = super().argv(*words)
        return self.group.wrap(argv) if words[0] == "run" else argv

    def built(self, *command: str, cwd: Path | None = None, jobs: int | None = None) -> dict[str, Any]:
        """Run a build to its end; its last status."""
        return self.over(self.detach(*command, cwd=cwd, jobs=jobs))

    def over(self, build: str) -> dict[str, Any]:
        """The last status of a build, and everything that belonged to it gone."""
        deadline = time.monotonic() + LONG
        while not (self.folder(build) / "exit.json").exists() and self.supervisor_lives(build):
            if time.monotonic() > deadline:
                raise AssertionError(f"{build} does not end: {json.dumps(self.status(build))}")
            time.sleep(0.05)
        self.ended(build)
        until(lambda: not self.group.pids(), "the end of the build's last process")
        return self.status(build)

    def supervisor_lives(self, build: str) -> bool:
        """Whether the supervisor that was started is still there."""
        supervisor = self.supervisor(build)
        return start_ticks(supervisor["supervisor_pid"]) == supervisor["supervisor_start"]

    # -- what /proc says -------------------------------------------------------------------------------------------

    def inside(self) -> list[Process]:
        """Every process in the group."""
        return [p for pid in self.group.pids() if (p := process(pid)) is not None]

    def ninjas(self) -> list[Process]:
        """The schedulers."""
        return [p for p in self.inside() if p.name in ("ninja", "samu", "make")]

    def jobs(self) -> list[list[Process]]:
        """Every job: each child of a scheduler, and all below it; zombies left out."""
        table = {p.pid: p for p in self.inside() if p.state not in "ZX"}
        # gcc's LTO runs a make of its own inside a link; what that starts are parts of one job.
        linking = {p.pid for p in table.values() if p.name == "lto-wrapper"}
        schedulers = {p.pid for p in table.values() if p.name in ("ninja", "samu", "make") and p.parent not in linking}
        tops = [p for p in table.values() if p.parent in schedulers and p.pid not in schedulers]
        return [[top, *below([top.pid], table)] for top in tops]

    def going(self) -> list[list[Process]]:
        """The jobs of which something is not stopped."""
        return [job for job in self.jobs() if not is_held(job)]

    def held(self) -> list[list[Process]]:
        """The jobs that are stopped as a whole."""
        return [job for job in self.jobs() if is_held(job)]


def is_held(job: list[Process]) -> bool:
    """Whether all of a job is stopped. A shell that was stopped while it vforks shows D for as long as its child, which
    shows T, does not go on: it will not run either."""
    stopped_below = {p.parent for p in job if p.state == "T"}
    return all(p.state == "T" or (p.state == "D" and p.pid in stopped_below) for p in job)
