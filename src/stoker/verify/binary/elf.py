"""Reads the few fields of an ELF file that say where it runs and what it needs. Knows nothing of CUDA or the file
system.

Reads 32 and 64 bit, both byte orders. Trusts nothing in the file: checks every size against the file and against a
bound before using it. Field layout: System V ABI, gABI 4.1; symbol versions: the LSB's "Symbol Versioning".
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import NamedTuple

from stoker.verify.binary.byte_source import ByteSource, PartSource, UnreadableError, exactly

MAGIC = b"\x7fELF"

ET_REL = 1
EM_CUDA = 190
SHT_PROGBITS, SHT_NOBITS = 1, 8
SHF_ALLOC, SHF_EXECINSTR, SHF_COMPRESSED = 1 << 1, 1 << 2, 1 << 11
PT_LOAD, PT_DYNAMIC = 1, 2

MACHINES = {
    3: "i686",
    21: "ppc64le",
    22: "s390x",
    40: "armv7l",
    62: "x86_64",
    183: "aarch64",
    190: "cuda",
    243: "riscv64",
}
"""ELF machine numbers and the names that platform tags and `uname -m` use."""

_DT_NEEDED, _DT_STRTAB, _DT_STRSZ, _DT_SONAME, _DT_RPATH, _DT_RUNPATH = 1, 5, 10, 14, 15, 29
_DT_VERNEED, _DT_VERNEEDNUM = 0x6FFFFFFE, 0x6FFFFFFF

_MAX_SECTIONS = 200_000
"""An object compiled with -ffunction-sections may have tens of thousands."""
_MAX_SEGMENTS = 4096
_MAX_NAMES = 64 << 20
"""Bytes of section names: with -ffunction-sections they contain the functions' names."""
_MAX_DYNAMIC = 1 << 13
_MAX_VERSIONS = 1 << 13
_MAX_NAME = 4096
_BLOCK = 1 << 16
_MAX_BLOCKS = 64
"""Blocks of the dynamic strings that are kept."""
_MAX_SECTION_NAME = 64
"""Characters of a name that are kept: the names of interest are shorter, and many headers may point to one long
name."""


class ElfSection(NamedTuple):
    """One section header; offset and size in bytes."""

    name: str
    type: int
    flags: int
    offset: int
    size: int


class Segment(NamedTuple):
    """One program header; offsets and sizes in bytes."""

    type: int
    offset: int
    address: int
    size: int


@dataclass(frozen=True, slots=True)
class Elf:
    """An ELF file's headers."""

    bits: int
    order: str
    abi_version: int
    type: int
    machine: int
    flags: int
    sections: tuple[ElfSection, ...]
    segments: tuple[Segment, ...]

    @property
    def machine_name(self) -> str:
        """The machine as in platform tags."""
        return MACHINES.get(self.machine, f"machine {self.machine}")

    def named(self, name: str) -> tuple[ElfSection, ...]:
        """Return the sections of this name that hold bytes."""
        return tuple(s for s in self.sections if s.name == name and s.type != SHT_NOBITS)


@dataclass(frozen=True, slots=True)
class Dynamic:
    """What the dynamic linker reads. Search paths as written, split at colons; versions by library."""

    needed: tuple[str, ...] = ()
    soname: str = ""
    rpath: tuple[str, ...] = ()
    runpath: tuple[str, ...] = ()
    versions: tuple[tuple[str, tuple[str, ...]], ...] = ()


def is_elf(source: ByteSource) -> bool:
    """Whether the first four bytes are those of an ELF file."""
    return source.read(0, 4) == MAGIC


class _Table(NamedTuple):
    """A table of headers: its offset, the bytes of one header, and the number of headers."""

    offset: int
    entry: int
    rows: int


class ElfHeader(NamedTuple):
    """The header at the start of an ELF file."""

    wide: bool
    order: str
    abi_version: int
    type: int
    machine: int
    flags: int
    segments: _Table
    sections: _Table
    names_at: int


class RawSection(NamedTuple):
    """A section header with its name as an offset into the table of names."""

    name: int
    type: int
    flags: int
    offset: int
    size: int


def read_elf(source: ByteSource) -> Elf:
    """Read the headers of an ELF file; raises UnreadableError."""
    header = read_header(source)
    raw, names = read_sections(source, header)
    sections = tuple(ElfSection(_string(names, r.name, _MAX_SECTION_NAME), *r[1:]) for r in raw)
    return Elf(
        64 if header.wide else 32, header.order, header.abi_version, header.type, header.machine, header.flags,
        sections, read_segments(source, header),
    )  # fmt: skip


