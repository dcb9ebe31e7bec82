"""Counts the device code of one file by architecture and by module. Knows nothing of where in the file it lies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from stoker.model.report import HeldArch
from stoker.verify.archs import Arch, Kind, toolkit_of_ptx
from stoker.verify.binary.byte_source import ByteSource, Deadline, UnreadableError
from stoker.verify.binary.device_code import Code, Image
from stoker.verify.binary.fatbin import KINDS, LTO_IR, find_containers, read_images
from stoker.verify.gpu.driver_versions import first_driver

LTO_AS_DATA = "lto as data"

_MAX_CHOICES = 10_000
_MAX_IMAGES = 1_000_000


@dataclass(slots=True)
class _Module:
    """The images of one container seen so far."""

    codes: set[Code] = field(default_factory=set)
    hollow: set[Code] = field(default_factory=set)
    doubtful: Counter[Code] = field(default_factory=Counter)

    def add(self, image: Image) -> None:
        """Add what this image offers."""
        code = Code(image.kind, image.arch, image.version)
        if image.doubtful:
            self.doubtful[code] += 1
        elif not image.empty:
            self.codes.add(code)
        elif image.kind == "cubin":
            self.hollow.add(code)

    def empty_after_all(self) -> Counter[Code]:
        """Return the doubtful images, counted, if no larger machine code is beside them."""
        return Counter() if any(c.kind == "cubin" for c in self.codes) else self.doubtful

    def codes_of_all(self) -> frozenset[Code]:
        """Return the device code that this module offers.

        PTX beside empty machine code of the same capability is empty too: nvcc writes both for a source without a
        kernel. Other PTX beside it has kernels: the source defines them only from some architecture on.
        """
        empty = self.empty_after_all()
        codes = self.codes | (self.doubtful.keys() - empty.keys())
        hollow = self.hollow | empty.keys()
        if not hollow or any(c.kind == "cubin" for c in codes):
            return frozenset(codes)
        bare = {c.arch.capability for c in hollow}
        codes = {c for c in codes if c.arch.capability not in bare}
        return frozenset(codes | {replace(c, kind="empty") for c in hollow}) if codes else frozenset()


@dataclass(slots=True)
class Inventory:
    """The images seen so far."""

    count: Counter[tuple[Kind, Arch]] = field(default_factory=Counter)
    size: Counter[tuple[Kind, Arch]] = field(default_factory=Counter)
    empty: Counter[tuple[Kind, Arch]] = field(default_factory=Counter)
    kernels: Counter[tuple[Kind, Arch]] = field(default_factory=Counter)
    hidden: set[tuple[Kind, Arch]] = field(default_factory=set)
    other: Counter[str] = field(default_factory=Counter)
    modules: Counter[frozenset[Code]] = field(default_factory=Counter)
    ptx: dict[Arch, tuple[int, int]] = field(default_factory=dict)
    toolkit: tuple[int, int] = (0, 0)
    pieces: int = 0

    def add(self, images: Iterable[Image], *, as_data: bool = False) -> None:
        """Count one module's images. LTO code among other data is input for a linker that the program calls
        (libmathdx), so the file needs no device link for it."""
        module = _Module()
        for image in images:
            if image.kind not in ("cubin", "ptx"):
                self.other[LTO_AS_DATA if as_data and image.kind == KINDS[LTO_IR] else image.kind] += 1
                continue
            self._count(image)
            module.add(image)
        self._end_module(module)

    def add_containers(
        self,
        source: ByteSource,
        deadline: Deadline,
        *,
        stray: bool = False,
        as_data: bool = False,
        pieces: Mapping[int, Sequence[Sequence[Image]]] | None = None,
    ) -> None:
        """Count all containers, one module each. What was counted before the source breaks off stays counted.

        `pieces` has, by where its container begins, the PTX of what a device link linked.
        """
        for container in find_containers(source, deadline, stray=stray):
            images = read_images(source, container, deadline)
            if pieces and container.start in pieces:
                self.add_relinked(images, pieces[container.start])
            else:
                self.add(images, as_data=as_data)

    def add_relinked(self, linked: Iterable[Image], pieces: Sequence[Sequence[Image]]) -> None:
        """Count the result of a device link, and a module for each piece: it offers the common machine code, and its
        own PTX."""
        common = _Module()
        for image in linked:
            self._count(image)
            common.add(image)
        for code, count in common.empty_after_all().items():
            self.empty["cubin", code.arch] += count
        for piece in pieces:
            for image in piece:
                self._count(image)
            codes = common.codes_of_all() | {Code(image.kind, image.arch, image.version) for image in piece}
            if codes:
                self.modules[codes] += 1

    def _end_module(self, module: _Module) -> None:
        for code, count in module.empty_after_all().items():
            self.empty["cubin", code.arch] += count
        if codes := module.codes_of_all():
            self.modules[codes] += 1

    def _count(self, image: Image) -> None:
        kind: Kind = "ptx" if image.kind == "ptx" else "cubin"
        key = kind, image.arch
        self.pieces += 1
        self.count[key] += 1
        self.toolkit = max(self.toolkit, image.toolkit or self.toolkit)
        self.size[key] += image.size
        if image.kernels is None:
            self.hidden.add(key)
        else:
            self.kernels[key] += image.kernels
        if image.empty:
            self.empty[key] += 1
        elif kind == "ptx":
            self.ptx[image.arch] = max(self.ptx.get(image.arch, image.version), image.version)
        if self.pieces > _MAX_IMAGES:
            raise UnreadableError(f"more than {_MAX_IMAGES} pieces of device code")
        if len(self.count) > _MAX_CHOICES or len(self.modules) > _MAX_CHOICES or len(self.other) > _MAX_CHOICES:
            raise UnreadableError(f"more than {_MAX_CHOICES} kinds of device code: no compiler writes that")

    def toolkit_of_ptx(self) -> tuple[int, int]:
        """Return the newest CUDA version whose nvcc wrote PTX here; (0, 0) without any."""
        return max(map(toolkit_of_ptx, self.ptx.values()), default=(0, 0))

    def archs(self) -> tuple[HeldArch, ...]:
        """Return what the file holds, by kind and then by architecture."""
        return tuple(self._held(*key) for key in sorted(self.count))

    def _held(self, kind: Kind, arch: Arch) -> HeldArch:
        key = kind, arch
        kernels = None if key in self.hidden else self.kernels[key]
        name = arch.sm if kind == "cubin" else arch.compute
        version = self.ptx.get(arch) if kind == "ptx" else None
        driver = first_driver(toolkit_of_ptx(version)) if version else ""
        ptx = f"{version[0]}.{version[1]}" if version else ""
        return HeldArch(kind, name, self.count[key], self.size[key], kernels, self.empty[key], ptx, driver)
