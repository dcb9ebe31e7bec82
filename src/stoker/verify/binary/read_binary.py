"""One binary to one report: device code by architecture, and what the dynamic linker needs. Unaware of devices."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from stoker.model.report import HeldArch, Problem
from stoker.verify.archs import Arch, Kind, toolkit_of_ptx
from stoker.verify.binary import archive
from stoker.verify.binary.byte_source import (
    ByteSource,
    Deadline,
    DeflatedSource,
    FileSource,
    PartSource,
    UnreadableError,
)
from stoker.verify.binary.device_code import Code, ModuleGroup, ReadFile
from stoker.verify.binary.elf import (
    ET_REL,
    SHF_ALLOC,
    SHF_COMPRESSED,
    SHF_EXECINSTR,
    SHT_NOBITS,
    SHT_PROGBITS,
    Dynamic,
    Elf,
    ElfSection,
    is_elf,
    read_dynamic,
    read_elf,
)
from stoker.verify.binary.fatbin import (
    CONTAINER_BYTES,
    Image,
    find_containers,
    is_cubin,
    is_ptx,
    read_cubin,
    read_images,
    read_ptx,
)
from stoker.verify.binary.other_code import HIP_SECTION, hip_targets, is_other, read_other
from stoker.verify.gpu.driver_versions import first_driver

LINKED, RELOCATABLE, WRAPPERS = ".nv_fatbin", "__nv_relfatbin", ".nvFatBinSegment"
"""Sections with device code. The second holds code that still needs a device link (`-rdc=true`): it counts in objects
and static libraries; what of it a linked file can run has been copied to the first. The third points at either."""

_MAX_CHOICES = 10_000
_MAX_IMAGES = 1_000_000
_MAX_RUNS = 1000
_MAX_PADDING = 256
"""Zeros that linkers put between two objects' containers, at most: they are aligned to 8 bytes, seldom to more."""

_LEAST_AREA = 80
"""Bytes of the smallest container: its header and that of one entry."""


class _Run(NamedTuple):
    """A place full of containers."""

    start: int
    end: int


Sibling = Callable[[str], FileSource]
"""Opens a file beside the archive by name; for thin archives."""


class Binary(NamedTuple):
    """A file's report, and its headers where it is one ELF file."""

    report: ReadFile
    elf: Elf | None
    dynamic: Dynamic | None


@dataclass(slots=True)
class _Module:
    """The images of one container seen so far."""

    codes: set[Code] = field(default_factory=set)
    hollow: set[Code] = field(default_factory=set)
    doubtful: Counter[Code] = field(default_factory=Counter)

    def add(self, image: Image) -> None:
        """Note what this image offers."""
        code = Code(image.kind, image.arch, image.version)
        if image.doubtful:
            self.doubtful[code] += 1
        elif not image.empty:
            self.codes.add(code)
        elif image.kind == "cubin":
            self.hollow.add(code)

    def empty_after_all(self) -> Counter[Code]:
        """The doubtful ones, counted, where no larger machine code is beside them."""
        return Counter() if any(c.kind == "cubin" for c in self.codes) else self.doubtful

    def codes_of_all(self) -> frozenset[Code]:
        """The choice that this module offers.

        PTX beside empty machine code of its number is empty too: nvcc writes some for a source without a kernel. Other
        PTX beside it has kernels: those of a source that defines them from some architecture on.
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
class _Inventory:
    """Images seen so far."""

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

    def add(self, images: Iterable[Image]) -> None:
        """Count one module's images."""
        module = _Module()
        for image in images:
            if image.kind not in ("cubin", "ptx"):
                self.other[image.kind] += 1
                continue
            self._count(image)
            module.add(image)
        self._end_module(module)

    def add_containers(self, source: ByteSource, deadline: Deadline, *, stray: bool = False) -> list[_Run]:
        """Count all containers, each one module; where they lie. What was counted before a break stays."""
        runs: list[_Run] = []
        for container in find_containers(source, deadline, stray=stray):
            self.add(read_images(source, container, deadline))
            if runs and container.start - runs[-1].end <= _MAX_PADDING:
                runs[-1] = _Run(runs[-1].start, container.end)
            elif len(runs) < _MAX_RUNS:
                runs.append(_Run(container.start, container.end))
        return runs

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

    def archs(self) -> tuple[HeldArch, ...]:
        """By kind, then by architecture."""
        return tuple(self._held(*key) for key in sorted(self.count))

    def _held(self, kind: Kind, arch: Arch) -> HeldArch:
        key = kind, arch
        kernels = None if key in self.hidden else self.kernels[key]
        name = arch.sm if kind == "cubin" else arch.compute
        version = self.ptx.get(arch) if kind == "ptx" else None
        driver = first_driver(toolkit_of_ptx(version)) if version else ""
        ptx = f"{version[0]}.{version[1]}" if version else ""
        return HeldArch(kind, name, self.count[key], self.size[key], kernels, self.empty[key], ptx, driver)


