"""The command line of the supervisor's program, as a supervisor or as a watchdog. Unaware of what either does."""

from __future__ import annotations

import sys
from pathlib import Path

SUPERVISOR = Path(__file__).with_name("supervisor.py")


def supervisor_argv(folder: Path, *words: str) -> list[str]:
    """Return the command line for the build in `folder`: isolated and without site-packages, against faults of
    others."""
    return [sys.executable, "-I", "-S", str(SUPERVISOR), str(folder), *words]
