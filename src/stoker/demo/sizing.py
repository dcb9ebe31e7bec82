"""How large a demo must be to take the time and the memory it may. Pure arithmetic, unaware of files.

The costs were measured with g++ 12 -O1 on a 2.x GHz server core; they need not be exact, only bounded: the memory
figures are rounded up, and ninja's pools hold the sum below half of the budget on any machine.
"""

from __future__ import annotations

from dataclasses import dataclass

MIB = 2**20

CXX_LEAST_BUDGET = 1024 * MIB
"""With less than this the C++ demo could not stay below a half: Python work does: it takes what it is given."""

LIGHT_SECONDS = 0.6
MEDIUM_SECONDS, MEDIUM_MIB = 2.0, 220
"""CPU seconds of a source with <vector> and <string>; the same, and its peak, of one with <regex>."""

_HEAVY_BASE_SECONDS, _HEAVY_SECONDS = 0.5, 0.2
_HEAVY_BASE_MIB, _HEAVY_MIB = 120, 10
"""The same for a kernel source: a base, and the cost of each of its template instantiations."""

_HEAVY_SIZES = (40, 56, 34, 50, 44, 60, 30)
"""Instantiations of the kernels, in turn: uneven as in life, 420 to 720 MiB."""

_LEAST_SIZE = 4
_MAX_LIGHT, _MAX_MEDIUM, _MAX_HEAVY = 48, 16, 96

PYTHON_MIB = 24
"""Python with our few modules, rounded up from 12, and the 8 that a job without a kernel takes."""

_PYTHON_CHAIN = 8
"""The longest chain of Python jobs has five, and all cores are to be busy for a while before it."""

_USED = 0.85
"""Share of the cores' time that a build uses: the start and the link are serial."""


@dataclass(frozen=True, slots=True)
class DemoPlan:
    """How many sources of each kind. `heavy` holds each kernel's size: instantiations, or MiB for Python work.

    `heavy_depth` and `other_depth` are how many of them may run at once.
    """

    light: int
    medium: int
    heavy: tuple[int, ...]
    heavy_depth: int
    other_depth: int
    seconds_each: float = 0.0


def heavy_memory(size: int) -> int:
    """Return the peak bytes of compiling a kernel of `size` instantiations, rounded up."""
    return (_HEAVY_BASE_MIB + _HEAVY_MIB * size) * MIB


def cxx_plan(seconds: float, cores: int, memory_budget: int) -> DemoPlan:
    """Size a C++ project of about `seconds` on `cores` cores within half of `memory_budget` bytes."""
    work = _USED * seconds * cores
    light = _bounded(0.12 * work / LIGHT_SECONDS, 3, _MAX_LIGHT)
    medium = _bounded(0.12 * work / MEDIUM_SECONDS, 1, _MAX_MEDIUM)
    half = memory_budget // 2
    other_depth = _bounded(half / 3 / (MEDIUM_MIB * MIB), 1, cores + 2)
    room = half - other_depth * MEDIUM_MIB * MIB
    largest = max(_LEAST_SIZE, (room // max(2, cores // 2) // MIB - _HEAVY_BASE_MIB) // _HEAVY_MIB)
    heavy = _heavy_sizes(work - light * LIGHT_SECONDS - medium * MEDIUM_SECONDS, largest)
    depth = _bounded(room / heavy_memory(max(heavy)), 1, len(heavy))
    return DemoPlan(light, medium, heavy, depth, other_depth)


def _heavy_sizes(work: float, largest: int) -> tuple[int, ...]:
    """Return kernels worth `work` CPU seconds: at least four, smaller ones if there is little time."""
    four = sum(_HEAVY_BASE_SECONDS + _HEAVY_SECONDS * size for size in _HEAVY_SIZES[:4])
    scale = min(1.0, max(0.0, work) / four)
    sizes: list[int] = []
    while len(sizes) < 4 or (work > 0 and len(sizes) < _MAX_HEAVY):
        size = min(largest, _bounded(scale * _HEAVY_SIZES[len(sizes) % len(_HEAVY_SIZES)], _LEAST_SIZE, largest))
        work -= _HEAVY_BASE_SECONDS + _HEAVY_SECONDS * size
        sizes.append(size)
    return tuple(sizes)


def python_plan(seconds: float, cores: int, memory_budget: int) -> DemoPlan:
    """Size the same shape as Python work: 40 to 120 jobs of equal CPU time, the heavy ones with uneven memory."""
    half_mib = memory_budget // 2 // MIB
    slots = cores + 2
    heavy_count = _bounded(6 * cores, 12, 48)
    light, medium = heavy_count, heavy_count // 3
    most = _bounded((half_mib - slots * PYTHON_MIB) / slots, 16, 600)
    sizes = tuple(max(16, most * (5 + i * 3 % 7) // 11) for i in range(heavy_count))
    depth = _bounded((half_mib - PYTHON_MIB) / (max(sizes) + PYTHON_MIB), 1, slots)
    each = min(_USED * seconds * cores / (light + medium + heavy_count), seconds / _PYTHON_CHAIN)
    return DemoPlan(light, medium, sizes, depth, slots, each)


def _bounded(value: float, low: int, high: int) -> int:
    return max(low, min(high, int(value)))
