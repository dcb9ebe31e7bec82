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
    (11, 7): (11, 13),  # 11.7.99
    (11, 8): (11, 14),  # 11.8.89
    (12, 0): (12, 14),  # 12.0.140
    (12, 1): (12, 15),  # 12.1.105
    (12, 2): (12, 16),  # 12.2.140; its message says clang 15, its condition 16
    (12, 3): (12, 16),  # 12.3.107
    (12, 4): (13, 17),  # 12.4.131
    (12, 5): (13, 17),  # 12.5.82
    (12, 6): (13, 18),  # 12.6.85
    (12, 8): (14, 19),  # 12.8.93
    (12, 9): (14, 19),  # 12.9.86
    (13, 0): (15, 20),  # 13.0.88
    (13, 1): (15, 21),  # 13.1.115
    (13, 2): (15, 21),  # 13.2.86
    (13, 3): (15, 21),  # 13.3.73
    (13, 4): (16, 22),  # 13.4.92
    (13, 5): (16, 22),  # 13.5.37
}
"""CUDA version: the newest gcc and clang that are not refused, by major version.

Read off the crt/host_config.h of the toolkit's release behind each row, as NVIDIA's Python packages have it
(nvidia-cuda-nvcc-cu11, nvidia-cuda-nvcc-cu12, nvidia-cuda-crt for Linux on x86-64). Older toolkits are not packaged,
and were not read. Only a stand-in where a toolkit's own header cannot be read: what that says counts more.
"""


def limits_in(header: str, path: str) -> HostLimits:
    """Return the limits that a crt/host_config.h checks; None for what it does not check."""
    gcc = [int(number) for number in _GCC.findall(header)]
    clang = [int(a or b) - 1 for a, b in _CLANG.findall(header)]
    return HostLimits(max(gcc, default=None), max(clang, default=None), path)


def limits_of(version: Version) -> HostLimits:
    """Return what is known of a version without its header; nothing of later ones."""
    newest = _KNOWN.get(version[:2])
    return HostLimits(*newest) if newest else HostLimits()
