"""Finds the files to read (wheels, binaries) for what a person names: files, folders, installed packages.

Reads no more than the first bytes of a file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from stoker.verify.binary.byte_source import FileSource, UnreadableError
from stoker.verify.binary.read_binary import recognised
from stoker.verify.python_probe import NoProbeAnswerError, ask

MAX_ENTRIES = 2_000_000
"""Directory entries looked at: a PyTorch build tree has 60,000, a home folder may have millions."""

_BINARY_NAME = re.compile(r".*\.(?:so|a|pyd|dll|exe|dylib|cubin|fatbin|ptx)$|.*\.so\.[\w.+-]+$")
_OBJECT_NAME = re.compile(r".*\.(?:o|obj|lo)$")
_PLAIN_NAME = re.compile(r"[^.]+")
_TEST_DATA = re.compile(r"(?:.*/)?(?:tests?|testing|test_?data|csrc)/(?:.*/)?[^/]+\.(?:ptx|cubin|fatbin|o)")

_FIND = """
import importlib.metadata, importlib.util, json, os, sys
name = sys.argv[1]
spec = importlib.util.find_spec(name) if name.isidentifier() else None
places = [os.path.abspath(p) for p in (spec.submodule_search_locations or [spec.origin])] if spec else []
try:
    files = importlib.metadata.distribution(name).files or []
except importlib.metadata.PackageNotFoundError:
    files = []
paths = [os.path.abspath(f.locate()) for f in files if f.name.endswith(".so") or ".so." in f.name]
places += [p for p in paths if not p.startswith(tuple(q + os.sep for q in places))]
print("stoker-answer:" + json.dumps([p for p in places if os.path.exists(p)]))
"""
"""Flash-attention's extension, and the libraries that auditwheel bundles, lie beside the imported folder; RECORD lists
them."""


def binary_name(path: str) -> bool:
    """Whether compilers and linkers give this name to their output; true also for a name without a suffix.

    `path` is relative to what the person named. A separate file of device code in a test folder is input of a test
    (numba's tests/data/jitlink.ptx), and below csrc it belongs to the sources (flashinfer's kda/ptx): the package runs
    neither.
    """
    name = path.rpartition("/")[2]
    known = _BINARY_NAME.fullmatch(name) or _OBJECT_NAME.fullmatch(name) or _PLAIN_NAME.fullmatch(name)
    return bool(known) and not _TEST_DATA.fullmatch(path)


def installed(name: str, python: str, environment: Mapping[str, str]) -> list[Path]:
    """Return where a package is installed, by its import name or its name on PyPI, without importing it; empty if it is
    not installed. Top-level names only: finding a module inside a package would run the package."""
    if not re.fullmatch(r"[A-Za-z_][\w-]*", name):
        return []
    try:
        places = ask(python, _FIND, [name], environment, 30.0)
    except NoProbeAnswerError:
        return []
    return [Path(p) for p in places if isinstance(p, str)] if isinstance(places, list) else []


def files_in(folder: Path, since: float | None = None) -> list[Path]:
    """Return the wheels and binaries below a folder, each once, without following links.

    With `since` (Unix time), only files written after it. Object files count only if there is no linked file, because
    what is linked is what runs. Raises UnreadableError for a folder with too many entries.
    """
    linked: list[Path] = []
    objects: list[Path] = []
    seen: set[tuple[int, int]] = set()
    for path, status in _walk(folder):
        if since is not None and status.st_mtime < since:
            continue
        key = status.st_dev, status.st_ino
        if key in seen or not (path.name.endswith(".whl") or binary_name(str(path.relative_to(folder)))):
            continue
        if not path.name.endswith(".whl") and not _recognised(path):
            continue
        seen.add(key)
        (objects if _OBJECT_NAME.fullmatch(path.name) else linked).append(path)
    return sorted(linked or objects)


def _walk(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    left, folders = MAX_ENTRIES, [folder]
    while folders:
        try:
            entries = list(os.scandir(folders.pop()))
        except OSError:
            continue
        for entry in entries:
            left -= 1
            if left < 0:
                raise UnreadableError(f"more than {MAX_ENTRIES} entries; name a smaller folder")
            try:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(Path(entry.path))
                elif entry.is_file(follow_symlinks=False):
                    yield Path(entry.path), entry.stat(follow_symlinks=False)
            except OSError:
                continue


def _recognised(path: Path) -> bool:
    try:
        with FileSource(path) as source:
            return recognised(source)
    except (OSError, UnreadableError):
        return False
