"""Reads device code in host binaries: the containers that nvcc's `fatbinary` writes. Knows nothing of ELF sections.

Layout, little endian, as written by CUDA 11 to 13 (tests check that `cuobjdump` agrees). Container: u32 magic, u16
version 1, u16 header size, u64 size of the entries that follow. Entry: u16 kind, u16 version, u32 header size, u64
payload size, u32 compressed size at 16, u16 minor and u16 major version of the code at 24, u32 architecture at 28, u64
flags at 40, u64 size before compression at 56.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from stoker.verify.archs import arch_of
from stoker.verify.binary.byte_source import ByteSource, Deadline, PartSource, UnreadableError
from stoker.verify.binary.cubin import look_into
from stoker.verify.binary.device_code import Image
from stoker.verify.binary.magic_search import MagicSearch

CONTAINER = 0xBA55ED50
CONTAINER_BYTES = struct.pack("<I", CONTAINER)
WRAPPER_BYTES = struct.pack("<I", 0x466243B1)
"""Begins the structure that registers a container (the toolkit's fatbinary_section.h): magic, version, and two
addresses."""

PTX, CUBIN, OLD_CUBIN, LTO_IR = 1, 2, 4, 8
KINDS = {PTX: "ptx", CUBIN: "cubin", OLD_CUBIN: "cubin", LTO_IR: "lto"}

_ARCH_ALONE, _ARCH_FAMILY = 1 << 20, 1 << 21
_DEBUG = 0x2
_COMPRESSED = 0x1000 | 0x2000 | 0x8000
"""LZ4 in two generations, zstd."""

_HEADER = 16
_FIRST_NEW_FORMAT = 100
"""Machine code for capability 10.0 and later has always been in format 1.8; older capabilities use it since CUDA 13
(seen in the wheels of torch 2.6 to 2.12 and in bitsandbytes' builds for CUDA 11.8 to 13.2)."""
_MAX_GAP = 1 << 20
"""Bytes without a container that are searched for the next one before the section counts as broken."""
_WINDOW = 1 << 16
_LEAST_ENTRY = 64
_MAX_ARCH = 999


class Stub(NamedTuple):
    """How large, before compression, a cubin without any kernel may be, for architectures from `first` on.

    Up to `surely` bytes it has no kernel; up to `perhaps` it has none either, unless a larger one for another
    architecture is beside it; `debug` is the bound for one with debug information (-G).
    """

    first: int
    surely: int
    perhaps: int
    debug: int


STUBS = (Stub(100, 4000, 4000, 9000), Stub(90, 1700, 2300, 4400), Stub(70, 1700, 1950, 4400), Stub(0, 1500, 1500, 1500))
"""Measured with ptxas 12.4 to 13.0, with -c, -g and -lineinfo, without kernels and with an empty one.

From 10.0 on, cubins without kernels have up to 3632 bytes, the smallest kernel 4752; with -g 6304 and 11744. For 9.0
2224 and 2608; with -g 3264 and 7088. From 7.0 on 1944 (what nvcc 13.0 links into every library has 1456 to 1824) and
2176, by ptxas 11.7 2088; with -g 3112 and 5696. Before 7.0 the smallest kernel has 1544.
"""

EMPTY_PTX = 80
"""PTX of at most this many bytes is only its header (56 bytes); with an empty kernel it has 96."""


class Container(NamedTuple):
    """Where a container begins, where its entries begin, and where it ends."""

    start: int
    entries: int
    end: int


def find_containers(source: ByteSource, deadline: Deadline, *, stray: bool = False) -> Iterator[Container]:
    """Yield the containers in order; raises UnreadableError if a run of them breaks off.

    `stray` ones lie among other bytes, as in `.rodata`: everything that does not look like a container is skipped.
    """
    at = 0
    if not stray:
        while (found := _next_container(source, at, deadline)) is not None:
            yield found
            at = found.end
        return
    search = MagicSearch(source, [CONTAINER_BYTES], deadline)
    while (place := search.next(at)) is not None:
        stray_one = stray_container(source, place.offset)
        if stray_one is not None:
            yield stray_one
        at = place.offset + len(CONTAINER_BYTES) if stray_one is None else stray_one.end


def _next_container(source: ByteSource, at: int, deadline: Deadline) -> Container | None:
    """Return the next container of a run; None at the end. Linkers pad with zeros."""
    between = 0
    window = _LEAST_ENTRY
    while at < source.size:
        deadline.check()
        data = source.read(at, window)
        if len(data) < min(window, source.size - at):
            raise UnreadableError(f"cut off: {source.size} bytes were promised, {at + len(data)} are there")
        place = data.find(CONTAINER_BYTES)
        if place >= 0:
            return _container(source, at + place)
        between += len(data) if data.strip(b"\0") else 0
        if between > _MAX_GAP:
            break
        # The magic may cross the end of this window; at the end of the source nothing can follow.
        at += len(data) - 3 if at + len(data) < source.size else len(data)
        window = _WINDOW
    if between:
        raise UnreadableError(f"bytes that are not a device code container, {between} or so before {at}")
    return None


def stray_container(source: ByteSource, at: int) -> Container | None:
    """Return the container at `at` if it and its first entry are valid: the magic is also a constant in programs that
    search for it."""
    head = source.read(at, _HEADER + _LEAST_ENTRY)
    if len(head) < _HEADER + _LEAST_ENTRY:
        return None
    _, version, header, size = struct.unpack_from("<IHHQ", head)
    kind, _, entry, payload, _ = _ENTRY.unpack_from(head, _HEADER)
    (arch,) = struct.unpack_from("<I", head, _HEADER + 28)
    sensible = (
        (version, header) == (1, _HEADER)
        and at + header + size <= source.size
        and kind in KINDS
        and entry >= _LEAST_ENTRY
        and entry + payload <= size
        and 0 < arch <= _MAX_ARCH
    )
    return Container(at, at + header, at + header + size) if sensible else None


def _container(source: ByteSource, at: int) -> Container:
    head = source.read(at, _HEADER)
    if len(head) < _HEADER:
        raise UnreadableError(f"cut off: a device code container begins at {at} of {source.size}")
    _, version, header, size = struct.unpack("<IHHQ", head)
    if version != 1 or header < _HEADER:
        raise UnreadableError(f"device code container of version {version}, header {header} at {at}: only 1 is known")
    if at + header + size > source.size:
        raise UnreadableError(f"the device code container at {at} claims {size} bytes, beyond its section's end")
    return Container(at, at + header, at + header + size)


_ENTRY = struct.Struct("<HHIQI")


def read_images(source: ByteSource, container: Container, deadline: Deadline) -> Iterator[Image]:
    """Yield the images of one container; raises UnreadableError if it breaks off."""
    at, end = container.entries, container.end
    while at < end:
        deadline.check()
        head = source.read(at, _LEAST_ENTRY)
        if len(head) < _LEAST_ENTRY or at + _LEAST_ENTRY > end:
            raise UnreadableError(f"cut off: device code entry at {at}, its container ends at {end}")
        kind, _, header, size, _ = _ENTRY.unpack_from(head)
        if header < _LEAST_ENTRY or at + header + size > end:
            raise UnreadableError(f"the device code entry at {at} claims {header}+{size} bytes beyond its container")
        yield _image(source, at, head, KINDS.get(kind, f"kind {kind}"))
        at += header + size


def _image(source: ByteSource, at: int, head: bytes, kind: str) -> Image:
    _, _, header, size, packed = _ENTRY.unpack_from(head)
    minor, major, arch = struct.unpack_from("<HHI", head, 24)
    (flags,) = struct.unpack_from("<Q", head, 40)
    (unpacked,) = struct.unpack_from("<Q", head, 56)
    compressed = bool(flags & _COMPRESSED) or packed != 0
    raw = unpacked if compressed else size
    kernels: int | None = None
    toolkit: tuple[int, int] | None = None
    empty = doubtful = False
    if kind == "cubin":
        if not compressed:
            kernels, toolkit = look_into(PartSource(source, at + header, size))
        if toolkit is None and arch < _FIRST_NEW_FORMAT and (major, minor) >= (1, 8):
            toolkit = 13, 0
        stub = next(s for s in STUBS if arch >= s.first)
        surely, perhaps = (stub.debug, stub.debug) if flags & _DEBUG else (stub.surely, stub.perhaps)
        empty = raw <= surely if kernels is None else kernels == 0
        doubtful = kernels is None and surely < raw <= perhaps
    elif kind == "ptx":
        empty = raw <= EMPTY_PTX
    if arch > _MAX_ARCH:
        raise UnreadableError(f"the device code entry at {at} is for architecture {arch}, which makes no sense")
    variant = "a" if flags & _ARCH_ALONE else "f" if flags & _ARCH_FAMILY else ""
    version = major, minor
    return Image(kind, arch_of(arch, variant), version, header + size, kernels, empty, doubtful, toolkit)
