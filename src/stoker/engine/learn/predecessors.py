"""The builds that an engine's own build goes on with: what they taught still holds. Unaware of what that is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stoker.config.paths import BuildPaths
from stoker.record.builds import read_object

MAX_EARLIER = 20
"""Builds that went on with one another, each of which may have failed; older ones teach nothing more."""


def earlier_journals(paths: BuildPaths, spec: Mapping[str, Any]) -> list[Path]:
    """The journals of the builds that this one goes on with, the oldest first; some may be gone."""
    found: list[Path] = []
    name = spec.get("earlier")
    while isinstance(name, str) and name and "/" not in name and len(found) < MAX_EARLIER:
        earlier = BuildPaths(paths.root.parent / name)
        found.append(earlier.journal)
        name = read_object(earlier.spec).get("earlier")
    return found[::-1]
