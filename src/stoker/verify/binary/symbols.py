"""The symbols that an ELF file needs and offers, as the dynamic linker compares them. Unaware of where libraries are.

Layout: System V ABI (symbol table), the LSB's "Symbol Versioning" (.gnu.version, .gnu.version_d, .gnu.version_r). Names
that a file offers are kept as 64-bit hashes: libtorch_cpu.so offers 200,000 of a hundred bytes each.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left
from dataclasses import dataclass
from typing import NamedTuple

from stoker.verify.binary.byte_source import ByteSource, UnreadableError, exactly
from stoker.verify.binary.elf import PT_DYNAMIC, Elf, dynamic_tags, file_offset

_DT_STRTAB, _DT_SYMTAB, _DT_STRSZ = 5, 6, 10
_DT_VERSYM, _DT_VERDEF, _DT_VERDEFNUM, _DT_VERNEED, _DT_VERNEEDNUM = (
    0x6FFFFFF0, 0x6FFFFFFC, 0x6FFFFFFD, 0x6FFFFFFE, 0x6FFFFFFF,
)  # fmt: skip
_SHT_DYNSYM = 11
_STB_LOCAL, _STB_WEAK = 0, 2
_VER_FLG_BASE, _VER_FLG_WEAK = 1, 2
_HIDDEN = 0x8000
"""Of a symbol's version: only who asks for just this version gets it."""

_MAX_SYMBOLS = 4_000_000
_MAX_STRINGS = 256 << 20
"""TensorFlow 2.21 has 600,000 symbols in 87 MB."""
_MAX_RECORDS = 1 << 13
_MAX_NAME = 1 << 16
_MAX_VERSION = 256
"""Bytes of a version's name: many records may point at one long name."""


class NeededSymbol(NamedTuple):
    """A symbol that somebody else must define; the version is empty where any will do."""

    name: bytes
    version: bytes


class NeededVersion(NamedTuple):
    """A version that a library must define, by that library's name; without it the loader gives up."""

    library: str
    version: str


@dataclass(frozen=True, slots=True)
class Symbols:
    """What one file needs and offers. `versions` is None for a file that defines none, whom no version is asked of."""

    needed: tuple[NeededSymbol, ...]
    needed_versions: tuple[NeededVersion, ...]
    versions: frozenset[str] | None
    _offered: array[int]

    def offers(self, symbol: NeededSymbol) -> bool:
        """Whether this file defines the symbol, in the version asked for where it has versions."""
        name, version = symbol
        if not version:
            return self._has(name)
        return self._has(b"%b@%b" % (name, version)) or self._has(name + b"@")

    def _has(self, key: bytes) -> bool:
        wanted = _hash(key)
        at = bisect_left(self._offered, wanted)
        return at < len(self._offered) and self._offered[at] == wanted


