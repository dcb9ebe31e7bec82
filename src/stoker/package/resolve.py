"""Where each library that a wheel needs comes from: the system, the wheel, an installed package, or a copy.

Reads libraries and runs nothing. Unaware of how the wheel is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from stoker.model.packaged import Mode
from stoker.package.dlopened import COMPANIONS, loaded_by_cudnn
from stoker.package.owners import Owner, brought_along
from stoker.package.packaging_error import PackagingError
from stoker.package.staging import StagedLibrary, library_at
from stoker.verify.binary.byte_source import Deadline, UnreadableError
from stoker.verify.linking.libraries import CUDA, Linker, SharedLibrary, provider
from stoker.verify.linking.requirements import bringer
from stoker.verify.wheel.tags import SYSTEM_LIBRARIES

_LOADER = re.compile(r"ld-linux[\w-]*\.so\.\d+|ld64\.so\.\d+")
_MUSL = re.compile(r"ld-musl[\w-]*\.so\.\d+|libc\.musl-\w+\.so\.1")
_ON_THE_MACHINE = ("the NVIDIA driver", "Python", "ROCm")


@dataclass(frozen=True, slots=True)
class BuildMachine:
    """What is on this machine: its linker, who owns which library, and other available libraries, by file name.

    `system` names what the machine's own linker knows, `title` the environment for a person.
    """

    linker: Linker
    owners: Mapping[str, list[Owner]]
    others: Mapping[str, Path]
    system: frozenset[str]
    title: str


@dataclass(slots=True)
class Resolution:
    """Owners and copies by the name that is asked for, which of the copies are loaded by that name alone, and what of
    those was left out, with the reason."""

    required: dict[str, Owner] = field(default_factory=dict)
    vendored: dict[str, SharedLibrary] = field(default_factory=dict)
    by_name_alone: set[str] = field(default_factory=set)
    left_out: dict[str, str] = field(default_factory=dict)


def own_names(libraries: Iterable[StagedLibrary]) -> dict[str, list[StagedLibrary]]:
    """The wheel's libraries by file name and by soname."""
    found: dict[str, list[StagedLibrary]] = {}
    for staged in libraries:
        for name in {staged.name, staged.library.dynamic.soname} - {""}:
            found.setdefault(name, []).append(staged)
    return found


def left_to_the_machine(name: str) -> bool:
    """Whether every machine that runs the wheel has the library: manylinux's list, the driver, Python."""
    return name in SYSTEM_LIBRARIES or bool(_LOADER.fullmatch(name)) or provider(name, (), "") in _ON_THE_MACHINE


def resolve(
    libraries: Sequence[StagedLibrary], requires: Iterable[str], mode: Mode, around: BuildMachine
) -> Resolution:
    """Find every library that is needed. `requires` names the packages that the wheel requires already.

    Raises PackagingError for one that is nowhere, or that must not be copied.
    """
    return _Resolver(libraries, set(requires), mode, around).run()


