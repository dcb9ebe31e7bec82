"""A normal account's view of this machine: an unprivileged user with no capability, who can read what the tests need.

Knows nothing of stoker. Needs root. Where Python or the project lies in a folder that is closed to others (/root, a
`mktemp -d`), a mount namespace of the command's own shows it in an open one; nothing on the disk changes.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

NOBODY = 65534
UNPRIVILEGED = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs"]
_STASH = "/mnt"


def as_somebody(needed: Iterable[Path]) -> list[str]:
    """The words before a command that run it as a user who is nobody and can read the folders `needed`."""
    covers: dict[Path, list[Path]] = {}
    for path in needed:
        if (closed := _closed(path)) is not None:
            covers.setdefault(closed, []).extend(path.iterdir() if closed == path else [path])
    if not covers:
        return UNPRIVILEGED
    script = " && ".join([f"mount -t tmpfs stash {_STASH}", *_opening(covers), 'exec "$@"'])
    return ["unshare", "--mount", "sh", "-c", script, "sh", *UNPRIVILEGED]


def own(folder: Path) -> Path:
    """The folder and all in it, given to that user."""
    for path in (folder, *folder.rglob("*")):
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    return folder


def _closed(path: Path) -> Path | None:
    """The outermost folder on the way that others may not enter."""
    return next((p for p in reversed((path, *path.parents)) if p.stat().st_mode & 0o005 != 0o005), None)


def _opening(covers: dict[Path, list[Path]]) -> Iterator[str]:
    """Put what is needed aside, an empty open folder over each closed one, and back."""
    wanted = [path for paths in covers.values() for path in paths]
    for number, path in enumerate(wanted):
        yield f"{_place(path, Path(_STASH, str(number)))} && mount --bind {shlex.quote(str(path))} {_STASH}/{number}"
    for folder in covers:
        yield f"mount -t tmpfs -o mode=755 open {shlex.quote(str(folder))}"
    for number, path in enumerate(wanted):
        yield f"{_place(path, path)} && mount --move {_STASH}/{number} {shlex.quote(str(path))}"


def _place(like: Path, target: Path) -> str:
    """The command that makes what `like` can be mounted on."""
    name, above = shlex.quote(str(target)), shlex.quote(str(target.parent))
    return f"mkdir -p {name}" if like.is_dir() else f"mkdir -p {above} && touch {name}"
