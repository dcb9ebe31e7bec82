"""Device code inside host binaries: the containers that nvcc's `fatbinary` writes. Unaware of ELF sections around them.

Layout, little endian, as written by CUDA 11 to 13 (agreement with `cuobjdump` is part of the tests). Container: u32
magic, u16 version 1, u16 header size, u64 size of the entries that follow. Entry: u16 kind, u16 version, u32 header
size, u64 payload size, u32 compressed size at 16, u16 minor and u16 major version of the code at 24, u32 architecture
at 28, u64 flags at 40, u64 size before compression at 56.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from stoker.verify.archs import Arch, arch_of
from stoker.verify.binary.byte_source import ByteSource, Deadline, PartSource, UnreadableError
from stoker.verify.binary.elf import EM_CUDA, MAGIC, SHT_NOBITS, Elf, read_elf

CONTAINER = 0xBA55ED50
CONTAINER_BYTES = struct.pack("<I", CONTAINER)

PTX, CUBIN, OLD_CUBIN, LTO_IR = 1, 2, 4, 8
KINDS = {PTX: "ptx", CUBIN: "cubin", OLD_CUBIN: "cubin", LTO_IR: "lto"}

_ARCH_ALONE, _ARCH_FAMILY = 1 << 20, 1 << 21
_DEBUG = 0x2
_COMPRESSED = 0x1000 | 0x2000 | 0x8000
"""LZ4 in two generations, zstd."""

_MAX_IMAGES = 1_000_000
_MAX_GAP = 1 << 20
"""Bytes without a container that are searched for the next one before the section is called broken."""
_WINDOW = 1 << 16
_LEAST_ENTRY = 64
_MAX_ARCH = 999


class Stub(NamedTuple):
    """How large, before compression, a cubin without any kernel may be, for architectures from `first` on.

    Up to `surely` bytes it holds none, up to `perhaps` none either unless a larger one for another architecture is
    beside it; `debug` is the bound of one with debug information (-G).
    """

    first: int
    surely: int
    perhaps: int
    debug: int


STUBS = (Stub(100, 4000, 4000, 9000), Stub(90, 1700, 2300, 4400), Stub(70, 1700, 1950, 4400), Stub(0, 1500, 1500, 1500))
"""Measured with ptxas 12.4 to 13.0, with -c, -g and -lineinfo: without kernels and with an empty one.

