"""What changes in each file, by names and folders alone. Pure."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from stoker.package.dlopened import keeps_its_name
from stoker.package.packaging_error import PackagingError
from stoker.package.resolve import Resolution, left_to_the_machine, own_names
from stoker.package.staging import StagedLibrary

_ORIGIN = ("$ORIGIN", "${ORIGIN}")


@dataclass(frozen=True, slots=True)
class FileChange:
    """What becomes of a library of the wheel: its search paths, and other names for what it needs."""

    staged: StagedLibrary
    rpath: tuple[str, ...]
    needed: Mapping[str, str]


def copy_name(name: str, digest: str, *, by_name_alone: bool) -> str:
    """What a copy is called: with a piece of its sha256, so that no other copy in the process is taken for it."""
    if by_name_alone or keeps_its_name(name):
        return name
    stem, so, rest = name.partition(".so")
    return f"{stem}-{digest[:8]}{so}{rest}"


def folder_for_copies(wheel_name: str) -> PurePosixPath:
    """Where copies lie, below the folder for packages."""
    return PurePosixPath(f"{wheel_name}.libs")


def changes_of(
    libraries: Sequence[StagedLibrary], found: Resolution, copies: Mapping[str, str], folder: PurePosixPath
) -> list[FileChange]:
    """The change of each library. `copies` maps the copied libraries to their new names, `folder` holds these.

    Raises PackagingError for one to which no relative path can lead.
    """
    own = own_names(libraries)
    inside = {s.place.parent for s in libraries if s.place is not None}
    outside = list(dict.fromkeys(owner.folder for owner in found.required.values()))
    changes = []
    for staged in libraries:
        leaning = [n for n in _names(staged) if n not in own and not left_to_the_machine(n)]
        if staged.place is None:
            if leaning:
                what = f"{staged.member} needs {leaning[0]}, and is installed where no relative path leads to it"
                raise PackagingError(f"{what}; move it into the package")
            continue
        folders = _folders(staged, own, found, folder)
        folders += _kept(staged, inside)
        folders += outside if leaning else []
        rpath = dict.fromkeys(_relative(f, staged.place.parent) for f in folders)
        needed = {n: copies.get(PurePosixPath(n).name, PurePosixPath(n).name) for n in staged.library.dynamic.needed}
        changes.append(FileChange(staged, tuple(rpath), {o: n for o, n in needed.items() if o != n}))
    return changes


def _names(staged: StagedLibrary) -> Iterable[str]:
    return (PurePosixPath(n).name for n in staged.library.dynamic.needed)


def _folders(
    staged: StagedLibrary, own: Mapping[str, list[StagedLibrary]], found: Resolution, copies: PurePosixPath
) -> list[PurePosixPath]:
    """The folders of what it needs, in that order."""
    folders: list[PurePosixPath] = []
    here = staged.place.parent if staged.place is not None else PurePosixPath()
    for name in _names(staged):
        places = [s.place.parent for s in own.get(name, ()) if s.place is not None]
        if places:
            folders.append(here if here in places else places[0])
        elif name in found.required:
            folders.append(found.required[name].folder)
        elif name in found.vendored:
            folders.append(copies)
    return folders


def _kept(staged: StagedLibrary, inside: set[PurePosixPath]) -> list[PurePosixPath]:
    """Old search paths that lead to libraries of this wheel: what it loads by name may be there."""
    dynamic, here = staged.library.dynamic, (staged.place or PurePosixPath()).parent
    found = []
    for entry in (*dynamic.rpath, *dynamic.runpath):
        head, _, rest = entry.partition("/")
        if head in _ORIGIN:
            folder = PurePosixPath(posixpath.normpath(here / rest))
            found += [folder] if folder in inside else []
    return found


def _relative(folder: PurePosixPath, start: PurePosixPath) -> str:
    path = posixpath.relpath(folder, start)
    if not {":", "$"}.isdisjoint(path):
        raise PackagingError(f"{path!r} cannot stand in a search path; rename that folder")
    return "$ORIGIN" if path == "." else f"$ORIGIN/{path}"
