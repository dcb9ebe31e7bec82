"""The folders of builds, and whether anything still runs them. Reads no journal, and loads nothing that reads one: the
start of each build waits for this.
"""

from __future__ import annotations

import os
import re
import stat
import time
from pathlib import Path

from stoker.config.paths import BuildPaths, builds_dir
from stoker.contract.strict_json import load_or_none
from stoker.contract.supervisor_files import ExitRecord, SupervisorRecord

MAX_BUILDS = 200
"""Builds whose files are kept: far more than a day's work, some gigabytes at worst."""

STARTING_SECONDS = 30.0
"""How long a folder without supervisor.json counts as a build that is being started: the launcher gives up after 10."""

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def build_folders() -> list[BuildPaths]:
    """Return real folders of ours whose name is an ID, without following links."""
    try:
        entries = list(builds_dir().iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [BuildPaths(p) for p in entries if _ID.fullmatch(p.name) and is_own_folder(p)]


def is_own_folder(path: Path) -> bool:
    """Another user's files would name processes and sockets of their choice; root, with that user's HOME, would signal
    them."""
    try:
        info = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(info.st_mode) and info.st_uid == os.getuid()


def unended_builds() -> list[BuildPaths]:
    """Return those whose supervisor has not recorded their end: they run, or it was killed. Reads no journal."""
    return [paths for paths in build_folders() if load_or_none(ExitRecord, paths.exit) is None]


def runs(paths: BuildPaths) -> bool:
    """Say whether the supervisor or the build exists, or may be about to."""
    record = load_or_none(SupervisorRecord, paths.supervisor)
    if record is not None:
        if record.living_build() is not None or record.acting_supervisor() is not None:
            return True
        return record.may_live_unseen() and not paths.exit.exists()
    try:
        age = abs(time.time() - paths.root.stat().st_mtime)
    except OSError:
        return False
    return age < STARTING_SECONDS and not paths.exit.exists()
