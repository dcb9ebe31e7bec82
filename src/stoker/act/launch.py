"""Starts a build: its private folder, its specification and the keeper, detached from the terminal.

Unaware of viewers and of what the command is.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stoker.config.paths import BuildPaths, builds_dir, private_dir, state_dir

KEEPER = Path(__file__).with_name("keeper.py")
START_SECONDS = 10.0
"""How long the keeper may take to say that it has started; on a machine that swaps even Python is slow."""

MAX_NAME = 24
"""Longest name inside an ID: an ID must stay typable, and fit a socket's path."""


class LaunchError(Exception):
    """The build could not be started; nothing runs. The message is one line with the remedy."""


@dataclass(frozen=True, slots=True)
class Spec:
    """What to run."""

    command: tuple[str, ...]
    cwd: str
    name: str


def launch(spec: Spec) -> BuildPaths:
    """Start `spec` under a keeper and return its files once the build's process exists. Raises LaunchError."""
    try:
        private_dir(state_dir())
        private_dir(builds_dir())
        paths = _make_folder(spec.name)
        paths.spec.write_text(json.dumps(_spec_file(spec)), encoding="utf-8", errors="surrogateescape")
        _reserve(paths)
    except OSError as err:
        raise LaunchError(
            f"cannot write {err.filename or builds_dir()}: {err.strerror}; "
            "free some space or set XDG_STATE_HOME to another folder"
        ) from err
    for prefix in _prefixes(paths.id):
        if _start(paths, prefix):
            return paths
    raise LaunchError(f"the keeper did not start; see {paths.engine_log}")


def _make_folder(name: str) -> BuildPaths:
    stamp = time.strftime("%m%d-%H%M")
    safe = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "-" for c in name).strip("-.")
    while True:
        root = builds_dir() / f"{safe[:MAX_NAME] or 'build'}-{stamp}-{secrets.token_hex(2)}"
        try:
            root.mkdir(mode=0o700)
        except FileExistsError:
            continue
        return BuildPaths(root)


def _spec_file(spec: Spec) -> dict[str, object]:
    return {
        "name": spec.name,
        "command": list(spec.command),
        "cwd": spec.cwd,
        "created": time.time(),
        # -P: the working folder is the user's source tree and must not shadow our modules.
        "engine": [sys.executable, "-P", "-m", "stoker.engine"],
    }


def _reserve(paths: BuildPaths) -> None:
    """Find out now, not in an hour, that the disk is full: the exit status needs a block of its own."""
    with open(paths.exit.with_suffix(".json.new"), "wb") as file:
        file.write(b" " * 4096)
        file.flush()
        os.fsync(file.fileno())


def _prefixes(build_id: str) -> list[list[str]]:
    """Ways to start the keeper, best first: a systemd scope of its own outlives the login's scope."""
    plain: list[list[str]] = [[]]
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if runtime and Path(runtime, "systemd", "private").exists() and (run := shutil.which("systemd-run")):
        scope = [run, "--user", "--scope", "--quiet", "--collect", f"--unit=stoker-{build_id}", "--"]
        return [scope, *plain]
    return plain


def _start(paths: BuildPaths, prefix: Sequence[str]) -> bool:
    """Start the keeper in a session of its own; True once the build's process exists."""
    with open(paths.engine_log, "ab", opener=_private) as log:
        keeper = subprocess.Popen(
            [*prefix, sys.executable, "-I", "-S", str(KEEPER), str(paths.root)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd="/",
        )
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if paths.keeper.exists():
            # It outlives us on purpose; without this, Popen would warn about it.
            keeper.returncode = 0
            return True
        if keeper.poll() is not None:
            return False
        time.sleep(0.005)
    keeper.kill()
    keeper.wait()
    return False


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