def recognised(source: ByteSource) -> bool:
    """True when the first bytes are those of a binary that this module reads, or of PTX."""
    return (
        source.read(0, 4) in (b"\x7fELF", CONTAINER_BYTES)
        or archive.is_archive(source)
        or is_other(source)
        or is_ptx(source)
    )


def read_binary(path: str, source: ByteSource, deadline: Deadline, sibling: Sibling | None = None) -> Binary:
    """The report of one binary. Never raises for what is in the file: that becomes a problem of the report."""
    inventory = _Inventory()
    problems: list[Problem] = []
    elf: Elf | None = None
    dynamic: Dynamic | None = None
    machine = ""
    needed: tuple[str, ...] = ()
    try:
        if (other := read_other(source)) is not None:
            machine, needed = f"{other.system} {other.machine}", other.needed
            if other.device_code is not None:
                inventory.add_containers(other.device_code, deadline)
        elif archive.is_archive(source):
            problems += _read_archive(path, source, inventory, deadline, sibling)
        elif is_cubin(source):
            inventory.add([read_cubin(source)])
        elif is_ptx(source):
            inventory.add([read_ptx(source)])
        elif source.read(0, 4) == CONTAINER_BYTES:
            inventory.add_containers(source, deadline)
        else:
            elf, inventory = _read_headers(source, inventory, deadline)
            for section in elf.named(HIP_SECTION):
                inventory.other.update(hip_targets(PartSource(source, section.offset, section.size)))
            problems += _device_link_problems(path, source, elf)
            dynamic = read_dynamic(source, elf)
    except (UnreadableError, OSError) as err:
        problems.append(Problem("error", path, str(err), "build or copy the file again", unreadable=True))
    # What was half read is not judged: who knows what is in the other half.
    modules = inventory.modules if not any(p.unreadable for p in problems) else Counter()
    report = ReadFile(
        path=path,
        size=source.size,
        machine=elf.machine_name if elf else machine,
        archs=inventory.archs(),
        modules=modules.total(),
        groups=tuple(ModuleGroup(codes, count) for codes, count in modules.most_common()),
        toolkit=inventory.toolkit if inventory.toolkit > (0, 0) else None,
        other=dict(inventory.other),
        needed=dynamic.needed if dynamic else needed,
        problems=tuple(problems),
    )
    return Binary(report, elf, dynamic)


def _read_headers(source: ByteSource, inventory: _Inventory, deadline: Deadline) -> tuple[Elf, _Inventory]:
    """An ELF file's headers, and the device code in it.

    The headers of sections are at the end. So a deflated file is searched first, on the way there, and once more only
    where that was not enough.
    """
    if not isinstance(source, DeflatedSource):
        elf = read_elf(source)
        _read_sections(source, elf, inventory, deadline)
        return elf, inventory
    runs = inventory.add_containers(source, deadline, stray=True)
    elf = read_elf(source)
    sections = [s for name in (LINKED, RELOCATABLE) for s in elf.named(name)]
    if all(s.name == LINKED and _full(s, runs) for s in sections) and elf.type != ET_REL:
        return elf, inventory
    inventory = _Inventory()
    _read_sections(source, elf, inventory, deadline)
    return elf, inventory


def _full(section: ElfSection, runs: Iterable[_Run]) -> bool:
    """Whether the section is full of containers that were read."""
    end = section.offset + section.size
    return any(r.start - section.offset <= _MAX_PADDING and end - r.end <= _MAX_PADDING for r in runs
               if section.offset <= r.start < end)  # fmt: skip


