"""NVIDIA's Linux drivers and the CUDA versions that they came with. Pure text; knows nothing of this machine.

From "CUDA Toolkit and Corresponding Driver Versions" in the release notes of CUDA 11.0 to 13.3; 12.7 and 13.4, which
have no row there, from what nvidia-smi of drivers 565 and 615 prints.
"""

from __future__ import annotations

import re

from stoker.verify.archs import ArchError

FIRST = {
    (13, 4): "615.71.09", (13, 3): "610.43.02", (13, 2): "595.45.04", (13, 1): "590.44.01", (13, 0): "580.65.06",
    (12, 9): "575.51.03", (12, 8): "570.26", (12, 7): "565.57.01", (12, 6): "560.28.03", (12, 5): "555.42.02",
    (12, 4): "550.54.14", (12, 3): "545.23.06", (12, 2): "535.54.03", (12, 1): "530.30.02", (12, 0): "525.60.13",
    (11, 8): "520.61.05", (11, 7): "515.43.04", (11, 6): "510.39.01", (11, 5): "495.29.05", (11, 4): "470.42.01",
    (11, 3): "465.19.01", (11, 2): "460.27.03", (11, 1): "455.23", (11, 0): "450.36.06", (10, 2): "440.33",
    (10, 1): "418.39", (10, 0): "410.48", (9, 2): "396.26", (9, 1): "390.46", (9, 0): "384.81", (8, 0): "367.48",
}  # fmt: skip
"""The first Linux driver of each CUDA version."""

KNOWS_GPU = {
    (7, 0): (9, 0), (7, 5): (10, 0), (8, 0): (11, 0), (8, 6): (11, 1), (8, 9): (11, 8), (9, 0): (11, 8),
    (10, 0): (12, 8), (10, 3): (12, 9), (12, 0): (12, 8), (12, 1): (12, 9),
}  # fmt: skip
"""The first CUDA version that compiles for a capability; a driver that supports no later one does not support the GPU.
Without Jetsons, whose drivers have other numbers."""

_VERSION = re.compile(r"(\d{3})(?:\.\d{1,3}){0,2}", re.ASCII)
_CUDA = re.compile(r"(\d{1,2})\.(\d)", re.ASCII)


def first_driver(cuda: tuple[int, int]) -> str:
    """Return the first Linux driver that supports this CUDA version, as 570.26; empty if unknown."""
    return FIRST.get(cuda, "")


def cuda_of_driver(version: str) -> tuple[int, int]:
    """Return the newest CUDA version that a driver supports: (12, 8) for 570.86.15; raises ArchError.

    A branch (570) supports one CUDA version for all of its life, so the rest of the number does not count.
    """
    match = _VERSION.fullmatch(version.strip())
    if match is None:
        raise ArchError(f"{version!r} is not a driver version; write it as nvidia-smi prints it: 570.86.15")
    older = [cuda for cuda, first in FIRST.items() if _branch(first) <= int(match[1])]
    if not older:
        raise ArchError(f"the driver {version} is older than any that is known; the oldest is {FIRST[min(FIRST)]}")
    return max(older)


def parse_cuda(text: str) -> tuple[int, int]:
    """Parse a CUDA version (12.8); raises ArchError."""
    match = _CUDA.fullmatch(text.strip())
    version = (int(match[1]), int(match[2])) if match else (0, 0)
    if version < min(FIRST):
        raise ArchError(f"{text!r} is not a CUDA version; write it as nvidia-smi prints it: 12.8")
    return version


def _branch(version: str) -> int:
    return int(version.partition(".")[0])
