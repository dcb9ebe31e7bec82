"""patchelf, called as a program: it is under the GPL, and a file that it does not understand may stop it. Unaware of
wheels."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sysconfig
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from stoker.model.text import clean
from stoker.package.packaging_error import PackagingError
from stoker.package.staging import library_at
from stoker.verify.binary.byte_source import UnreadableError

_SECONDS = 300
"""CPU time for one file; libcublasLt.so.13 (0.5 GB) takes two."""

_MEMORY = 2 << 30
"""Bytes that it may take besides four times the file: it holds the file in memory, and copies it as it grows."""

_GROWTH = 64 << 20
"""Bytes by which a file may grow: patchelf aligns to pages of 64 KiB at most."""


@cache
def patchelf() -> str:
    """The program, that of stoker's own environment before any other. Raises PackagingError."""
    own = Path(sysconfig.get_path("scripts"), "patchelf")
    program = str(own) if os.access(own, os.X_OK) else shutil.which("patchelf")
    if program is None:
        raise PackagingError("patchelf is not here; install it beside stoker: pip install 'stoker[package]'")
    return program


def rewrite(
    path: Path, name: str, *, rpath: Sequence[str], needed: Mapping[str, str] | None = None, soname: str = ""
) -> None:
    """Give a library these search paths, other names for what it needs, and another name for itself.

    `name` is for messages. Nothing is written where nothing changes. Raises PackagingError.
    """
    needed = needed or {}
    words = _words(path, rpath, needed, soname)
    if not words:
        return
    size = path.stat().st_size
    done = subprocess.run(
        [patchelf(), *words, str(path)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        preexec_fn=lambda: _limit(size),
        check=False,
    )
    if done.returncode or not _as_asked(path, rpath, needed, soname):
        lines = clean(done.stderr.decode("utf-8", "replace"), 300).strip() or f"status {done.returncode}"
        raise PackagingError(f"{name}: patchelf cannot rewrite it ({lines}); build it again, without strip or upx")


def _words(path: Path, rpath: Sequence[str], needed: Mapping[str, str], soname: str) -> list[str]:
    library = library_at(path, path)
    dynamic = library.dynamic if library is not None else None
    if dynamic is None:
        return []
    words = []
    if soname and soname != dynamic.soname:
        words += ["--set-soname", soname]
    for old, new in needed.items():
        words += ["--replace-needed", old, new] if old in dynamic.needed and old != new else []
    if dynamic.runpath or dynamic.rpath != tuple(rpath):
        # DT_RPATH, not DT_RUNPATH: it goes before LD_LIBRARY_PATH, and covers what the library's libraries load.
        words += ["--force-rpath", "--set-rpath", ":".join(rpath)] if rpath else ["--remove-rpath"]
    return words


def _limit(size: int) -> None:
    """In the child: bounds that hold whatever the file is."""
    for kind, most in (
        (resource.RLIMIT_CPU, _SECONDS),
        (resource.RLIMIT_AS, _MEMORY + 4 * size),
        (resource.RLIMIT_FSIZE, 2 * size + _GROWTH),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _as_asked(path: Path, rpath: Sequence[str], needed: Mapping[str, str], soname: str) -> bool:
    """Whether the file holds what was asked for, read by our own reader."""
    try:
        library = library_at(path, path)
    except (OSError, UnreadableError):
        return False
    if library is None:
        return False
    dynamic = library.dynamic
    named = dynamic.soname == soname if soname else True
    gone = not any(old in dynamic.needed for old, new in needed.items() if old != new)
    return named and gone and dynamic.rpath == tuple(rpath) and not dynamic.runpath