def read_symbols(source: ByteSource, elf: Elf) -> Symbols | None:
    """The dynamic symbols of a linked file, None where it has none; raises UnreadableError."""
    segment = next((s for s in elf.segments if s.type == PT_DYNAMIC), None)
    values = dict(dynamic_tags(source, elf, segment)) if segment is not None else {}
    if not {_DT_STRTAB, _DT_SYMTAB} <= values.keys():
        return None
    size = values.get(_DT_STRSZ, 0)
    if size > _MAX_STRINGS:
        raise UnreadableError(f"{size} bytes of symbol names, more than the {_MAX_STRINGS} that are read")
    strings = exactly(source, file_offset(elf, values[_DT_STRTAB]), size, "the symbols' names")
    form = struct.Struct(elf.order + ("IBBHQQ" if elf.bits == 64 else "IIIBBH"))
    table = _table(source, elf, values, form)
    needed_names, needed_versions = _needed(source, elf, values, strings)
    defined_names, versions = _defined(source, elf, values, strings)
    names = needed_names | defined_names
    numbers = _numbers(source, elf, values, len(table) // form.size)
    needed: list[NeededSymbol] = []
    offered: list[int] = []
    wide = elf.bits == 64
    left = 4 * len(strings) + _MAX_NAME  # names may share their ends, but a file of nothing else is a bomb
    for index, entry in enumerate(form.iter_unpack(table)):
        info, section = (entry[1], entry[3]) if wide else (entry[3], entry[5])
        start, binding = entry[0], info >> 4
        if binding == _STB_LOCAL or start == 0:
            continue
        name = _name(strings, start, _MAX_NAME)
        left -= len(name)
        if left < 0:
            raise UnreadableError("its symbols' names are many times as long as the names that it holds")
        number = numbers[index] if numbers else 0
        version = names.get(number & ~_HIDDEN, b"")
        if section != 0:
            offered.append(_hash(b"%b@%b" % (name, version)))
            if not number & _HIDDEN:
                offered.append(_hash(name))
        elif binding != _STB_WEAK:
            needed.append(NeededSymbol(name, version))
    return Symbols(tuple(needed), needed_versions, versions, array("q", sorted(offered)))


def _hash(name: bytes) -> int:
    return hash(name)


def _table(source: ByteSource, elf: Elf, values: dict[int, int], form: struct.Struct) -> bytes:
    """The symbol table's bytes. Nothing in a file without section headers says how many there are; every linker puts
    the names behind them."""
    start = file_offset(elf, values[_DT_SYMTAB])
    sizes = [s.size for s in elf.sections if s.type == _SHT_DYNSYM and s.offset == start]
    size = sizes[0] if sizes else max(0, file_offset(elf, values[_DT_STRTAB]) - start)
    if size > _MAX_SYMBOLS * form.size:
        raise UnreadableError(f"{size // form.size} dynamic symbols, more than the {_MAX_SYMBOLS} that are read")
    return exactly(source, start, size - size % form.size, "the dynamic symbols")


def _numbers(source: ByteSource, elf: Elf, values: dict[int, int], count: int) -> array[int] | None:
    """The number of each symbol's version, None in a file without versions."""
    if _DT_VERSYM not in values:
        return None
    numbers = array("H", exactly(source, file_offset(elf, values[_DT_VERSYM]), 2 * count, "the symbols' versions"))
    if elf.order == ">":
        numbers.byteswap()
    return numbers


def _needed(
    source: ByteSource, elf: Elf, values: dict[int, int], strings: bytes
) -> tuple[dict[int, bytes], tuple[NeededVersion, ...]]:
    """Versions by number, and those without which the loader refuses the file (not the weak ones)."""
    names: dict[int, bytes] = {}
    found: list[NeededVersion] = []
    left = _MAX_RECORDS
    for place, (_, count, library, first, _) in _records(source, elf, values, _DT_VERNEED, _DT_VERNEEDNUM, "HHIII"):
        own = _chain(source, elf, place + first, min(count, left), "IHHII")
        left -= len(own)
        for _, (_, flags, number, name, _) in own:
            names[number & ~_HIDDEN] = text = _name(strings, name, _MAX_VERSION)
            if not flags & _VER_FLG_WEAK:
                found.append(NeededVersion(_decoded(_name(strings, library, _MAX_VERSION)), _decoded(text)))
    return names, tuple(found)


def _defined(
    source: ByteSource, elf: Elf, values: dict[int, int], strings: bytes
) -> tuple[dict[int, bytes], frozenset[str] | None]:
    """Versions by number, and all names: the base version, the file's own name, belongs to no symbol."""
    names: dict[int, bytes] = {}
    every: set[str] = set()
    records = _records(source, elf, values, _DT_VERDEF, _DT_VERDEFNUM, "HHHHIII")
    for place, (_, flags, number, _, _, first, _) in records:
        for _, (name, _) in _chain(source, elf, place + first, 1, "II"):
            text = _name(strings, name, _MAX_VERSION)
            every.add(_decoded(text))
            if not flags & _VER_FLG_BASE:
                names[number & ~_HIDDEN] = text
    return names, frozenset(every) if records else None


def _records(
    source: ByteSource, elf: Elf, values: dict[int, int], tag: int, number: int, form: str
) -> list[tuple[int, tuple[int, ...]]]:
    if tag not in values:
        return []
    return _chain(source, elf, file_offset(elf, values[tag]), values.get(number, 0), form)


def _chain(source: ByteSource, elf: Elf, at: int, count: int, form: str) -> list[tuple[int, tuple[int, ...]]]:
    """Records that each name the distance to the next one in their last field, with their places."""
    layout = struct.Struct(elf.order + form)
    found: list[tuple[int, tuple[int, ...]]] = []
    for _ in range(min(count, _MAX_RECORDS)):
        fields = layout.unpack(exactly(source, at, layout.size, "a symbol version"))
        found.append((at, fields))
        if fields[-1] == 0:
            break
        at += fields[-1]
    return found


def _name(strings: bytes, start: int, limit: int) -> bytes:
    """The name at `start`, cut at `limit` bytes."""
    end = strings.find(b"\0", start, start + limit)
    return strings[start : end if end >= 0 else start + limit]


def _decoded(name: bytes) -> str:
    return name.decode("utf-8", "replace")
