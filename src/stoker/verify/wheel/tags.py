"""Compares platform tags of wheels with what the binaries inside need. Knows nothing of zip files.

A tag is a promise: pip installs a `manylinux_2_28` wheel wherever glibc is 2.28 or newer (PEP 600).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from stoker.verify.binary.elf import Dynamic

_TAG = re.compile(r"(?P<kind>manylinux|musllinux)_(?P<major>\d+)_(?P<minor>\d+)_(?P<machine>\w+)")
_ALIASES = {"manylinux1": "manylinux_2_5", "manylinux2010": "manylinux_2_12", "manylinux2014": "manylinux_2_17"}

Version = tuple[int, ...]


class PlatformPromise(NamedTuple):
    """What a platform tag says: "manylinux", "musllinux" or "linux", the libc that it requires, and the machine."""

    kind: str
    libc: tuple[int, int]
    machine: str


_POLICIES: tuple[tuple[tuple[int, int], dict[str, Version]], ...] = (
    ((2, 5), {"GLIBCXX": (3, 4, 8), "CXXABI": (1, 3, 1), "GCC": (4, 2, 0)}),
    ((2, 12), {"GLIBCXX": (3, 4, 13), "CXXABI": (1, 3, 3), "GCC": (4, 3, 0), "ZLIB": (1, 2, 2, 4)}),
    ((2, 17), {"GLIBCXX": (3, 4, 19), "CXXABI": (1, 3, 7), "GCC": (4, 8, 0), "ZLIB": (1, 2, 5, 2)}),
    ((2, 24), {"GLIBCXX": (3, 4, 22), "CXXABI": (1, 3, 10), "GCC": (4, 8, 0)}),
    ((2, 26), {}),
    ((2, 27), {"GLIBCXX": (3, 4, 24), "CXXABI": (1, 3, 11), "GCC": (7, 0, 0), "ZLIB": (1, 2, 9)}),
    ((2, 28), {}),
    ((2, 31), {"GLIBCXX": (3, 4, 28), "CXXABI": (1, 3, 12), "GCC": (7, 0, 0)}),
    ((2, 34), {"GLIBCXX": (3, 4, 29), "CXXABI": (1, 3, 13), "GCC": (7, 0, 0)}),
    ((2, 35), {"GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13), "GCC": (12, 0, 0)}),
    ((2, 36), {}),
    ((2, 37), {"ZLIB": (1, 2, 12)}),
    ((2, 38), {}),
    ((2, 39), {"GLIBCXX": (3, 4, 33), "CXXABI": (1, 3, 15), "GCC": (14, 0, 0)}),
    ((2, 40), {}),
    ((2, 41), {}),
)
"""The versions of the C++ runtime and of zlib in a distribution with at least this glibc, listed where they change.
Each entry is the glibc of some distribution; these are the policies that auditwheel 6.8 checks."""

_FEATURES: dict[str, tuple[int, int]] = {"GLIBC_ABI_DT_RELR": (2, 36)}
"""Versions that are not numbers, and the glibc that introduced them (its NEWS: packed relocations)."""

SYSTEM_LIBRARIES = frozenset(
    (
        "libatomic.so.1", "libgcc_s.so.1", "libstdc++.so.6", "libm.so.6", "libmvec.so.1", "libanl.so.1", "libdl.so.2",
        "librt.so.1", "libc.so.6", "libnsl.so.1", "libutil.so.1", "libpthread.so.0", "libX11.so.6", "libXext.so.6",
        "libXrender.so.1", "libICE.so.6", "libSM.so.6", "libGL.so.1", "libgobject-2.0.so.0", "libgthread-2.0.so.0",
        "libglib-2.0.so.0", "libresolv.so.2", "libexpat.so.1", "libz.so.1",
    )
)  # fmt: skip
"""Libraries that a manylinux wheel may take from the system (the list in the manylinux policy)."""


def parse_platform(tag: str) -> PlatformPromise | None:
    """Return the promise of one platform tag (`manylinux_2_28_x86_64`); None for "any" and for other systems."""
    for old, new in _ALIASES.items():
        if tag.startswith(f"{old}_"):
            tag = new + tag.removeprefix(old)
    match = _TAG.fullmatch(tag)
    if match is not None:
        return PlatformPromise(match["kind"], (int(match["major"]), int(match["minor"])), match["machine"])
    if tag.startswith("linux_"):
        return PlatformPromise("linux", (0, 0), tag.removeprefix("linux_"))
    return None


def strictest(promises: Iterable[PlatformPromise]) -> PlatformPromise | None:
    """Return the strictest promise; None without any."""
    return min((p for p in promises if p.kind != "linux"), key=lambda p: p.libc, default=None)


def broken_by(promise: PlatformPromise, dynamic: Dynamic, own: frozenset[str]) -> list[str]:
    """Return the symbol versions that a binary needs beyond the promise. `own` names the libraries in the same
    wheel."""
    needed = needs(dynamic, own)
    if promise.kind == "musllinux":
        return sorted(v for v in needed if v.startswith("GLIBC_"))[:1]
    return _beyond(needed, _limits(promise.libc)) if promise.kind == "manylinux" else []


def needs(dynamic: Dynamic, own: frozenset[str]) -> list[str]:
    """Return the symbol versions that a binary needs from the system."""
    return [v for library, versions in dynamic.versions if library not in own for v in versions]


def fitting(needed: Sequence[str], machine: str) -> str:
    """Return the oldest manylinux tag that covers these symbol versions; empty if none is known."""
    libc = next((libc for libc, _ in _POLICIES if not _beyond(needed, _limits(libc))), None)
    return f"manylinux_{libc[0]}_{libc[1]}_{machine}" if libc is not None else ""


def _limits(libc: tuple[int, int]) -> dict[str, Version]:
    """Return the newest version of each library that every system with such a glibc has."""
    limits: dict[str, Version] = {"GLIBC": libc}
    for known, versions in _POLICIES:
        if known <= libc:
            limits |= versions
    return limits


def _beyond(needed: Sequence[str], limits: dict[str, Version]) -> list[str]:
    """Return the newest version of each name that is beyond the limits, as written."""
    worst: dict[str, tuple[Version, str]] = {}
    for text in needed:
        name, _, number = text.partition("_")
        version: Version | None = _FEATURES.get(text)
        if re.fullmatch(r"\d+(\.\d+){0,3}", number):
            version = tuple(int(part) for part in number.split("."))
        if version is not None and name in limits and version > limits[name]:
            worst[name] = max(worst.get(name, ((), "")), (version, text))
    return [text for _, text in sorted(worst.values())]