From 10.0 on none have up to 3632 bytes, the smallest kernel 4752; with -g 6304 and 11744. For 9.0 2224 and 2608; with
-g 3264 and 7088. From 7.0 on 1944 (what nvcc 13.0 links into every library has 1456 to 1824) and 2176, by ptxas 11.7
2088; with -g 3112 and 5696. Before 7.0 the smallest kernel has 1544.
"""

EMPTY_PTX = 80
"""PTX no larger than this is its header (56 bytes); with an empty kernel it has 96."""


class Image(NamedTuple):
    """One piece of device code; sizes in bytes. `kernels` is None where compression hides them.

    A `doubtful` one is empty if nothing larger is in its container.
    """

    container: int
    kind: str
    arch: Arch
    version: tuple[int, int]
    size: int
    kernels: int | None
    empty: bool
    doubtful: bool = False


def read_images(source: ByteSource, deadline: Deadline) -> Iterator[Image]:
    """The images of a run of containers; raises UnreadableError where the run breaks off."""
    at, number, count = 0, 0, 0
    while (found := _next_container(source, at, deadline)) is not None:
        start, size = found
        for image in _entries(source, start, start + size, number, deadline):
            count += 1
            if count > _MAX_IMAGES:
                raise UnreadableError(f"more than {_MAX_IMAGES} pieces of device code")
            yield image
        number += 1
        at = start + size


def _next_container(source: ByteSource, at: int, deadline: Deadline) -> tuple[int, int] | None:
    """Where the entries of the next container start, and their size; None at the end. Linkers pad with zeros."""
    between = 0
    window = _LEAST_ENTRY
    while at < source.size:
        deadline.check()
        data = source.read(at, window)
        place = data.find(CONTAINER_BYTES)
        if place >= 0:
            return _container(source, at + place)
        between += len(data) if data.strip(b"\0") else 0
        if between > _MAX_GAP:
            break
        # The magic may lie across the end of what was read; the last bytes of all are no magic.
        at += len(data) - 3 if at + len(data) < source.size else len(data)
        window = _WINDOW
    if between:
        raise UnreadableError(f"bytes that are no device code container, {between} or so before {at}")
    return None


def _container(source: ByteSource, at: int) -> tuple[int, int]:
    head = source.read(at, 16)
    if len(head) < 16:
        raise UnreadableError(f"cut off: a device code container begins at {at} of {source.size}")
    _, version, header, size = struct.unpack("<IHHQ", head)
    if version != 1 or header < 16:
        raise UnreadableError(f"device code container of version {version}, header {header} at {at}: only 1 is known")
    if at + header + size > source.size:
        raise UnreadableError(f"the device code container at {at} claims {size} bytes, beyond its section's end")
    return at + header, size


_ENTRY = struct.Struct("<HHIQI")


def _entries(source: ByteSource, at: int, end: int, number: int, deadline: Deadline) -> Iterator[Image]:
    while at < end:
        deadline.check()
        head = source.read(at, _LEAST_ENTRY)
        if len(head) < _LEAST_ENTRY or at + _LEAST_ENTRY > end:
            raise UnreadableError(f"cut off: device code entry at {at}, its container ends at {end}")
        kind, _, header, size, _ = _ENTRY.unpack_from(head)
        if header < _LEAST_ENTRY or at + header + size > end:
            raise UnreadableError(f"the device code entry at {at} claims {header}+{size} bytes beyond its container")
        yield _image(source, at, head, number, KINDS.get(kind, f"kind {kind}"))
        at += header + size


def _image(source: ByteSource, at: int, head: bytes, number: int, kind: str) -> Image:
    _, _, header, size, packed = _ENTRY.unpack_from(head)
    minor, major, arch = struct.unpack_from("<HHI", head, 24)
    (flags,) = struct.unpack_from("<Q", head, 40)
    (unpacked,) = struct.unpack_from("<Q", head, 56)
    compressed = bool(flags & _COMPRESSED) or packed != 0
    raw = unpacked if compressed else size
    kernels: int | None = None
    empty = doubtful = False
    if kind == "cubin":
        kernels = None if compressed else count_kernels(PartSource(source, at + header, size))
        stub = next(s for s in STUBS if arch >= s.first)
        surely, perhaps = (stub.debug, stub.debug) if flags & _DEBUG else (stub.surely, stub.perhaps)
        empty = raw <= surely if kernels is None else kernels == 0
        doubtful = kernels is None and surely < raw <= perhaps
    elif kind == "ptx":
        empty = raw <= EMPTY_PTX
    if arch > _MAX_ARCH:
        raise UnreadableError(f"the device code entry at {at} is for architecture {arch}, which makes no sense")
    variant = "a" if flags & _ARCH_ALONE else "f" if flags & _ARCH_FAMILY else ""
    return Image(number, kind, arch_of(arch, variant), (major, minor), header + size, kernels, empty, doubtful)


def count_kernels(cubin: ByteSource) -> int | None:
    """Kernels and device functions in a cubin, by its code sections; None when that is unknown."""
    try:
        elf = read_elf(cubin)
    except UnreadableError:
        return None
    return _code_sections(elf)


def _code_sections(elf: Elf) -> int:
    return sum(1 for s in elf.sections if s.name.startswith(".text.") and s.type != SHT_NOBITS and s.size)


def is_cubin(source: ByteSource) -> bool:
    """True for a cubin by itself, which is an ELF file of machine 190."""
    head = source.read(0, 20)
    return head[:4] == MAGIC and len(head) == 20 and struct.unpack_from("<H", head, 18)[0] == EM_CUDA


_SM_IN_NOTE = b"-arch sm_"


def read_cubin(source: ByteSource) -> Image:
    """A cubin by itself as one image; raises UnreadableError.

    Its ELF flags hold the number (in bits 8 to 15 since ABI version 8, in 0 to 7 before) but not always the variant:
    that stands in the note with the command line of the tool that wrote it.
    """
    elf = read_elf(source)
    number = (elf.flags >> 8 if elf.abi_version >= 8 else elf.flags) & 0xFF
    variant = "a" if elf.flags & (0x8 if elf.abi_version >= 8 else 0x800) else ""
    for note in elf.named(".note.nv.tkinfo"):
        text = source.read(note.offset, min(note.size, 4096))
        place = text.find(_SM_IN_NOTE)
        name = text[place + len(_SM_IN_NOTE) :].split(b"\0")[0].split(b" ")[0] if place >= 0 else b""
        if name[-1:] in (b"a", b"f") and name[:-1] == str(number).encode():
            variant = name[-1:].decode()
    kernels = _code_sections(elf)
    return Image(0, "cubin", arch_of(number, variant), (0, 0), source.size, kernels=kernels, empty=kernels == 0)
