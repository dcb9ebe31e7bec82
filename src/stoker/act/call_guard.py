"""The engine's side of a keeper that was killed: a guard is called, one at a time, that restarts the engine.

Unaware of what a guard does (guard.py) and of jobs.
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
from stoker.supervisor.program import keeper_argv


class GuardCall:
    """Whom this engine has called, or who has started it. Kept in memory: a full disk must not bring a second one."""

    def __init__(self, paths: BuildPaths) -> None:
        self._paths = paths
        self._guard = _parent_that_guards(paths)

    def renew(self) -> None:
        """See to it that a guard lives; to be called again and again while the keeper is gone, as a guard may be killed
        as well. Raises OSError."""
        if self._guard is None or not lives(self._guard):
            self._guard = call_guard(self._paths, os.getpid())


def call_guard(paths: BuildPaths, engine: int) -> Key:
    """Start a guard for the process `engine`, or, where that is 0, one that begins with starting an engine.

    Raises OSError.
    """
    with open(paths.engine_log, "ab", opener=private_opener) as log:
        guard = subprocess.Popen(
            keeper_argv(paths.root, "--guard", str(engine)),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd="/",
        )
    # It outlives us on purpose; without this, Popen would warn about it.
    guard.returncode = 0
    return key_of(guard.pid)


def guards_and_engines_of(paths: BuildPaths) -> list[int]:
    """The guards and engines of a build, as their command lines show; neither the keeper nor its standbys."""
    folder = os.fsencode(paths.root)
    spec = load_or_none(BuildSpec, paths.spec)
    argv = [os.fsencode(word) for word in spec.engine] if spec is not None else []
    return [pid for pid, words in that_name(folder).items() if b"--guard" in words or words == [*argv, folder]]


def _parent_that_guards(paths: BuildPaths) -> Key | None:
    """The guard that has started this engine, if one has."""
    pid = os.getppid()
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        if b"--guard" in words and os.fsencode(paths.root) in words:
            return key_of(pid)
    return None
