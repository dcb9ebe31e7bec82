"""Reads the journals of the builds that this build resumes, since what their jobs taught is still valid.

Does not know what is learned from an event.
"""

from __future__ import annotations

from pathlib import Path

from stoker.config.paths import BuildPaths
from stoker.contract.spec_file import BuildSpec
from stoker.contract.strict_json import load_or_none

MAX_EARLIER = 20
"""The most builds in a chain of resumed ones, each of which may have failed; older ones teach nothing more."""


def earlier_journals(paths: BuildPaths, spec: BuildSpec) -> list[Path]:
    """Return the journals of the builds that this one resumes, oldest first; some may be gone."""
    found: list[Path] = []
    name = spec.earlier
    while name and "/" not in name and len(found) < MAX_EARLIER:
        earlier = BuildPaths(paths.root.parent / name)
        found.append(earlier.journal)
        before = load_or_none(BuildSpec, earlier.spec)
        name = before.earlier if before is not None else ""
    return found[::-1]
