"""Which installed package owns a library, and where the CUDA toolkit keeps its own. Unaware of wheels as files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from importlib.metadata import Distribution, distributions
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from stoker.verify.linking.python_facts import PythonFacts, libraries_of

_TOOLKIT = Path("/usr/local/cuda")
_FOLDERS = ("lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib", "extras/CUPTI/lib64")
_MAX_LIBRARIES = 10_000
"""Files of one folder that are looked at."""


class Owner(NamedTuple):
    """An installed package that brings a library: where that is, and its folder below the one for packages."""

    name: str
    version: str
    path: Path
    folder: PurePosixPath
    distribution: Distribution

    @property
    def requirement(self) -> str:
        """What a wheel has to require: this version, of Linux alone. A local part (+cu130) is on no index."""
        return f'{self.name}=={self.version}; platform_system == "Linux"'


def owners_of(python: PythonFacts | None) -> dict[str, list[Owner]]:
    """All installed packages with libraries, by the libraries' file names; NVIDIA's own first."""
    found: dict[str, list[Owner]] = {}
    for package in distributions(path=list(python.folders)) if python is not None else ():
        name = package.metadata["Name"]
        root = Path(str(package.locate_file("")))
        try:
            version = Version(package.version).public
        except (InvalidVersion, TypeError):
            continue
        for library, path in libraries_of(package).items():
            if name and path.is_relative_to(root) and path.is_file():
                folder = PurePosixPath(path.relative_to(root).parent)
                found.setdefault(library, []).append(Owner(canonicalize_name(name), version, path, folder, package))
    return {library: sorted(all_of, key=_rank) for library, all_of in found.items()}


def names_of(requirements: Iterable[str]) -> set[str]:
    """The packages that these requirements name, extras aside."""
    found: set[str] = set()
    for text in requirements:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        if "extra" not in str(requirement.marker or ""):
            found.add(canonicalize_name(requirement.name))
    return found


def brought_along(names: Iterable[str], owners: Mapping[str, list[Owner]]) -> set[str]:
    """These packages, and what those of them that own libraries require in turn."""
    packages = {owner.name: owner.distribution for all_of in owners.values() for owner in all_of}
    queue = list(names)
    seen: set[str] = set()
    while queue:
        name = queue.pop()
        if name not in seen:
            seen.add(name)
            queue += names_of(packages[name].requires or ()) if name in packages else ()
    return seen


def toolkit_libraries(environment: Mapping[str, str]) -> dict[str, Path]:
    """The CUDA toolkit's libraries by file name, of the first toolkit that the environment names."""
    found: dict[str, Path] = {}
    nvcc = shutil.which("nvcc", path=environment.get("PATH", os.defpath))
    roots = [Path(environment[v]) for v in ("CUDA_HOME", "CUDA_PATH") if environment.get(v)]
    roots += [Path(nvcc).resolve().parent.parent] if nvcc else []
    for root in [*roots, _TOOLKIT]:
        for folder in (root / name for name in _FOLDERS):
            for path in sorted(folder.glob("*.so*"))[:_MAX_LIBRARIES]:
                found.setdefault(path.name, path)
    return found


def _rank(owner: Owner) -> tuple[bool, str]:
    return not owner.name.startswith("nvidia-"), owner.name
