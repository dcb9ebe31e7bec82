"""Reads one binary into a report: device code by architecture, and what the dynamic linker needs. Knows nothing of
GPUs."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from operator import attrgetter, itemgetter
from typing import NamedTuple

from stoker.model.report import Problem
from stoker.verify.binary import archive
from stoker.verify.binary.byte_source import (
    ByteSource,
    Deadline,
    FileSource,
    PartSource,
    UnreadableError,
)
from stoker.verify.binary.cubin import is_cubin, read_cubin
from stoker.verify.binary.deflated_source import DeflatedSource
from stoker.verify.binary.device_code import ModuleGroup, ReadFile
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
from stoker.verify.binary.fatbin import CONTAINER_BYTES
from stoker.verify.binary.inventory import Inventory
from stoker.verify.binary.magic_search import MagicSearch
from stoker.verify.binary.one_pass import MAX_TEXTS, HeldContainer, Passed, pass_through
from stoker.verify.binary.other_code import (
    HIDDEN_TARGETS,
    HIP_SECTION,
    SYCL,
    SYCL_SECTIONS,
    hip_targets,
    is_other,
    read_other,
)
from stoker.verify.binary.ptx import TEXT_BYTES, is_ptx, ptx_text, read_ptx
from stoker.verify.binary.relinked import LINKED, LINKED_WRAPPER, RELOCATABLE, WRAPPERS, read_relinked, wrappers
from stoker.verify.binary.symbols import Symbols

_MAX_PADDING = 256
"""Zeros that linkers put between the containers of two objects, at most: these are aligned to 8 bytes, rarely to
more."""

_LEAST_AREA = 80
"""Bytes of the smallest container: its header and that of one entry."""


Sibling = Callable[[str], FileSource]
"""Opens a file beside the archive by name; for thin archives."""


class Binary(NamedTuple):
    """A file's report, and its headers if it is a single ELF file."""

    report: ReadFile
    elf: Elf | None
    dynamic: Dynamic | None


def recognised(source: ByteSource) -> bool:
    """Whether the first bytes are those of a binary that this module reads, or of PTX."""
    return (
        source.read(0, 4) in (b"\x7fELF", CONTAINER_BYTES)
        or archive.is_archive(source)
        or is_other(source)
        or is_ptx(source)
    )


def read_binary(path: str, source: ByteSource, deadline: Deadline, sibling: Sibling | None = None) -> Binary:
    """Read one binary into a report. Never raises because of the file's content: that becomes a problem in the
    report."""
    inventory = Inventory()
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
            passed = pass_through(source, deadline) if isinstance(source, DeflatedSource) else None
            elf = read_elf(source)
            if passed is None or not _counted(passed, elf, inventory):
                _read_sections(source, elf, inventory, deadline)
                _read_texts(source, elf, inventory, deadline)
            inventory.other.update(_hip_targets(source, elf, passed))
            if elf.type != ET_REL:
                problems += _device_link_problems(path, elf, _wrapper_versions(source, elf, passed))
            dynamic = read_dynamic(source, elf)
    except (UnreadableError, OSError) as err:
        problems.append(Problem("error", path, str(err), "build or copy the file again", unreadable=True))
    # What was read only in part is not judged: the other part is unknown.
    modules = inventory.modules if not any(p.unreadable for p in problems) else Counter()
    report = ReadFile(
        path=path,
        size=source.size,
        machine=elf.machine_name if elf else machine,
        archs=inventory.archs(),
        modules=modules.total(),
        groups=tuple(ModuleGroup(codes, count) for codes, count in modules.most_common()),
        toolkit=_toolkit(elf, inventory),
        other=dict(inventory.other),
        needed=dynamic.needed if dynamic else needed,
        problems=tuple(problems),
    )
    return Binary(report, elf, dynamic)


def _toolkit(elf: Elf | None, inventory: Inventory) -> tuple[int, int] | None:
    """Return the CUDA version that a file shows: by its machine code, and, if it registers its kernels with the CUDA
    runtime, by the PTX beside them, which the nvcc of that runtime wrote."""
    registers = elf is not None and elf.type != ET_REL and bool(elf.named(WRAPPERS))
    found = max(inventory.toolkit, inventory.toolkit_of_ptx() if registers else (0, 0))
    return found if found > (0, 0) else None


def with_calls(binary: Binary, symbols: Symbols) -> Binary:
    """Return the binary with what its symbols show about its calls."""
    calls = any(s.name.startswith(_COMPILING) for s in symbols.needed)
    return binary._replace(report=replace(binary.report, calls_compiler=calls))


_COMPILING = (b"nvrtc", b"cuModuleLoad", b"cuLibraryLoad", b"cuLinkCreate")
"""Prefixes of functions that compile device code, or load what a library beside this one has compiled
(cuequivariance-ops-torch leaves NVRTC to libcue_ops.so)."""


def _counted(passed: Passed, elf: Elf, inventory: Inventory) -> bool:
    """Count what the pass through a file found, if that is everything.

    Returns False, and counts nothing, if the sections must be read.
    """
    whole = all(_full(s, passed.containers) and not s.flags & SHF_COMPRESSED for s in elf.named(LINKED))
    if _perhaps_relinked(passed, elf) or not whole or not passed.complete or elf.type == ET_REL:
        return False
    areas = sorted((s.offset, s.offset + s.size, s.name) for s in _holding_data(elf, (LINKED,)))
    for container in passed.containers:
        place = bisect_right(areas, container.start, key=itemgetter(0)) - 1
        if not elf.sections or (place >= 0 and container.end <= areas[place][1]):
            inventory.add(container.images, as_data=bool(elf.sections) and areas[place][2] != LINKED)
    if not inventory.count:
        for text in passed.texts:
            place = bisect_right(areas, text.start, key=itemgetter(0)) - 1
            if place >= 0 and text.end <= areas[place][1]:
                inventory.add(text.images)
    return True


