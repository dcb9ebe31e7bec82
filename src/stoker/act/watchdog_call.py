"""The engine's response to a killed supervisor: starts a watchdog, one at a time, which restarts the engine.

Unaware of what a watchdog does (watchdog.py) and of jobs.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path

from stoker.act.tree import that_name
from stoker.config.paths import BuildPaths, private_opener
from stoker.contract.process import Key, key_of, lives
from stoker.contract.spec_file import BuildSpec
from stoker.contract.strict_json import load_or_none
from stoker.supervisor.program import supervisor_argv


class WatchdogCall:
    """The watchdog that this engine has started, or that has started it. Kept in memory: a full disk must not cause a
    second one."""

    def __init__(self, paths: BuildPaths) -> None:
        self._paths = paths
        self._watchdog = _parent_watchdog(paths)

    def renew(self) -> None:
        """Ensure that a watchdog is alive; call this repeatedly while the supervisor is gone, as a watchdog may be
        killed as well. Raises OSError."""
        if self._watchdog is None or not lives(self._watchdog):
            self._watchdog = call_watchdog(self._paths, os.getpid())


def call_watchdog(paths: BuildPaths, engine: int) -> Key:
    """Start a watchdog for the process `engine`, or, if that is 0, one that first starts an engine.

    Raises OSError.
    """
    with open(paths.engine_log, "ab", opener=private_opener) as log:
        watchdog = subprocess.Popen(
            supervisor_argv(paths.root, "--watchdog", str(engine)),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd="/",
        )
    # It outlives us on purpose; without this, Popen would warn about it.
    watchdog.returncode = 0
    return key_of(watchdog.pid)


def watchdogs_and_engines_of(paths: BuildPaths) -> list[int]:
    """Return the watchdogs and engines of a build, by their command lines; neither supervisor nor standbys."""
    folder = os.fsencode(paths.root)
    spec = load_or_none(BuildSpec, paths.spec)
    argv = [os.fsencode(word) for word in spec.engine] if spec is not None else []
    return [pid for pid, words in that_name(folder).items() if b"--watchdog" in words or words == [*argv, folder]]


def _parent_watchdog(paths: BuildPaths) -> Key | None:
    """Return the watchdog that has started this engine, if one has."""
    pid = os.getppid()
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        if b"--watchdog" in words and os.fsencode(paths.root) in words:
            return key_of(pid)
    return None
