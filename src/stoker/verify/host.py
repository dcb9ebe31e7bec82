"""The machine that would run what is verified, except its GPU: its processor, and the Python that would import it.

Knows nothing of what binaries contain.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.tags import Tag, compatible_tags, cpython_tags, platform_tags
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from stoker.verify.gpu.devices import Device
from stoker.verify.linking.python_facts import PythonFacts, facts_of, program_named

_NAMES = {"amd64": "x86_64", "arm64": "aarch64"}

_ARM_ONLY = frozenset({(5, 3), (6, 2), (7, 2), (8, 7), (10, 1), (11, 0), (12, 1)})
"""Capabilities of GPUs that share a chip with ARM cores: Jetson, IGX, DGX Spark."""
_ARM_NAMES = ("GH200", "GB10", "GB200", "GB300", "VR200", "JETSON", "ORIN", "THOR", "XAVIER", "SPARK", "GRACE")


@dataclass(slots=True)
class Host:
    """This machine. Its Python is asked at most once, and only if needed."""

    python_program: str
    environment: Mapping[str, str]
    _facts: PythonFacts | None = None
    _asked: bool = False

    @property
    def machine(self) -> str:
        """The processor, as in platform tags."""
        name = platform.machine().lower()
        return _NAMES.get(name, name)

    def python(self) -> PythonFacts | None:
        """Return the active Python; None if there is none that answers."""
        if not self._asked:
            self._facts, self._asked = facts_of(self.python_program, self.environment), True
        return self._facts

    def program(self) -> Path | None:
        """Return the path of the active Python."""
        python = self.python()
        return Path(python.program) if python is not None else None

    def python_for(self, wheel: str, requires: str = "") -> tuple[PythonFacts | None, str]:
        """Return the Python that accepts a wheel of this file name, and ""; otherwise the active one, and why pip
        refuses the wheel.

        `requires` is the Python version that the wheel's metadata require.
        """
        python = self.python()
        refusal = refused(wheel, python, requires)
        if python is None or not refusal:
            return python, ""
        for version in _versions(wheel):
            program = program_named(version, self.environment)
            other = facts_of(program, self.environment) if program else None
            if other is not None and other.version == version and not refused(wheel, other, requires):
                return other, ""
        return python, refusal


def implied_machine(device: Device) -> str:
    """Return the processor of all machines with this GPU, "" if it comes with several."""
    name = device.name.upper().replace(" ", "")
    arm = device.arch.capability in _ARM_ONLY or any(n in name for n in _ARM_NAMES)
    return "aarch64" if arm else ""


def refused(wheel: str, python: PythonFacts | None, requires: str = "") -> str:
    """Return why pip, run by this Python on this machine, would refuse a wheel of this file name; "" if it would
    not."""
    if python is None or python.implementation != "cpython":
        return ""
    try:
        tags = parse_wheel_filename(wheel)[3]
    except InvalidWheelFilename:
        return ""  # reported elsewhere
    platforms = list(platform_tags())
    if not any(t.platform in platforms or t.platform == "any" for t in tags):
        return _platform_refusal(tags)
    supported = supported_tags(python, platforms)
    if tags & supported:
        return _version_refusal(requires, python)
    asked = ", ".join(sorted({f"{t.interpreter}-{t.abi}" for t in tags}))
    return f"is for {asked}; the Python here is {python.title} ({python.program})"


def supported_tags(python: PythonFacts, platforms: list[str]) -> frozenset[Tag]:
    """Return all wheel tags that this Python's pip accepts."""
    name = f"cp{python.version[0]}{python.version[1]}"
    abis = [f"{name}t" if python.free_threaded else name]
    return frozenset((
        *cpython_tags(python.version, abis, platforms),
        *compatible_tags(python.version, name, platforms),
    ))  # fmt: skip


def _version_refusal(requires: str, python: PythonFacts) -> str:
    try:
        fits = SpecifierSet(requires).contains(f"{python.version[0]}.{python.version[1]}.99", prereleases=True)
    except InvalidSpecifier:
        return ""
    return "" if fits else f"is for Python {requires}; the Python here is {python.title} ({python.program})"


def _platform_refusal(tags: frozenset[Tag]) -> str:
    asked = ", ".join(sorted({t.platform for t in tags}))
    libc, version = platform.libc_ver()
    here = f"{platform.machine()} with {libc or 'another libc'} {version}".rstrip()
    musl = ", not musl" if libc == "glibc" and all(t.platform.startswith("musllinux") for t in tags) else ""
    return f"is for {asked}; this machine is {here}{musl}"


def foreign_system(wheel: str) -> str:
    """Return the system that a wheel is for by its name: "Windows", "macOS", or "" for Linux and for any."""
    systems: dict[str, Callable[[str], bool]] = {
        "Windows": lambda p: p.startswith("win"),
        "macOS": lambda p: p.startswith("macosx"),
    }
    platforms = os.path.splitext(wheel)[0].rpartition("-")[2].split(".")
    return next((name for name, fits in systems.items() if all(map(fits, platforms))), "")


def _versions(wheel: str) -> list[tuple[int, int]]:
    """Return the CPython versions in a wheel's name."""
    try:
        tags = parse_wheel_filename(wheel)[3]
    except InvalidWheelFilename:
        return []
    numbers = {t.interpreter[2:] for t in tags if t.interpreter.startswith("cp") and t.interpreter[3:].isdigit()}
    return sorted((int(n[0]), int(n[1:])) for n in numbers)
