"""Examines a source tree and what an earlier build left in its build folder. Unaware of what that means."""

from __future__ import annotations

import os
import re
import time
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path

from stoker.doctor.ask_program import Later
from stoker.doctor.facts import FutureDates, SourceTree, Surroundings
from stoker.doctor.find_tools import version_in
from stoker.doctor.need import Version

MAX_FILES = 50_000
"""Files whose dates are looked at: half of PyTorch's tree with its submodules, the upper folders first."""

WALK_SECONDS = 0.6
"""Time for that walk; on a slow file server it ends early."""

FUTURE_SECONDS = 2.0
"""How far ahead a date must be: file systems keep some no finer than two seconds, and clocks differ a little."""

MAX_SUBMODULES = 1000
_MAX_DEPTH = 3
_MAX_TEXT = 1 << 20
_MODULE_PATH = re.compile(r"^\s*path\s*=\s*\"?([^\"\n]+?)\"?\s*$", re.MULTILINE)
_ENTRY = re.compile(r"^([A-Za-z_]\w*):[A-Z]+=(.*)$", re.MULTILINE | re.ASCII)
_PROGRAMS = [f"CMAKE_{language}_COMPILER{of}" for language in ("C", "CXX", "CUDA") for of in ("", "_LAUNCHER")]
_SKIPPED = frozenset({".git", ".hg", "__pycache__", "node_modules"})


def look_at_source(here: Surroundings) -> SourceTree:
    """Return submodules, dates and the CMake cache. Raises LateError if the file system hangs."""
    folder = here.need.source
    dated = Later(lambda: look_at_dates(folder, time.time()))
    modules = list(submodules(folder))
    missing = sorted((depth, name) for name, present, depth in modules if not present)
    return SourceTree(
        submodules=len(modules),
        missing=tuple(name for _, name in missing),
        nested_missing=sum(depth > 0 for depth, _ in missing),
        is_checkout=os.path.exists(f"{folder}/.git"),
        absent=tuple(name for name in here.need.files if not os.path.exists(os.path.join(folder, name))),
        dated=dated.result(here.patience),
        cache=(cache := read_cache(here.need.build)),
        gone=tuple(dict.fromkeys(_gone(cache))),
    )


def _gone(cache: Mapping[str, str]) -> Iterator[str]:
    for name in _PROGRAMS:
        path = cache.get(name, "").partition(";")[0]
        if path.startswith("/") and not os.path.exists(path):
            yield path


def submodules(folder: str, inside: str = "", depth: int = 0) -> Iterator[tuple[str, bool, int]]:
    """Yield each submodule's path below the top folder, whether its files are there, and in how many others it is."""
    for path in list(_MODULE_PATH.findall(read_text(f"{folder}/.gitmodules")))[:MAX_SUBMODULES]:
        if path.startswith("/") or ".." in path.split("/"):
            continue
        present = _has_files(f"{folder}/{path}")
        yield f"{inside}{path}", present, depth
        if present and depth < _MAX_DEPTH:
            yield from submodules(f"{folder}/{path}", f"{inside}{path}/", depth + 1)


def _has_files(folder: str) -> bool:
    """Return whether a submodule was fetched: else it is an empty folder, or none."""
    try:
        with os.scandir(folder) as entries:
            return any(entry.name != ".git" for entry in entries)
    except OSError:
        return False


def look_at_dates(folder: str, now: float, seconds: float = WALK_SECONDS) -> FutureDates:
    """Return how many files are dated later than `now` (Unix seconds)."""
    deadline = time.monotonic() + seconds
    looked, future, worst, ahead, input_name, input_ahead = 0, 0, "", 0.0, "", 0.0
    top_ahead = _top_ahead(folder, now)
    for path, modified in _dates(folder):
        if looked >= MAX_FILES or time.monotonic() > deadline:
            return FutureDates(looked, future, worst, ahead, input_ahead, input_name, top_ahead, complete=False)
        looked += 1
        by = modified - now
        if by <= FUTURE_SECONDS:
            continue
        future += 1
        if by > ahead:
            worst, ahead = os.path.relpath(path, folder), by
        if by > input_ahead and _is_input(path):
            input_name, input_ahead = os.path.relpath(path, folder), by
    return FutureDates(looked, future, worst, ahead, input_ahead, input_name, top_ahead)


def _top_ahead(folder: str, now: float) -> float:
    try:
        return max(0.0, os.stat(f"{folder}/CMakeLists.txt").st_mtime - now)
    except OSError:
        return 0.0


def _is_input(path: str) -> bool:
    return os.path.basename(path) == "CMakeLists.txt" or path.endswith(".cmake")


def _dates(folder: str) -> Iterator[tuple[str, float]]:
    """Yield files with their times of modification, the upper folders' first."""
    folders = deque([folder])
    while folders:
        try:
            with os.scandir(folders.popleft()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        if entry.name not in _SKIPPED:
                            folders.append(entry.path)
                    elif entry.is_file(follow_symlinks=False):
                        yield entry.path, entry.stat(follow_symlinks=False).st_mtime
        except OSError:
            continue


def read_cache(build: str) -> Mapping[str, str]:
    """Return the entries of a CMakeCache.txt, by name."""
    return dict(_ENTRY.findall(read_text(f"{build}/CMakeCache.txt")))


def read_text(path: str) -> str:
    """Return a text file up to a bound; empty if it cannot be read, or is no file."""
    if not os.path.isfile(path):
        return ""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_MAX_TEXT)
    except OSError:
        return ""


def cmake_minimum(folder: str) -> tuple[Version, Version]:
    """Return what `cmake_minimum_required(VERSION a...b)` of a tree says: a, and b or a. Empty without one."""
    text = read_text(str(Path(folder) / "CMakeLists.txt"))
    match = re.search(
        r"^\s*cmake_minimum_required\s*\(\s*VERSION\s+(\d[\d.]*?)(?:\.\.\.<?(\d[\d.]*))?[\s)]",
        text,
        re.IGNORECASE | re.MULTILINE | re.ASCII,
    )
    if match is None:
        return (), ()
    oldest = version_in(match[1])
    return oldest, version_in(match[2]) if match[2] else oldest