def read_header(source: ByteSource) -> ElfHeader:
    """Read the first header of an ELF file; raises UnreadableError."""
    if not is_elf(source):
        raise UnreadableError("not a program, a library or device code of any known kind" if source.size else "empty")
    ident = exactly(source, 0, 16, "the ELF header")
    if ident[4] not in (1, 2) or ident[5] not in (1, 2):
        raise UnreadableError(f"ELF class {ident[4]}, byte order {ident[5]}: neither 32 nor 64 bit of either order")
    wide, order = ident[4] == 2, "<" if ident[5] == 1 else ">"
    form = order + ("HHIQQQIHHHHHH" if wide else "HHIIIIIHHHHHH")
    fields = struct.unpack(form, exactly(source, 16, struct.calcsize(form), "the ELF header"))
    kind, machine, _, _, phoff, shoff, flags, _, phentsize, phnum, shentsize, shnum, shstrndx = fields
    segments, sections = _Table(phoff, phentsize, phnum), _Table(shoff, shentsize, shnum)
    return ElfHeader(wide, order, ident[8], kind, machine, flags, segments, sections, shstrndx)


def read_sections(source: ByteSource, header: ElfHeader) -> tuple[list[RawSection], bytes]:
    """Read the section headers and their names; raises UnreadableError."""
    offset, entry, count = header.sections
    if offset == 0:
        return [], b""
    form = header.order + ("IIQQQQIIQQ" if header.wide else "IIIIIIIIII")
    size = struct.calcsize(form)
    if entry < size:
        raise UnreadableError(f"section headers of {entry} bytes; they have at least {size}")
    first = struct.unpack(form, exactly(source, offset, size, "the first section header"))
    # Beyond 65279 sections, the first header holds the numbers that do not fit.
    count = count or first[5]
    names_at = first[6] if header.names_at == 0xFFFF else header.names_at
    if count > _MAX_SECTIONS:
        raise UnreadableError(f"{count} sections; at most {_MAX_SECTIONS} are read")
    data = exactly(source, offset, count * entry, "the section headers")
    short = "IIQ8xQQ24x" if header.wide else "III4xII16x"  # without the fields that are not used
    rows = struct.iter_unpack(f"{header.order}{short}{entry - size}x", data)
    sections = list(map(RawSection._make, rows))
    if names_at >= len(sections):
        return sections, b""
    if sections[names_at].size > _MAX_NAMES:
        raise UnreadableError("the section names are larger than any compiler writes")
    return sections, exactly(source, sections[names_at].offset, sections[names_at].size, "the section names")


def read_segments(source: ByteSource, header: ElfHeader) -> tuple[Segment, ...]:
    """Read the program headers; raises UnreadableError."""
    offset, entry, count = header.segments
    if offset == 0 or count == 0:
        return ()
    form = struct.Struct(header.order + ("IIQQQQQQ" if header.wide else "IIIIIIII"))
    if entry < form.size:
        raise UnreadableError(f"program headers of {entry} bytes; they have at least {form.size}")
    if count > _MAX_SEGMENTS:
        raise UnreadableError(f"{count} program headers; at most {_MAX_SEGMENTS} are read")
    data = exactly(source, offset, count * entry, "the program headers")
    rows = (form.unpack_from(data, i * entry) for i in range(count))
    if header.wide:
        return tuple(Segment(r[0], r[2], r[3], r[5]) for r in rows)
    return tuple(Segment(r[0], r[1], r[2], r[4]) for r in rows)


def read_dynamic(source: ByteSource, elf: Elf) -> Dynamic | None:
    """Return the dynamic section, located by segments as the linker does; None without one.

    Raises UnreadableError.
    """
    segment = next((s for s in elf.segments if s.type == PT_DYNAMIC), None)
    if segment is None:
        return None
    tags = dynamic_tags(source, elf, segment)
    values = dict(tags)
    strings = Strings(source, elf, values)
    return Dynamic(
        needed=tuple(strings.at(value) for tag, value in tags if tag == _DT_NEEDED),
        soname=strings.at(values[_DT_SONAME]) if _DT_SONAME in values else "",
        rpath=_paths(strings, values.get(_DT_RPATH)),
        runpath=_paths(strings, values.get(_DT_RUNPATH)),
        versions=_versions(source, elf, values, strings),
    )


