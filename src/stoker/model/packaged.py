"""The result of packaging a wheel: the object that `stoker package --json` prints.

Unaware of how it was done. Sizes are bytes. Keys of the JSON may be added, never renamed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from stoker.model.report import Report

Mode = Literal["pypi", "bundle"]


@dataclass(frozen=True, slots=True)
class TagReason:
    """Who needs which platform tag; empty if no manylinux tag fits."""

    who: str
    tag: str


@dataclass(frozen=True, slots=True)
class PackagedFile:
    """A library of the wheel: its search paths before and after."""

    path: str
    rpath_before: tuple[str, ...]
    rpath: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class VendoredFile:
    """A copied library: its place in the wheel, what it was copied from, and bytes before and after."""

    path: str
    source: str
    size_before: int
    size: int


@dataclass(frozen=True, slots=True)
class PinnedPackage:
    """A package that the wheel now requires, and for which libraries."""

    requirement: str
    libraries: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GpuReach:
    """Compute capabilities on which all of the wheel's own device code runs as it is (`native`), after the driver has
    compiled it (`ptx_jit`), or in part."""

    native: tuple[str, ...] = ()
    ptx_jit: tuple[str, ...] = ()
    part: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Packaged:
    """A packaged wheel. `dropped` are lines of Requires-Dist that are no longer in it; `left_out` libraries that others
    load by name where they are there, each with the reason."""

    mode: Mode
    input: str
    output: str
    tag_before: str
    tag: str
    tag_reasons: tuple[TagReason, ...]
    size_before: int
    size: int
    unpacked_before: int
    unpacked: int
    files: tuple[PackagedFile, ...]
    requires: tuple[PinnedPackage, ...]
    dropped: tuple[str, ...]
    vendored: tuple[VendoredFile, ...]
    left_out: tuple[str, ...]
    gpus: GpuReach
    verification: Report
