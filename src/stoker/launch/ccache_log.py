"""Where ccache is to write what each of its calls did: into the build's folder, unless a person says elsewhere.

Unaware of what is written there, and of whether the build uses ccache at all.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "CCACHE_STATSLOG"
ASK_SECONDS = 2.0
"""How long ccache may take to print a setting; it takes 5 ms."""


@dataclass(frozen=True, slots=True)
class CacheLog:
    """`path` is a person's own log, empty for the build's, None where this ccache writes none (before 4.5).

    What it holds before byte `start` is of earlier builds.
    """

    path: str | None
    start: int = 0

    def environment(self, path: Path) -> dict[str, str]:
        """Return what makes ccache write to the build's own log at `path`."""
        return {VARIABLE: str(path)} if self.path == "" else {}


def cache_log_of(environ: Mapping[str, str], folder: str) -> CacheLog:
    """Return which log a build with this environment in this folder has."""
    own = environ.get(VARIABLE, "")
    if not own:
        program = shutil.which("ccache", path=environ.get("PATH"))
        own_or_none = _setting(program, environ, folder) if program is not None else ""
        if own_or_none is None:
            return CacheLog(None)
        own = own_or_none
    if not own:
        return CacheLog("")
    try:
        start = os.stat(os.path.join(folder, own)).st_size
    except OSError:
        start = 0
    return CacheLog(os.path.join(folder, own), start)


def _setting(program: str, environ: Mapping[str, str], folder: str) -> str | None:
    """Return what a person has set for the log in ccache's configuration; None for a ccache that knows no such log."""
    try:
        asked = subprocess.run(
            [program, "--get-config", "stats_log"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=ASK_SECONDS,
            env=dict(environ),
            cwd=folder,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return os.fsdecode(asked.stdout).strip() if asked.returncode == 0 else None
