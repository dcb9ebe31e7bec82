"""Turns a freshly built wheel into one that installs elsewhere: reads, plans, rewrites, packs and verifies it.

Unaware of how that is shown. Only reads the input; the output appears completely or not at all.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from packaging.utils import canonicalize_name

from stoker.model.packaged import Mode, Packaged, PackagedFile, PinnedPackage, TagReason, VendoredFile
from stoker.model.units import format_bytes
from stoker.package.file_changes import FileChange, changes_of, copy_name, folder_for_copies
from stoker.package.gpu_reach import gpu_reach
from stoker.package.owners import names_of, owners_of, toolkit_libraries
from stoker.package.packaging_error import PackagingError
from stoker.package.patchelf import patchelf, rewrite
from stoker.package.platform_tag import highest, kept_or_refused, reasons_for
from stoker.package.resolve import BuildMachine, Resolution, own_names, resolve
from stoker.package.staging import StagedLibrary, check_members, digest_of, stage
from stoker.package.wheel_metadata import (
    Requirements,
    pinned,
    requirements_in,
    with_platform,
    with_requirements,
    without,
)
from stoker.package.write_wheel import Progress, WheelParts, write_wheel
from stoker.verify.binary.byte_source import Deadline, UnreadableError
from stoker.verify.host import Host
from stoker.verify.linking.libraries import CUDA, Linker, SharedLibrary, read_cache
from stoker.verify.linking.requirements import bringer
from stoker.verify.pipeline import VerifyRequest, verify
from stoker.verify.python_probe import python_of
from stoker.verify.wheel.wheel_file import Recorded, Wheel, name_problems

_MAX_TEXT = 1 << 20
"""Bytes of METADATA or WHEEL; torch's METADATA has 60,000."""

_NO_SITE = Path("/site-packages")


@dataclass(slots=True)
class PackageRequest:
    """What to package. `plat` is "auto" or a platform tag, `level` 0 (stored) to 9."""

    wheel: Path
    mode: Mode
    folder: Path
    plat: str = "auto"
    level: int = 6
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))


class _Copy(NamedTuple):
    """A library that goes into the wheel: its name there, the file, where it is from, and the bytes that had."""

    name: str
    file: Path
    library: SharedLibrary
    size_before: int


class _Plan(NamedTuple):
    """What is known before anything is written."""

    libraries: Sequence[StagedLibrary]
    found: Resolution
    requirements: Requirements
    tag: str
    reasons: Sequence[TagReason]


def package_wheel(request: PackageRequest, progress: Progress) -> Packaged:
    """Make the wheel that is asked for, and verify it. Raises PackagingError and OSError."""
    patchelf()
    try:
        with (
            Wheel(request.wheel) as wheel,
            _output_folder(request.folder),
            tempfile.TemporaryDirectory(prefix=".stoker-package-", dir=request.folder) as scratch,
        ):
            return _Packaging(request, wheel, Path(scratch), progress).run()
    except UnreadableError as err:
        raise PackagingError(f"{request.wheel.name}: {err}; build or copy it again") from err
    except PackagingError as err:
        raise PackagingError(f"{request.wheel.name}: {err}") from err


@contextlib.contextmanager
def _output_folder(folder: Path) -> Iterator[None]:
    """Make the folder of the new wheel, and remove it again if nothing came of that."""
    new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        if new:
            with contextlib.suppress(OSError):  # somebody else uses it by now
                folder.rmdir()
        raise


