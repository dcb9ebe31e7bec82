"""The Python that would import what is verified: its version, its folders, and the packages installed in them.

Asks that Python in a subprocess; reads packages from their metadata without importing them. Knows nothing of binaries.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from packaging.markers import UndefinedComparison, UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion

from stoker.verify.python_imports import MAX_SOURCES
from stoker.verify.python_probe import NoProbeAnswerError, ask

_SECONDS = 30.0
_MAX_PACKAGES = 1000
_EXTRA = re.compile(r"\bextra == \"([^\"]+)\"")

_FACTS = """
import importlib.machinery, json, os, sys, sysconfig
print("stoker-answer:" + json.dumps({
    "program": sys.executable, "version": list(sys.version_info[:2]), "name": sys.implementation.name,
    "free": bool(sysconfig.get_config_var("Py_GIL_DISABLED")), "suffixes": importlib.machinery.EXTENSION_SUFFIXES,
    "site": sysconfig.get_path("platlib"), "folders": [p for p in sys.path if os.path.isdir(p)]}))
"""


@dataclass(frozen=True, slots=True)
class PythonFacts:
    """One Python. `folders` is where it finds packages, `site` where pip installs new ones."""

    program: str
    version: tuple[int, int]
    implementation: str
    free_threaded: bool
    suffixes: tuple[str, ...]
    site: Path
    folders: tuple[str, ...]

    @property
    def title(self) -> str:
        """The name for reports: CPython 3.11, free-threaded CPython 3.14."""
        name = {"cpython": "CPython", "pypy": "PyPy"}.get(self.implementation, self.implementation)
        return f"{'free-threaded ' if self.free_threaded else ''}{name} {self.version[0]}.{self.version[1]}"


class Brought(NamedTuple):
    """What a package's requirements bring: paths by library name, and the requirements that are not installed here, as
    pip writes them (`cuda-toolkit[cublas,cudart]`)."""

    libraries: Mapping[str, Path]
    absent: tuple[str, ...]
    by_extra: Mapping[str, tuple[str, ...]]
    """Requirements that only an extra adds and that are not installed here, by the extra's name."""
    torch: str = ""
    """The version of the installed torch among them."""
    limits: Mapping[str, SpecifierSet] = MappingProxyType({})
    """The versions that the absent requirements admit, by name."""
    undeclared: bool = False
    """Whether torch is needed and absent, and no requirement is known to bring it."""


NOTHING = Brought({}, (), {})


def facts_of(python: str, environment: Mapping[str, str]) -> PythonFacts | None:
    """Return what a Python reports about itself; None if it does not answer."""
    try:
        found = ask(python, _FACTS, [], environment, _SECONDS)
        major, minor = found["version"]
        return PythonFacts(
            str(found["program"]), (int(major), int(minor)), str(found["name"]), bool(found["free"]),
            tuple(map(str, found["suffixes"])), Path(found["site"]), tuple(map(str, found["folders"])),
        )  # fmt: skip
    except (NoProbeAnswerError, TypeError, ValueError, KeyError):
        return None


def package_of(path: Path, python: PythonFacts) -> Distribution | None:
    """Return the installed package that a file belongs to."""
    for folder in python.folders:
        if path.is_relative_to(folder) and folder.endswith(("site-packages", "dist-packages")):
            inside = path.relative_to(folder)
            top = inside.parts[0]
            named = next(iter(distributions(name=top.partition(".")[0], path=[folder])), None)
            if named is not None:
                return named
            return next(
                (d for d in distributions(path=[folder]) if f"\n{inside}," in f"\n{d.read_text('RECORD')}"), None
            )
    return None


