"""Real git repositories with submodules, on this disk. Knows nothing of stoker."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ENV = {
    "GIT_AUTHOR_NAME": "Ann", "GIT_AUTHOR_EMAIL": "ann@example.org", "GIT_COMMITTER_NAME": "Ann",
    "GIT_COMMITTER_EMAIL": "ann@example.org", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_ALLOW_PROTOCOL": "file",
}  # fmt: skip
"""git refuses submodules from files since 2.38.1 unless it is asked to (CVE-2022-39253)."""


def git(folder: Path, *words: str) -> None:
    """Run git in a folder."""
    subprocess.run(["git", *words], cwd=folder, env={**os.environ, **ENV}, check=True, capture_output=True)


def repository(folder: Path, *files: str) -> Path:
    """A new repository with one commit of these files."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    for name in files or ("a.txt",):
        commit(folder, name)
    return folder


def commit(folder: Path, name: str, text: str = "x\n") -> None:
    """A file, committed."""
    (folder / name).write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", name)


def with_submodules(folder: Path, *paths: str, **files: str) -> Path:
    """A clone without its submodules, at these paths; each holds the files, whose names have `_` for dots."""
    origin = repository(folder / "origin")
    for number, path in enumerate(paths):
        part = repository(folder / f"part{number}")
        for name, text in files.items():
            commit(part, name.replace("_", "."), text)
        git(origin, "submodule", "add", "-q", str(part), path)
    commit(origin, "done.txt")
    git(folder, "clone", "-q", str(origin), "clone")
    return folder / "clone"
