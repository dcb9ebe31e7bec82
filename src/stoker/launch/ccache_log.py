"""Where ccache should log what each of its calls did: in the build's folder, unless the user has set another place.

Unaware of the log's contents, and of whether the build uses ccache at all.
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
    """`path` is the user's own log, empty for the build's, None if this ccache writes none (before 4.5).

    What it contains before byte `start` is from earlier builds.
    """

    path: str | None
    start: int = 0

    def environment(self, path: Path) -> dict[str, str]:
        """Return the variables that make ccache write to the build's own log at `path`."""
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
    """Return the log in the user's ccache configuration; None for a ccache that does not support such a log."""
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