def _perhaps_relinked(passed: Passed, elf: Elf) -> bool:
    """Whether there is PTX that the driver links at run time: which pieces have it, only their sections show."""
    areas = [(s.offset, s.offset + s.size) for s in elf.named(RELOCATABLE)]
    return LINKED_WRAPPER in passed.wrappers and any(
        start <= held.start < end and any(image.kind == "ptx" for image in held.images)
        for start, end in areas
        for held in passed.containers
    )


def _full(section: ElfSection, containers: Sequence[HeldContainer]) -> bool:
    """Whether the section is full of containers that were read."""
    end = section.offset + section.size
    read = section.offset
    first = bisect_left(containers, section.offset, key=attrgetter("start"))
    for container in islice(containers, first, None):
        if container.start - read > _MAX_PADDING or container.start >= end:
            break
        read = container.end
    return end - read <= _MAX_PADDING


def _hip_targets(source: ByteSource, elf: Elf, passed: Passed | None) -> Mapping[str, int]:
    found: Counter[str] = Counter({SYCL: 1} if any(map(elf.named, SYCL_SECTIONS)) else {})
    for section in elf.named(HIP_SECTION):
        if passed is None:
            found.update(hip_targets(PartSource(source, section.offset, section.size)))
        else:
            return passed.hip_targets or {HIDDEN_TARGETS: 1}
    return found


def _read_sections(source: ByteSource, elf: Elf, inventory: Inventory, deadline: Deadline) -> None:
    """Count the device code in nvcc's own sections, and containers among other data, as in TensorFlow."""
    own = (LINKED, RELOCATABLE) if elf.type == ET_REL else (LINKED,)
    relinked = read_relinked(source, elf, deadline) if elf.type != ET_REL else None
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
            stray = section.name not in own
            pieces = {relinked.start - start: relinked.pieces} if relinked is not None else {}
            inventory.add_containers(part, deadline, stray=stray, as_data=stray and bool(elf.sections), pieces=pieces)
            read = end


def _read_texts(source: ByteSource, elf: Elf, inventory: Inventory, deadline: Deadline) -> None:
    """Count PTX that is text among the data of a linked file without other device code, as in Mojo's: the program
    passes it to the driver."""
    if inventory.count or elf.type == ET_REL:
        return
    for section in _holding_data(elf, ()):
        part = PartSource(source, section.offset, section.size)
        search = MagicSearch(part, [TEXT_BYTES], deadline)
        at = 0
        while (found := search.next(at)) is not None and inventory.pieces < MAX_TEXTS:
            image = ptx_text(part, found.offset)
            inventory.add([image] if image is not None else [])
            at = found.offset + len(TEXT_BYTES)


def _holding_data(elf: Elf, own: tuple[str, ...]) -> list[ElfSection]:
    """Return the sections that may contain device code: nvcc's own, and data; not host code or the linker's tables."""
    return [
        s for s in elf.sections
        if (s.name in own and s.type != SHT_NOBITS)
        or (s.type == SHT_PROGBITS and s.flags & SHF_ALLOC and not s.flags & SHF_EXECINSTR and s.size >= _LEAST_AREA
            and s.name != RELOCATABLE and not s.name.startswith(_NO_DATA))
    ]  # fmt: skip


_NO_DATA = (".eh_frame", ".gcc_except_table", ".nv.", ".got", ".plt")


def _everything(source: ByteSource) -> ElfSection:
    """Return a section that stands for the whole of a file without section headers."""
    return ElfSection("", SHT_PROGBITS, 0, 0, source.size)


def _device_link_problems(path: str, elf: Elf, versions: set[int]) -> list[Problem]:
    """Return a problem if no device link was done."""
    linked = LINKED_WRAPPER in versions if versions else bool(elf.named(LINKED))
    if not elf.named(RELOCATABLE) or linked:
        return []
    what = "has device code that was compiled with -rdc=true and never linked: it cannot start"
    remedy = "link with nvcc, or add a device link step (CUDA_RESOLVE_DEVICE_SYMBOLS in CMake)"
    return [Problem("error", path, what, remedy)]


def _wrapper_versions(source: ByteSource, elf: Elf, passed: Passed | None = None) -> set[int]:
    """Return the versions of the wrappers that register device code."""
    if passed is not None:
        return set(passed.wrappers) if elf.named(WRAPPERS) else set()
    return {version for version, _ in wrappers(source, elf)}


_MAX_MEMBER_PROBLEMS = 10


def _read_archive(
    path: str, source: ByteSource, inventory: Inventory, deadline: Deadline, sibling: Sibling | None
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


def _read_member(where: str, body: ByteSource, inventory: Inventory, deadline: Deadline) -> list[Problem]:
    if not is_elf(body) or is_cubin(body):
        return []
    elf = read_elf(body)
    _read_sections(body, elf, inventory, deadline)
    return [] if elf.type == ET_REL else _device_link_problems(where, elf, _wrapper_versions(body, elf))
