"""Builds by a profile, run as a user would, and what their journals say of their steps."""

from __future__ import annotations

import json
from pathlib import Path

from support.program import Stoker


def run(stoker: Stoker, name: str, folder: Path, *more: str) -> tuple[int, str]:
    """The exit status, and what was said on stderr. The doctor would miss what a real project needs."""
    result = stoker.run("run", "--plain", "--no-doctor", "-p", name, *more, cwd=folder)
    return result.returncode, result.stderr.decode()


def last(stoker: Stoker) -> str:
    """The newest build."""
    return str(json.loads(stoker.run("ls", "--json").stdout)[0]["id"])


def names(stoker: Stoker) -> list[str]:
    """The steps that the newest build began."""
    return [e["name"] for e in stoker.events(last(stoker)) if e["type"] == "step_started"]
