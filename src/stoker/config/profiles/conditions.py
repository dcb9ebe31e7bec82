"""Whether a step belongs to a build: compares the few conditions of `when` with the folder, PATH and the variables.

Only looks; runs and evaluates nothing. Unaware of how profiles are written.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from stoker.config.profiles.profile import Profile, When


def obstacle(when: When, profile: Profile, folder: Path, search_path: str | None = None) -> str:
    """Return why the step is left out of a build in `folder`, in a few words; empty if it is part of it.

    `search_path` is the PATH to look for commands on; None: this process's.
    """
    return next(_obstacles(when, profile, folder, search_path), "")


def _obstacles(when: When, profile: Profile, folder: Path, search_path: str | None) -> Iterator[str]:
    yield from (f"there is no {name}" for name in when.file if not Path(folder, name).exists())
    yield from (f"there is {name}" for name in when.no_file if Path(folder, name).exists())
    yield from (f"{name} is not on PATH" for name in when.command if shutil.which(name, path=search_path) is None)
    yield from (f"{name} is on PATH" for name in when.no_command if shutil.which(name, path=search_path) is not None)
    for name, value in when.equals.items():
        if profile.variables[name] != value:
            yield f"{name} is {profile.variables[name]!r}"
    for name, value in when.differs.items():
        if profile.variables[name] == value:
            yield f"{name} is {value!r}"
    if when.heavy is not None and when.heavy != bool(profile.heavy):
        yield "there are heavy targets" if profile.heavy else "there are no heavy targets"