def dynamic_tags(source: ByteSource, elf: Elf, segment: Segment) -> list[tuple[int, int]]:
    """Return tags and values of the dynamic section, in its order; raises UnreadableError."""
    form = struct.Struct(elf.order + ("qQ" if elf.bits == 64 else "iI"))
    data = source.read(segment.offset, min(segment.size, _MAX_DYNAMIC * form.size))
    tags: list[tuple[int, int]] = []
    for offset in range(0, len(data) - form.size + 1, form.size):
        tag, value = form.unpack_from(data, offset)
        if tag == 0:
            return tags
        tags.append((tag, value))
    raise UnreadableError("the dynamic section has no end")


class Strings:
    """The dynamic strings, read on demand: libtensorflow_cc.so.2 has 87 MB of long C++ names."""

    def __init__(self, source: ByteSource, elf: Elf, values: dict[int, int]) -> None:
        at = file_offset(elf, values[_DT_STRTAB]) if _DT_STRTAB in values else 0
        size = values.get(_DT_STRSZ, 0) if _DT_STRTAB in values else 0
        if at + size > source.size:
            raise UnreadableError(f"cut off: the dynamic strings need {size} bytes at {at}, the file has {source.size}")
        self.size = size
        self._table = PartSource(source, at, size)
        self._blocks: dict[int, bytes] = {}

    def at(self, index: int) -> str:
        """Return the string that begins at `index`, cut at a bound; "" beyond the table."""
        return self.raw(index, _MAX_NAME).decode("utf-8", "replace")

    def raw(self, index: int, limit: int) -> bytes:
        """Return the string as bytes, cut at `limit`, which must not exceed the size of a block."""
        first, start = divmod(index, _BLOCK)
        data = self._block(first)
        end = data.find(b"\0", start, start + limit)
        if end < 0 and start + limit > _BLOCK:
            data += self._block(first + 1)
            end = data.find(b"\0", start, start + limit)
        return data[start : end if end >= 0 else start + limit]

    def _block(self, number: int) -> bytes:
        if number not in self._blocks:
            if len(self._blocks) >= _MAX_BLOCKS:
                self._blocks.clear()
            self._blocks[number] = self._table.read(number * _BLOCK, _BLOCK)
        return self._blocks[number]


def _paths(strings: Strings, index: int | None) -> tuple[str, ...]:
    return tuple(strings.at(index).split(":")) if index is not None else ()


def _versions(
    source: ByteSource, elf: Elf, values: dict[int, int], strings: Strings
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the symbol versions needed, by library, from the linked lists of `Verneed` and `Vernaux` records."""
    if _DT_VERNEED not in values:
        return ()
    need, aux = struct.Struct(elf.order + "HHIII"), struct.Struct(elf.order + "IHHII")
    at = file_offset(elf, values[_DT_VERNEED])
    found: list[tuple[str, tuple[str, ...]]] = []
    left = _MAX_VERSIONS
    for _ in range(min(values.get(_DT_VERNEEDNUM, 0), _MAX_VERSIONS)):
        _, count, library, first, following = need.unpack(exactly(source, at, need.size, "a needed version"))
        names, place = [], at + first
        for _ in range(min(count, left)):
            _, _, _, name, onward = aux.unpack(exactly(source, place, aux.size, "a needed version"))
            names.append(strings.at(name))
            place += onward
        left -= len(names) + 1
        found.append((strings.at(library), tuple(names)))
        if following == 0 or left <= 0:
            break
        at += following
    return tuple(found)


def file_offset(elf: Elf, address: int) -> int:
    """Return the offset in the file of the byte at this address; raises UnreadableError."""
    for s in elf.segments:
        if s.type == PT_LOAD and s.address <= address < s.address + s.size:
            return s.offset + address - s.address
    raise UnreadableError(f"address {address:#x} of the dynamic section is in no part of the file")


def _string(table: bytes, start: int, limit: int = _MAX_NAME) -> str:
    """Return the string at `start`, cut at `limit` bytes. Looks no further, because many names may begin at one
    place."""
    end = table.find(b"\0", start, start + limit + 1) if start < len(table) else start
    if end < 0:
        end = start + limit if start + limit < len(table) else start
    return table[start:end].decode("utf-8", "replace")
