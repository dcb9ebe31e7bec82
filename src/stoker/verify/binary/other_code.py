"""Reads what is not for NVIDIA's GPUs under Linux: AMD's device code, and binaries of other systems.

Layouts: LLVM's "Clang Offload Bundler" page for AMD; Microsoft's "PE Format"; Apple's mach-o/loader.h.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from typing import NamedTuple

from stoker.verify.binary.byte_source import ByteSource, PartSource, UnreadableError, exactly

HIP_SECTION = ".hip_fatbin"
HIDDEN_TARGETS = "ROCm"
"""Used instead of AMD's targets if compression hides them."""

SYCL = "SYCL"
SYCL_SECTIONS = (".tgtimg", "OFFLOAD_DEVICE_CODE")
"""Sections in which icpx puts device code for Intel's GPUs."""

BUNDLE = b"__CLANG_OFFLOAD_BUNDLE__"
_COMPRESSED = b"CCOB"
_TARGET = re.compile(rb"hipv?\d?-amdgcn-amd-amdhsa-[\w]*-(gfx\w+)")
_MAX_BUNDLES = 10_000
_MAX_ENTRIES = 1000
_MAX_HEADER = 1 << 16

UNIVERSAL = "several machines"
_PE_MACHINES = {0x8664: "x86_64", 0x014C: "i686", 0xAA64: "aarch64"}
_MACH = {b"\xcf\xfa\xed\xfe": "<", b"\xfe\xed\xfa\xcf": ">"}
_MACH_FAT = b"\xca\xfe\xba\xbe"
_MACH_MACHINES = {0x01000007: "x86_64", 0x0100000C: "aarch64"}
_MAX_SECTIONS = 1000
_IMPORTS_AT = {0x10B: 104, 0x20B: 120}
"""Offset of the second data directory in the optional header, for 32 and 64 bit files."""
_IMPORT = struct.Struct("<IIIII")
_MAX_IMPORTS = 1000
_MAX_DLL_NAME = 256


class OtherBinary(NamedTuple):
    """A program or library of another system, its processor, and the part with CUDA device code, if any."""

    system: str
    machine: str
    device_code: ByteSource | None
    needed: tuple[str, ...] = ()


def hip_targets(section: ByteSource) -> dict[str, int]:
    """Return AMD's targets (gfx90a) in a section of HIP code, with their counts; "ROCm" if compression hides them."""
    found: Counter[str] = Counter()
    at = 0
    for _ in range(_MAX_BUNDLES):
        head = section.read(at, _MAX_HEADER)
        if head.startswith(_COMPRESSED):
            found[HIDDEN_TARGETS] += 1
            break
        if not head.startswith(BUNDLE):
            break
        found += _targets(head)
        end = at + len(BUNDLE)
        for offset, size in _entries(head):
            end = max(end, at + offset + size)
        at = -(-end // 4096) * 4096
    return dict(found)


def bundle_targets(source: ByteSource, at: int) -> Counter[str]:
    """Return AMD's targets in the bundle at `at`, with their counts; none if only the magic is there, as in AMD's
    runtime."""
    return _targets(source.read(at, _MAX_HEADER))


def _targets(head: bytes) -> Counter[str]:
    return Counter(t[1].decode("ascii") for t in _TARGET.finditer(head, 0, _header_end(head)))


def _entries(head: bytes) -> list[tuple[int, int]]:
    """Return offset and size of each code object in a bundle."""
    place = len(BUNDLE) + 8
    if len(head) < place:
        return []
    (count,) = struct.unpack_from("<Q", head, len(BUNDLE))
    found = []
    for _ in range(min(count, _MAX_ENTRIES)):
        if place + 24 > len(head):
            break
        offset, size, length = struct.unpack_from("<QQQ", head, place)
        found.append((offset, size))
        place += 24 + length
    return found


def _header_end(head: bytes) -> int:
    first = min((offset for offset, _ in _entries(head) if offset), default=len(head))
    return min(first, len(head))


def is_other(source: ByteSource) -> bool:
    """Whether the first bytes are those of a binary for Windows or macOS."""
    head = source.read(0, 4)
    return head[:2] == b"MZ" or head in _MACH or head == _MACH_FAT


def read_other(source: ByteSource) -> OtherBinary | None:
    """Read a binary for Windows or macOS; None for anything else. Raises UnreadableError for a broken one.

    `needed` are the DLLs that it imports.
    """
    head = source.read(0, 64)
    if head[:4] in _MACH and len(head) >= 8:
        (number,) = struct.unpack_from(f"{_MACH[head[:4]]}I", head, 4)
        return OtherBinary("macOS", _MACH_MACHINES.get(number, f"machine {number}"), None)
    if head[:4] == _MACH_FAT:
        return OtherBinary("macOS", UNIVERSAL, None)
    if head[:2] != b"MZ" or len(head) < 64:
        return None
    (at,) = struct.unpack_from("<I", head, 0x3C)
    coff = source.read(at, 24)
    if coff[:4] != b"PE\0\0" or len(coff) < 24:
        return None
    machine, count = struct.unpack_from("<HH", coff, 4)
    (optional,) = struct.unpack_from("<H", coff, 20)
    if count > _MAX_SECTIONS:
        raise UnreadableError(f"{count} sections; at most {_MAX_SECTIONS} are read")
    table = exactly(source, at + 24 + optional, count * 40, "the section headers")
    name = _PE_MACHINES.get(machine, f"machine {machine}")
    return OtherBinary("Windows", name, _fatbin_section(source, table), _imports(source, at + 24, table))


def _imports(source: ByteSource, optional: int, table: bytes) -> tuple[str, ...]:
    """Return the names of the DLLs in the import table; none if its headers are invalid, because nothing else depends
    on them."""
    (magic,) = struct.unpack("<H", source.read(optional, 2).ljust(2, b"\0"))
    directory = source.read(optional + _IMPORTS_AT[magic], 8) if magic in _IMPORTS_AT else b""
    place = _place(table, *struct.unpack_from("<I", directory)) if len(directory) == 8 else None
    if place is None:
        return ()
    found: dict[str, None] = {}
    for row in range(_MAX_IMPORTS):
        record = source.read(place + row * _IMPORT.size, _IMPORT.size)
        name = _place(table, _IMPORT.unpack(record)[3]) if len(record) == _IMPORT.size and any(record) else None
        if name is None:
            break
        found[source.read(name, _MAX_DLL_NAME).partition(b"\0")[0].decode("utf-8", "replace")] = None
    return tuple(found)


def _place(table: bytes, address: int) -> int | None:
    """Return the offset in the file of the byte at this address, by the section headers; None if it is in no
    section."""
    for row in range(0, len(table), 40):
        start, size, place = struct.unpack_from("<III", table, row + 12)
        if start <= address < start + size:
            return int(place + address - start)
    return None


def _fatbin_section(source: ByteSource, table: bytes) -> ByteSource | None:
    """Return the section that Linux calls .nv_fatbin; names have eight characters here."""
    for row in range(0, len(table), 40):
        name, size, place = table[row : row + 8], *struct.unpack_from("<II", table, row + 16)
        if name == b".nv_fatb":
            return PartSource(source, place, size)
    return None