def brought_by(requirements: Iterable[str], python: PythonFacts, extras: Iterable[str] = ()) -> Brought:
    """Return what these requirements bring, including their own requirements."""
    libraries: dict[str, Path] = {}
    absent: dict[str, None] = {}
    by_extra: dict[str, tuple[str, ...]] = {}
    limits: dict[str, SpecifierSet] = {}
    torch = ""
    queue = [(r, frozenset(extras)) for r in _parsed(requirements)]
    for requirement, _ in list(queue):
        if not (named := _extras_of(requirement)) or _applies(requirement, python, frozenset()):
            continue
        # No metadata records whether a person asked for the extra; its requirements count if they are installed.
        if _installed(requirement, python) is not None:
            queue.append((requirement, frozenset(named)))
            continue
        for extra in named:
            by_extra[extra] = (*by_extra.get(extra, ()), _as_pip_takes_it(requirement))
    seen: set[tuple[str, frozenset[str]]] = set()
    while queue and len(seen) < _MAX_PACKAGES:
        requirement, wanted = queue.pop(0)
        key = canonicalize_name(requirement.name), frozenset(requirement.extras)
        if not _applies(requirement, python, wanted) or key in seen:
            continue
        seen.add(key)
        package = _installed(requirement, python)
        if package is None:
            # Also if another version is installed: pip would replace it.
            absent[_as_pip_takes_it(requirement)] = None
            limits[key[0]] = limits.get(key[0], SpecifierSet()) & requirement.specifier
            continue
        torch = package.version if key[0] == "torch" else torch
        libraries |= {n: p for n, p in libraries_of(package).items() if n not in libraries}
        queue += [(r, key[1]) for r in _parsed(package.requires or ())]
    return Brought(libraries, tuple(absent), by_extra, torch, limits)


def _installed(requirement: Requirement, python: PythonFacts) -> Distribution | None:
    """Return the installed package that meets a requirement; None if there is none, or pip would replace it."""
    package = next(iter(distributions(name=requirement.name, path=list(python.folders))), None)
    return package if package is not None and _fits(requirement, package) else None


def libraries_of(package: Distribution) -> dict[str, Path]:
    """Return the shared libraries of an installed package, by file name."""
    files = package.files or ()
    return {f.name: Path(str(f.locate())) for f in files if f.name.endswith(".so") or ".so." in f.name}


def sources_of(package: Distribution) -> dict[str, str]:
    """Return the Python sources of an installed package, by path below site-packages, except those that are too large
    or unreadable."""
    found: dict[str, str] = {}
    left = MAX_SOURCES
    for file in sorted((f for f in package.files or () if f.suffix == ".py"), key=lambda f: len(f.parts)):
        place = Path(str(file.locate()))
        with suppress(OSError, ValueError):
            left -= place.stat().st_size
            if left < 0:
                break
            found[str(file)] = place.read_text(encoding="utf-8", errors="replace")
    return found


def _parsed(texts: Iterable[str]) -> list[Requirement]:
    found = []
    for text in texts:
        try:
            found.append(Requirement(text))
        except InvalidRequirement:
            continue
    return found


def _as_pip_takes_it(requirement: Requirement) -> str:
    extras = ",".join(sorted(map(canonicalize_name, requirement.extras)))
    return canonicalize_name(requirement.name) + (f"[{extras}]" if extras else "")


def _applies(requirement: Requirement, python: PythonFacts, extras: frozenset[str]) -> bool:
    if requirement.marker is None:
        return True
    version = f"{python.version[0]}.{python.version[1]}"
    values = {"python_version": version, "python_full_version": f"{version}.0"}
    try:
        return any(requirement.marker.evaluate({**values, "extra": extra}) for extra in ("", *extras))
    except (UndefinedComparison, UndefinedEnvironmentName):
        return True  # pip would stop here; the author meant to require it


def _fits(requirement: Requirement, package: Distribution) -> bool:
    """Whether pip would leave the installed package as it is."""
    try:
        return requirement.specifier.contains(package.version, prereleases=True)
    except (InvalidVersion, TypeError):
        return False


def _extras_of(requirement: Requirement) -> list[str]:
    """Return the extras that a requirement's marker names."""
    return _EXTRA.findall(str(requirement.marker or ""))


def program_named(version: tuple[int, int], environment: Mapping[str, str]) -> str:
    """Return the program of a Python version on PATH, "" if there is none."""
    return shutil.which(f"python{version[0]}.{version[1]}", path=environment.get("PATH", os.defpath)) or ""