def _read_sections(source: ByteSource, elf: Elf, inventory: _Inventory, deadline: Deadline) -> None:
    """Count what nvcc puts into sections of its own, and containers among other data, as TensorFlow's are."""
    own = (LINKED, RELOCATABLE) if elf.type == ET_REL else (LINKED,)
    read = 0
    for section in sorted(_holding_data(elf, own) if elf.sections else [_everything(source)], key=lambda s: s.offset):
        if section.name in own:
            if section.flags & SHF_COMPRESSED:
                raise UnreadableError(f"the section {section.name} is compressed as a whole")
            if section.offset + section.size > source.size:
                raise UnreadableError(f"cut off: the section {section.name} ends beyond the file's {source.size} bytes")
        start, end = max(read, section.offset), section.offset + section.size
        if end > start:
            part = PartSource(source, start, end - start)
            inventory.add_containers(part, deadline, stray=section.name not in own)
            read = end


def _holding_data(elf: Elf, own: tuple[str, ...]) -> list[ElfSection]:
    """The sections in which device code may lie: nvcc's own, and data. Code and tables of the linker are none."""
    return [
        s for s in elf.sections
        if (s.name in own and s.type != SHT_NOBITS)
        or (s.type == SHT_PROGBITS and s.flags & SHF_ALLOC and not s.flags & SHF_EXECINSTR and s.size >= _LEAST_AREA
            and s.name != RELOCATABLE and not s.name.startswith(_NO_DATA))
    ]  # fmt: skip


_NO_DATA = (".eh_frame", ".gcc_except_table", ".nv.", ".got", ".plt")


def _everything(source: ByteSource) -> ElfSection:
    """All of a file whose section headers were stripped."""
    return ElfSection("", SHT_PROGBITS, 0, 0, source.size)


def _device_link_problems(path: str, source: ByteSource, elf: Elf) -> list[Problem]:
    if elf.type != ET_REL and elf.named(RELOCATABLE) and not _device_linked(source, elf):
        return [
            Problem("error", path, "has device code that was compiled with -rdc=true and never linked: it cannot start",
                    "link with nvcc, or add a device link step (CUDA_RESOLVE_DEVICE_SYMBOLS in CMake)")
        ]  # fmt: skip
    return []


_WRAPPER = struct.Struct("<IIQQ")
_WRAPPER_MAGIC, _LINKED_WRAPPER = 0x466243B1, 2
_MAX_WRAPPERS = 100_000


def _device_linked(source: ByteSource, elf: Elf) -> bool:
    """True when a device link has taken place: it registers its result by a wrapper of version 2, others have 1.

    The wrappers are those of the toolkit's fatbinary_section.h: magic, version, and two addresses.
    """
    versions: set[int] = set()
    for section in elf.named(WRAPPERS):
        data = source.read(section.offset, min(section.size, _MAX_WRAPPERS * _WRAPPER.size))
        whole = len(data) - len(data) % _WRAPPER.size
        versions |= {v for magic, v, _, _ in _WRAPPER.iter_unpack(data[:whole]) if magic == _WRAPPER_MAGIC}
    return _LINKED_WRAPPER in versions if versions else bool(elf.named(LINKED))


_MAX_MEMBER_PROBLEMS = 10


def _read_archive(
    path: str, source: ByteSource, inventory: _Inventory, deadline: Deadline, sibling: Sibling | None
) -> list[Problem]:
    problems: list[Problem] = []
    for member in archive.read_members(source):
        deadline.check()
        where = f"{path}({member.name})"
        try:
            if member.offset is not None:
                problems += _read_member(where, PartSource(source, member.offset, member.size), inventory, deadline)
            else:
                with _beside(member.name, sibling) as body:
                    problems += _read_member(where, body, inventory, deadline)
        except (UnreadableError, OSError) as err:
            problems.append(Problem("error", where, str(err), "build the library again", unreadable=True))
        if len(problems) >= _MAX_MEMBER_PROBLEMS:
            problems.append(Problem("error", path, "too many broken members; gave up on the rest", unreadable=True))
            break
    return problems


def _beside(name: str, sibling: Sibling | None) -> FileSource:
    if sibling is None:
        raise UnreadableError("a thin library's member, which is not in the package")
    return sibling(name)


def _read_member(where: str, body: ByteSource, inventory: _Inventory, deadline: Deadline) -> list[Problem]:
    if not is_elf(body) or is_cubin(body):
        return []
    elf = read_elf(body)
    _read_sections(body, elf, inventory, deadline)
    return _device_link_problems(where, body, elf)