class _Resolver:
    def __init__(
        self, libraries: Sequence[StagedLibrary], requires: set[str], mode: Mode, around: BuildMachine
    ) -> None:
        self.libraries, self.requires, self.mode, self.around = libraries, requires, mode, around
        self.own = own_names(libraries)
        self.found = Resolution()
        self.deadline = Deadline()
        here = {name: all_of[0].library.path for name, all_of in self.own.items()}
        owned = {name: all_of[0].path for name, all_of in around.owners.items()}
        self.imported = {**owned, **around.others, **here}

    def run(self) -> Resolution:
        # What only one package has first: it may bring what several have (torch its libgomp).
        if self.mode == "pypi":
            for name in sorted({n for s in self.libraries for n in s.library.dynamic.needed}):
                of_torch = provider(name, (), "") == "torch"
                if not self._at_hand(name) and (of_torch or CUDA.fullmatch(name)):
                    self._own_by(name)
        for staged in self.libraries:
            self._walk(staged.library, staged.member)
        if any(name.startswith("libcudnn") for name in self.found.vendored):
            self.found.by_name_alone |= {n for n in self.found.vendored if loaded_by_cudnn(n)}
        return self.found

    def _at_hand(self, name: str) -> bool:
        return name in self.own or left_to_the_machine(name)

    def _own_by(self, name: str) -> bool:
        """Whether an installed package brings the library; that one is required from now on."""
        if name in self.own or name in self.found.required:
            return True
        known = brought_along(self.requires | {o.name for o in self.found.required.values()}, self.around.owners)
        candidates = self.around.owners.get(name, [])
        first = next((o for o in candidates if o.name in known), None)
        # What the system has as well is copied, whichever package has it: many packages hold a libgomp.so.1.
        if first is None and candidates and (CUDA.fullmatch(name) or name not in self.around.system):
            first = candidates[0]
        if first is not None:
            self.found.required[name] = first
        return first is not None

    def _walk(self, root: SharedLibrary, user: str) -> None:
        """Settle what a library needs, and what the copies need in turn."""
        closure = self.around.linker.load(root, self.deadline, self.imported)
        queue = [(name, user) for name in root.dynamic.needed]
        while queue:
            needed, who = queue.pop(0)
            name = PurePosixPath(needed).name
            if _MUSL.fullmatch(name):
                raise PackagingError(f"{who} needs {name}: it is for musl; manylinux tags promise glibc")
            if self._at_hand(name) or name in self.found.vendored:
                continue
            self._refuse_torch(name, who)
            if self.mode == "pypi" and self._own_by(name):
                continue
            library = closure.by_name.get(needed)
            if library is None or (self.mode == "pypi" and CUDA.fullmatch(name)):
                raise self._missing(name, who)
            self.found.vendored[name] = library
            queue += [(n, name) for n in library.dynamic.needed]
            self._bring_companions(name, library)

    def _refuse_torch(self, name: str, who: str) -> None:
        if self.mode == "bundle" and provider(name, (), "") == "torch":
            what = f"{who} needs {name} of torch, which brings a CUDA of its own: a second one would be in the process"
            raise PackagingError(f"{what}; package it with --mode pypi")

    def _missing(self, name: str, who: str) -> PackagingError:
        what = f"{who} needs {name}"
        if self.mode == "bundle":
            return PackagingError(f"{what}, which is nowhere on this machine; put its folder into LD_LIBRARY_PATH")
        if provider(name, (), "") == "torch":
            where = f"torch is not installed in {self.around.title}"
            return PackagingError(f"{what}, and {where}; activate the environment in which it was built")
        if CUDA.fullmatch(name):
            remedy = f"install {_package_guess(name)} there, or package it with --mode bundle"
            return PackagingError(f"{what}, and no package installed in {self.around.title} has it; {remedy}")
        return PackagingError(f"{what}, which is nowhere on this machine; install it, or the package that has it")

    def _bring_companions(self, name: str, library: SharedLibrary) -> None:
        """Copy also what a library loads by name."""
        for companions in COMPANIONS:
            if not companions.loader.fullmatch(name):
                continue
            folder = library.path.resolve().parent
            files = sorted({path.resolve() for path in folder.glob(companions.pattern)})
            if not files and companions.vital:
                what = f"{name} loads {companions.pattern.rstrip('*')} by name, and {folder} has none"
                raise PackagingError(f"{what}; install all of that library's package")
            for path in files:
                self._add_companion(path, vital=companions.vital)

    def _add_companion(self, path: Path, *, vital: bool) -> None:
        try:
            library = library_at(path, path)
        except (OSError, UnreadableError) as err:
            raise PackagingError(f"{path}: {err}; install its package again") from err
        if library is None:
            return
        name = library.dynamic.soname or path.name
        absent = [m.name for m in self.around.linker.load(library, self.deadline, self.imported).missing]
        absent = [n for n in absent if not left_to_the_machine(n)]
        if absent and not vital:
            self.found.left_out[name] = f"needs {', '.join(absent)}, which this machine does not have"
        elif name not in self.found.vendored:
            self.found.vendored[name] = library
            self.found.by_name_alone.add(name)
            self._walk(library, name)


def _package_guess(name: str) -> str:
    """The package of NVIDIA's that is likely to have a library."""
    known = (
        "nvidia-cuda-runtime", "nvidia-cublas", "nvidia-cuda-nvrtc", "nvidia-cudnn", "nvidia-cufft", "nvidia-curand",
        "nvidia-cusolver", "nvidia-cusparse", "nvidia-cusparselt", "nvidia-nccl", "nvidia-nvjitlink", "nvidia-cupti",
        "nvidia-nvtx", "nvidia-cufile", "nvidia-nvshmem",
    )  # fmt: skip
    return bringer(name, known) or "one of NVIDIA's"
