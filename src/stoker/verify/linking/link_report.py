"""What stands between binaries on disk and their loading: missing libraries, and search paths that lead nowhere."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from stoker.model.report import Problem
from stoker.verify.binary.byte_source import Deadline, UnreadableError
from stoker.verify.binary.elf import Dynamic, Elf
from stoker.verify.linking.libraries import Linker, MissingLibrary, foreign_paths


class Linked(NamedTuple):
    """A binary that the dynamic linker loads."""

    path: Path
    elf: Elf
    dynamic: Dynamic


def link_problems(binaries: Sequence[Linked], linker: Linker) -> dict[str, list[Problem]]:
    """Problems by path. What a library lacks is reported once, at that library, where it is among the binaries."""
    own = {_real(b.path) for b in binaries}
    return {str(b.path): [*_path_problems(b), *_missing_problems(b, own, linker)] for b in binaries}


def _path_problems(binary: Linked) -> list[Problem]:
    remedy = "set $ORIGIN-relative paths: patchelf --set-rpath"
    texts = {
        entry: f"its RPATH holds {entry!r}, a folder that is not there"
        if entry
        else "its RPATH has an empty entry: libraries are loaded from whatever folder it is started in"
        for entry in foreign_paths(binary.dynamic, packaged=False)
    }
    return [Problem("warning", str(binary.path), text, remedy) for text in texts.values()]


def _missing_problems(binary: Linked, own: set[str], linker: Linker) -> list[Problem]:
    name = str(binary.path)
    try:
        missing = linker.missing(binary.path, binary.elf, binary.dynamic, Deadline())
    except UnreadableError as err:
        return [Problem("warning", name, f"its libraries could not all be looked up: {err}")]
    groups: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for lost in missing:
        if lost.needed_by == name or _real(Path(lost.needed_by)) not in own:
            groups.setdefault((lost.needed_by, lost.provider, _folders(lost)), []).append(lost.name)
    return [_problem(name, *key, names) for key, names in groups.items()]


def _problem(name: str, user: str, provider: str, folders: tuple[str, ...], names: list[str]) -> Problem:
    be = "is" if len(names) == 1 else "are"
    what = f"{', '.join(names)}{'' if user == name else f' (needed by {user})'} {be}"
    if provider:
        return Problem("info", name, f"{what} not on the search path: {provider} brings {_it(names)}")
    remedy = f"install {_it(names)}, or put the folder in the RPATH or in LD_LIBRARY_PATH"
    return Problem("error", name, f"{what} missing; looked in {', '.join(folders) or 'no folder'}", remedy)


def _it(names: Sequence[str]) -> str:
    return "it" if len(names) == 1 else "them"


def _folders(missing: MissingLibrary) -> tuple[str, ...]:
    """The folders of the paths that were tried, as short as they can be written."""
    return tuple(dict.fromkeys(os.path.normpath(os.path.dirname(p) or ".") for p in missing.tried))


def _real(path: Path) -> str:
    return os.path.realpath(path)
