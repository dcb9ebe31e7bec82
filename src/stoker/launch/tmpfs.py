"""The RAM disk that a profile requests: its location, messages for the user, and leftovers of dead builds.

Unaware of the contents of such a folder.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from stoker.act import ramdisk
from stoker.config.paths import BuildPaths
from stoker.contract.spec_file import RamDiskPlace
from stoker.model.units import format_bytes
from stoker.record.folders import runs

if TYPE_CHECKING:  # every build cleans up, and only one of a profile needs what reads profiles
    from stoker.config.profiles.profile import Tmp

TOP_FOLDERS = ("/dev/shm", "/tmp")  # noqa: S108
"""Where a tmpfs may be on any machine; leftover folders of builds are searched there."""


class Placement(NamedTuple):
    """The outcome: a place or none, a message for the user, and warnings."""

    wish: RamDiskPlace | None = None
    note: str = ""
    warnings: tuple[str, ...] = ()


def ramdisk_for(tmp: Tmp, environ: Mapping[str, str], memory: int | None) -> Placement:
    """Return where `tmp` can be. `environ` is the steps' environment, `memory` the build's memory limit."""
    if tmp.kind == "none":
        return Placement()
    from stoker.sense.machine.limits import limits_of
    from stoker.sense.machine.tmpfs_use import choose, is_in_memory

    own = environ.get("TMPDIR", "")
    if own and not (os.path.isdir(own) and is_in_memory(own)):
        return Placement(
            warnings=(f"no RAM disk: TMPDIR={own} is set, is not in memory, and stays; unset it to have one",)
        )
    limit = limits_of(os.getpid()).memory.limit
    choice = choose(tmp.size, min(limit, memory or limit), environ)
    if choice.place is None:
        return Placement(warnings=(f"{choice.why}; TMPDIR stays as it is",))
    size, where = format_bytes(choice.size), choice.place.path
    note = f"temporary files are in memory: up to {size} in {where} (nothing can enforce that limit)"
    return Placement(RamDiskPlace(where, choice.size), note)


def sweep(environ: Mapping[str, str]) -> list[str]:
    """Remove what builds with a killed supervisor have left; return the removed folders.

    A build is dead if neither its supervisor nor its command runs, and no process has its TMPDIR there.
    """
    own = (environ.get(name, "") for name in ("XDG_RUNTIME_DIR", "TMPDIR"))
    removed = []
    for top in dict.fromkeys((*TOP_FOLDERS, *own)):
        for folder, build in ramdisk.found_in(top) if top else ():
            if not runs(BuildPaths(Path(build))) and not ramdisk.users(folder) and ramdisk.remove(folder):
                removed.append(folder)
    return removed
