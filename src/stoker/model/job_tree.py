"""The processes of one job, as they were when somebody asked for them. Pure values.

They are in no journal and no state: a screen that shows one job asks the engine for them; a replay has none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

MAX_ROWS = 64
"""The most processes of one job that are returned: more than a screen has rows. A compiler driver has three, nvcc up to
thirty."""

MAX_NAME, MAX_TASK = 32, 160
"""Characters of a program's name and of what it works on: both come from the build, and may have any length."""

Doing = Literal["running", "waiting", "kernel", "stopped"]
"""running: on a core, or ready for one; waiting: for another process or a file; kernel: in the kernel, usually for a
disk; stopped: by SIGSTOP, like jobs on deck and frozen ones."""


@dataclass(frozen=True, slots=True)
class ProcessRow:
    """One process. `depth` counts from the job's own process; `task` is what it works on, empty if unknown.

    `rss` is in bytes, without what all processes of its program share; `cpu` in seconds since it started. `hosted`: a
    cache's server runs it for this job.
    """

    pid: int
    depth: int
    name: str
    task: str = ""
    rss: int = 0
    cpu: float = 0.0
    doing: Doing = "running"
    hosted: bool = False


@dataclass(frozen=True, slots=True)
class ProcessTree:
    """A job's processes at Unix time `at`, each after its parent; `more` of them were left out."""

    at: float = 0.0
    rows: tuple[ProcessRow, ...] = ()
    more: int = 0