class _Packaging:
    """One wheel on its way."""

    def __init__(self, request: PackageRequest, wheel: Wheel, scratch: Path, progress: Progress) -> None:
        self.request, self.wheel, self.scratch, self.progress = request, wheel, scratch, progress
        self.host = Host(python_of(request.environment), request.environment)
        python = self.host.python()
        self.site = python.site if python is not None else _NO_SITE
        self.own_name = canonicalize_name(wheel.path.name.partition("-")[0])
        # An older build of the wheel itself that is installed here is nothing to lean on.
        self.owners = {
            library: kept
            for library, owners in owners_of(python).items()
            if (kept := [o for o in owners if o.name != self.own_name])
        }

    def run(self) -> Packaged:
        if problem := next((what for severity, what in name_problems(self.wheel) if severity == "error"), ""):
            raise PackagingError(problem)
        record = check_members(self.wheel, self.scratch)
        plan = self._plan(self._libraries(record))
        target = self._target(plan.tag)
        copies = self._copies(plan.found)
        names = {asked: copy.name for asked, copy in copies.items()}
        changes = changes_of(plan.libraries, plan.found, names, self._folder)
        for change in changes:
            self.progress(f"rewriting {change.staged.member}", 0, 0)
            rewrite(change.staged.file, change.staged.member, rpath=change.rpath, needed=change.needed)
        self._rewrite_copies(copies, names, plan.found)
        files = {c.staged.member: c.staged.file for c in changes}
        files |= {str(self._folder / copy.name): copy.file for copy in copies.values()}
        self._write(WheelParts(self.wheel, record, files, self._texts(plan, target)), target)
        return self._packaged(plan, target, changes, copies)

    @property
    def _folder(self) -> PurePosixPath:
        return folder_for_copies(self.wheel.path.name.partition("-")[0])

    def _libraries(self, record: Mapping[str, Recorded]) -> list[StagedLibrary]:
        """The libraries for this machine; those for others stay as they are."""
        self.progress("reading", 0, 0)
        everything = stage(self.wheel, record, self.scratch, self.site)
        machine = self.host.machine
        found = [s for s in everything if s.library.elf.machine_name == machine]
        if everything and not found:
            what = f"its libraries are for {everything[0].library.elf.machine_name}, this machine is {machine}"
            raise PackagingError(f"{what}; package it where it was built")
        if not found:
            raise PackagingError("it holds no shared library, and installs anywhere as it is; nothing to package")
        return found

    def _plan(self, libraries: Sequence[StagedLibrary]) -> _Plan:
        machine, mode = self.host.machine, self.request.mode
        requires = requirements_in(self._text("METADATA"))
        if mode == "bundle" and "torch" in names_of(requires):
            what = "it requires torch, which brings a CUDA of its own: a second one would be in the process"
            raise PackagingError(f"{what}; package it with --mode pypi")
        found = resolve(libraries, names_of(requires), mode, self._surroundings())
        owners = {owner.name: owner for owner in found.required.values()}.values()
        if mode == "pypi":
            requirements = pinned(requires, owners)
        else:
            nvidia = [n for n in names_of(requires) if n.startswith("nvidia-")]
            toolkit = {"cuda-toolkit"} if any(map(CUDA.fullmatch, found.vendored)) else set[str]()
            requirements = without(requires, toolkit | {bringer(name, nvidia) for name in found.vendored})
        own = frozenset({*found.required, *found.vendored, *own_names(libraries)})
        reasons = reasons_for([*(s.library for s in libraries), *found.vendored.values()], own, found.required)
        asked = self.request.plat
        tag = highest(reasons, machine) if asked == "auto" else kept_or_refused(asked, reasons, machine)
        return _Plan(libraries, found, requirements, tag, reasons)

    def _surroundings(self) -> BuildMachine:
        linker = Linker(self.request.environment)
        title = Path(self.host.python_program).parent.parent
        others = toolkit_libraries(self.request.environment)
        return BuildMachine(linker, self.owners, others, frozenset(read_cache(linker.cache)), str(title))

    def _copies(self, found: Resolution) -> dict[str, _Copy]:
        copies = {}
        for number, (asked, library) in enumerate(found.vendored.items()):
            self.progress(f"copying {library.path}", 0, 0)
            file = self.scratch / f"copy-{number}"
            shutil.copyfile(library.path, file)
            name = copy_name(asked, digest_of(file).hexdigest(), by_name_alone=asked in found.by_name_alone)
            copies[asked] = _Copy(name, file, library, file.stat().st_size)
        return copies

    def _rewrite_copies(self, copies: Mapping[str, _Copy], names: Mapping[str, str], found: Resolution) -> None:
        outside = dict.fromkeys(owner.folder for owner in found.required.values())
        for copy in copies.values():
            needed = {n: names[n] for n in copy.library.dynamic.needed if n in names}
            leaning = any(n in found.required for n in copy.library.dynamic.needed)
            rpath = ("$ORIGIN", *(f"$ORIGIN/../{folder}" for folder in outside if leaning))
            rewrite(copy.file, str(copy.library.path), rpath=rpath, needed=needed, soname=copy.name)

    def _text(self, name: str) -> bytes:
        """METADATA or WHEEL. Raises PackagingError and UnreadableError."""
        member = next((m for m in self.wheel.members if m.filename == f"{self.wheel.info_folder}/{name}"), None)
        if member is None:
            raise PackagingError(f"it has no {name}; build it again")
        if member.file_size > _MAX_TEXT:
            raise PackagingError(f"its {name} has {format_bytes(member.file_size)}; at most 1 MiB is read")
        return self.wheel.open(member, Deadline()).read(0, member.file_size)

    def _texts(self, plan: _Plan, target: Path) -> dict[str, bytes]:
        pythons, abis, platforms = (part.split(".") for part in target.stem.split("-")[-3:])
        tags = ["-".join(tag) for tag in product(pythons, abis, platforms)]
        head = self.wheel.info_folder
        return {
            f"{head}/METADATA": with_requirements(self._text("METADATA"), plan.requirements.lines),
            f"{head}/WHEEL": with_platform(self._text("WHEEL"), tags),
        }

    def _target(self, tag: str) -> Path:
        """Where the new wheel goes. Raises PackagingError where that is the old one."""
        stem = self.wheel.path.stem.rpartition("-")[0]
        target = self.request.folder / f"{stem}-{tag}.whl"
        if target.exists() and target.samefile(self.wheel.path):
            raise PackagingError(
                f"the new wheel would replace it in {self.request.folder}; name another folder with -o"
            )
        return target

    def _write(self, parts: WheelParts, target: Path) -> None:
        whole = self.scratch / target.name
        write_wheel(parts, whole, self.request.level, self.progress)
        with whole.open("rb") as file:
            os.fsync(file.fileno())
        whole.replace(target)

    def _packaged(
        self, plan: _Plan, target: Path, changes: Sequence[FileChange], copies: Mapping[str, _Copy]
    ) -> Packaged:
        self.progress("verifying", 0, 0)
        report = verify(VerifyRequest([str(target)], environment=self.request.environment))
        with Wheel(target) as new:
            unpacked = sum(m.file_size for m in new.members)
        old = self.wheel.path
        return Packaged(
            mode=self.request.mode,
            input=str(old),
            output=str(target),
            tag_before=old.stem.rpartition("-")[2],
            tag=plan.tag,
            tag_reasons=tuple(plan.reasons),
            size_before=old.stat().st_size,
            size=target.stat().st_size,
            unpacked_before=sum(m.file_size for m in self.wheel.members),
            unpacked=unpacked,
            files=tuple(_packaged_file(change) for change in changes),
            requires=tuple(_pinned_packages(plan.found)),
            dropped=plan.requirements.dropped,
            vendored=tuple(self._vendored(copy) for copy in copies.values()),
            left_out=tuple(f"{name}: {why}" for name, why in plan.found.left_out.items()),
            gpus=gpu_reach(report),
            verification=report,
        )

    def _vendored(self, copy: _Copy) -> VendoredFile:
        source = os.path.normpath(copy.library.path)
        return VendoredFile(str(self._folder / copy.name), source, copy.size_before, copy.file.stat().st_size)


def _packaged_file(change: FileChange) -> PackagedFile:
    dynamic = change.staged.library.dynamic
    return PackagedFile(change.staged.member, (*dynamic.rpath, *dynamic.runpath), change.rpath)


def _pinned_packages(found: Resolution) -> Iterator[PinnedPackage]:
    libraries: dict[str, list[str]] = {}
    for name, owner in sorted(found.required.items()):
        libraries.setdefault(f"{owner.name}=={owner.version}", []).append(name)
    for requirement, names in sorted(libraries.items()):
        yield PinnedPackage(requirement, tuple(names))
