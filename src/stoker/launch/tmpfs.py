"""A profile's wish for temporary files in memory: where they go, what a person should know, and what dead builds left.

Unaware of what is in such a folder.
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
from stoker.record.builds import runs

if TYPE_CHECKING:  # every build sweeps, and only one of a profile needs what reads profiles
    from stoker.config.profiles.profile import Tmp

TOP_FOLDERS = ("/dev/shm", "/tmp")  # noqa: S108
"""Where a tmpfs may be on any machine; folders of left-over builds are looked for there."""


class Placement(NamedTuple):
    """What comes of the wish: a place or none, a sentence for a person, and warnings."""

    wish: RamDiskPlace | None = None
    note: str = ""
    warnings: tuple[str, ...] = ()


def ramdisk_for(tmp: Tmp, environ: Mapping[str, str], memory: int | None) -> Placement:
    """Return where `tmp` can be had. `environ` is what the steps will have, `memory` what a person allows the build."""
    if tmp.kind == "none":
        return Placement()
    from stoker.sense.machine.machine import MachineReader
    from stoker.sense.machine.tmpfs_use import choose, is_in_memory

    own = environ.get("TMPDIR", "")
    if own and not (os.path.isdir(own) and is_in_memory(own)):
        return Placement(
            warnings=(f"no RAM disk: TMPDIR={own} is set, is not in memory, and stays; unset it to have one",)
        )
    limit = MachineReader(os.getpid(), "/").memory(0).limit
    choice = choose(tmp.size, min(limit, memory or limit), environ)
    if choice.place is None:
        return Placement(warnings=(f"{choice.why}; TMPDIR stays as it is",))
    size, where = format_bytes(choice.size), choice.place.path
    note = f"temporary files are in memory: up to {size} in {where} (nothing can enforce that limit)"
    return Placement(RamDiskPlace(where, choice.size), note)


def sweep(environ: Mapping[str, str]) -> list[str]:
    """Remove what builds have left whose supervisor was killed; the folders that were removed.

    A build is dead if neither its supervisor nor its command runs, and no process at all has its TMPDIR there.
    """
    own = (environ.get(name, "") for name in ("XDG_RUNTIME_DIR", "TMPDIR"))
    removed = []
    for top in dict.fromkeys((*TOP_FOLDERS, *own)):
        for folder, build in ramdisk.found_in(top) if top else ():
            if not runs(BuildPaths(Path(build))) and not ramdisk.users(folder) and ramdisk.remove(folder):
                removed.append(folder)
    return removed
