"""How the keeper's program is called, as a keeper or as a guard. Unaware of what either does."""

from __future__ import annotations

import sys
from pathlib import Path

KEEPER = Path(__file__).with_name("supervisor.py")


def keeper_argv(folder: Path, *words: str) -> list[str]:
    """The command line for the build in `folder`: isolated and without site-packages, so that no fault reaches it."""
    return [sys.executable, "-I", "-S", str(KEEPER), str(folder), *words]
