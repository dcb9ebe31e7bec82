"""Which host compilers a CUDA toolkit takes: what its own header says, else a table. Pure text and numbers."""

from __future__ import annotations

import re

from stoker.doctor.facts import HostLimits
from stoker.doctor.need import Version

_GCC = re.compile(r"^#if __GNUC__ > (\d+)\s*$", re.MULTILINE | re.ASCII)
_CLANG = re.compile(
    r"unsupported clang version! clang version must be less than (\d+)|^#if \(__clang_major__ >= (\d+)\)",
    re.MULTILINE | re.ASCII,
)

OLDEST_GCC = 6
"""The oldest gcc that NVIDIA names for CUDA 12 and 13; its header does not refuse older ones."""

_KNOWN: dict[Version, tuple[int, int]] = {
    (11, 4): (11, 12), (11, 5): (11, 12), (11, 6): (11, 13), (11, 7): (11, 13), (11, 8): (11, 14),
    (12, 0): (12, 14), (12, 1): (12, 15), (12, 2): (12, 15), (12, 3): (12, 16), (12, 4): (13, 17),
    (12, 5): (13, 17), (12, 6): (13, 18), (12, 8): (14, 19), (12, 9): (14, 19), (13, 0): (15, 20),
}  # fmt: skip
"""CUDA version: the newest gcc and clang, by major version.

NVIDIA, CUDA Installation Guide for Linux, "Host Compiler Support Policy", of each version; 13.0 as its
crt/host_config.h has it. Only a stand-in where that header cannot be read: what it says counts more.
"""


def limits_in(header: str, path: str) -> HostLimits:
    """The limits that a crt/host_config.h checks; None for what it does not check."""
    gcc = [int(number) for number in _GCC.findall(header)]
    clang = [int(a or b) - 1 for a, b in _CLANG.findall(header)]
    return HostLimits(max(gcc, default=None), max(clang, default=None), path)


def limits_of(version: Version) -> HostLimits:
    """What is known of a version without its header; nothing of later ones."""
    known = _KNOWN.get(version[:2])
    return HostLimits(*known) if known else HostLimits()
