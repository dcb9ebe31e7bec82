"""The journals that an engine learns from before it begins: of builds that its own goes on with, and its own.

Unaware of what is learnt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stoker.config.paths import BuildPaths
from stoker.model.events import Event, Record
from stoker.record.builds import read_object
from stoker.record.journal import read_kinds

MAX_EARLIER = 20
"""Builds that went on with one another, each of which may have failed; older ones teach nothing more."""


def remembered_events(paths: BuildPaths, spec: Mapping[str, Any], *kinds: type[Event]) -> Iterator[list[Record]]:
    """The records of these kinds, build by build, the oldest build first. A journal that is gone has none."""
    chain = [paths]
    name = spec.get("earlier")
    while isinstance(name, str) and name and "/" not in name and len(chain) <= MAX_EARLIER:
        chain.append(BuildPaths(paths.root.parent / name))
        name = read_object(chain[-1].spec).get("earlier")
    for build in reversed(chain):
        yield list(read_kinds(build.journal, *kinds))
