"""Reads the symbols that an ELF file needs and offers, as the dynamic linker compares them. Knows nothing of search
paths.

Layout: System V ABI (symbol table), the LSB's "Symbol Versioning" (.gnu.version, .gnu.version_d, .gnu.version_r), and
binutils' .gnu.hash. Of the offered names only the hashes in the file are read: TensorFlow 2.21 offers 600,000 names of
87 MB. A hash has 31 bits, so about one in 3,500 undefined names is taken for defined.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from stoker.verify.binary.byte_source import ByteSource, UnreadableError, exactly
from stoker.verify.binary.elf import PT_DYNAMIC, Elf, Strings, dynamic_tags, file_offset

_DT_STRTAB, _DT_SYMTAB, _DT_GNU_HASH = 5, 6, 0x6FFFFEF5
_DT_VERSYM, _DT_VERDEF, _DT_VERDEFNUM, _DT_VERNEED, _DT_VERNEEDNUM = (
    0x6FFFFFF0, 0x6FFFFFFC, 0x6FFFFFFD, 0x6FFFFFFE, 0x6FFFFFFF,
)  # fmt: skip
_SHT_DYNSYM = 11
_STB_LOCAL, _STB_WEAK = 0, 2
_VER_FLG_BASE, _VER_FLG_WEAK = 1, 2
_HIDDEN = 0x8000
"""Flag of a symbol's version: only a file that asks for exactly this version gets the symbol."""

_MAX_SYMBOLS = 4_000_000
_MAX_RECORDS = 1 << 13
_MAX_NAME = 1 << 16
_MAX_CHAIN = 256
"""Symbols of one bucket that are looked at: linkers make about four."""
_MAX_VERSION = 256
"""Bytes of a version's name: many records may point to one long name."""


@dataclass(frozen=True, slots=True)
class NeededSymbol:
    """A symbol that another file must define; the version is empty if any will do."""

    name: bytes
    version: bytes

    @property
    def digest(self) -> int:
        """The hash as in .gnu.hash. Expensive: 300,000 symbols of paddle take two seconds."""
        found = 5381
        for byte in self.name:
            found = found * 33 + byte & 0xFFFFFFFF
        return found


class NeededVersion(NamedTuple):
    """A version that a library must define, with that library's name; without it the loader refuses the file."""

    library: str
    version: str


@dataclass(frozen=True, slots=True)
class Symbols:
    """What one file needs and offers. `versions` is None for a file that defines none; no version is demanded of it."""

    needed: tuple[NeededSymbol, ...]
    needed_versions: tuple[NeededVersion, ...]
    versions: frozenset[str] | None
    _names: dict[int, bytes]
    """Versions by number."""
    _offered: _HashTable | _NameTable

    def offers(self, symbol: NeededSymbol) -> bool:
        """Whether this file defines the symbol, in the requested version if it has versions."""
        for number in self._offered.versions_of(symbol):
            if not symbol.version and not number & _HIDDEN:
                return True
            if symbol.version and self._names.get(number & ~_HIDDEN, b"") in (symbol.version, b""):
                return True
        return False


class _HashTable(NamedTuple):
    """Symbols by hash, as in .gnu.hash: each bucket names the first of a chain of hashes, and the last hash of a chain
    has its lowest bit set. The first hash belongs to symbol `first`; `numbers` are the version numbers of all
    symbols."""

    buckets: array[int]
    first: int
    chain: array[int]
    numbers: array[int]

    def versions_of(self, symbol: NeededSymbol) -> Iterator[int]:
        """Yield the version number of each symbol with this name's hash."""
        digest = symbol.digest
        start = self.buckets[digest % len(self.buckets)] if self.buckets else 0
        if start < self.first:
            return
        for place in range(start - self.first, min(start - self.first + _MAX_CHAIN, len(self.chain))):
            if (self.chain[place] ^ digest) >> 1 == 0:
                yield self.numbers[self.first + place]
            if self.chain[place] & 1:
                return


class _NameTable(NamedTuple):
    """The same for a file without such a table (--hash-style=sysv): Python's hash of each name, with the version number
    in the lowest bits, sorted."""

    entries: array[int]

    @classmethod
    def of(cls, symbols: Iterable[tuple[bytes, int]]) -> _NameTable:
        """Return the table for names and their version numbers."""
        return cls(array("q", sorted(hash(name) & ~_NUMBER_MASK | number for name, number in symbols)))

    def versions_of(self, symbol: NeededSymbol) -> Iterator[int]:
        """Yield the version number of each symbol with this name's hash."""
        first = hash(symbol.name) & ~_NUMBER_MASK
        for place in range(bisect_left(self.entries, first), len(self.entries)):
            if self.entries[place] & ~_NUMBER_MASK != first:
                return
            yield self.entries[place] & _NUMBER_MASK


_NUMBER_MASK = 0xFFFF


def read_symbols(source: ByteSource, elf: Elf) -> Symbols | None:
    """Read the dynamic symbols of a linked file; None if it has none. Raises UnreadableError."""
    segment = next((s for s in elf.segments if s.type == PT_DYNAMIC), None)
    values = dict(dynamic_tags(source, elf, segment)) if segment is not None else {}
    if not {_DT_STRTAB, _DT_SYMTAB} <= values.keys():
        return None
    form = struct.Struct(elf.order + ("IBBHQQ" if elf.bits == 64 else "IIIBBH"))
    start, count = _table(source, elf, values, form.size)
    numbers = _numbers(source, elf, values, count)
    hashed = _hash_table(source, elf, values, numbers)
    strings = Strings(source, elf, values)
    needed_names, needed_versions = _needed(source, elf, values, strings)
    defined_names, versions = _defined(source, elf, values, strings)
    names = needed_names | defined_names
    needed: list[NeededSymbol] = []
    own: list[tuple[bytes, int]] = []
    others = exactly(source, start, (hashed.first if hashed else count) * form.size, "the dynamic symbols")
    for place, defined, name in _named(_unhashed(others, form, elf), strings):
        if defined:
            own.append((name, numbers[place]))
        else:
            needed.append(NeededSymbol(name, names.get(numbers[place] & ~_HIDDEN, b"")))
    return Symbols(tuple(needed), needed_versions, versions, names, hashed or _NameTable.of(own))


def _unhashed(table: bytes, form: struct.Struct, elf: Elf) -> list[int]:
    """Return the relevant symbols of this part of the table, packed, in the order of their names: the source is fastest
    when it is read forward."""
    found = []
    info_at, section_at = (1, 3) if elf.bits == 64 else (3, 5)
    for index, entry in enumerate(form.iter_unpack(table)):
        binding, section = entry[info_at] >> 4, entry[section_at]
        if binding != _STB_LOCAL and entry[0] and (section or binding != _STB_WEAK):
            found.append(entry[0] << 32 | index << 1 | bool(section))
    found.sort()
    return found


def _named(symbols: list[int], strings: Strings) -> Iterator[tuple[int, bool, bytes]]:
    """Yield, for each packed symbol, its place in the table, whether it is defined there, and its name."""
    left = 4 * strings.size + _MAX_NAME  # names may share their ends, but a file with nothing else is a bomb
    for symbol in symbols:
        name = strings.raw(symbol >> 32, _MAX_NAME)
        left -= len(name)
        if left < 0:
            raise UnreadableError("its symbols' names are many times as long as the names that it holds")
        yield (symbol & 0xFFFFFFFF) >> 1, bool(symbol & 1), name


def _hash_table(source: ByteSource, elf: Elf, values: dict[int, int], numbers: array[int]) -> _HashTable | None:
    """Return the file's own hash table; None if it has none."""
    if _DT_GNU_HASH not in values:
        return None
    at = file_offset(elf, values[_DT_GNU_HASH])
    count, first, bloom, _ = struct.unpack(elf.order + "IIII", exactly(source, at, 16, "the hash table"))
    if count > _MAX_SYMBOLS:
        raise UnreadableError(f"a hash table of {count} buckets; at most {_MAX_SYMBOLS} are read")
    at += 16 + bloom * elf.bits // 8
    buckets = _numbers_at(source, elf, "I", at, count)
    if not any(buckets):
        return None  # this file offers nothing; GNU ld names the first symbol anyway
    if first > len(numbers):
        raise UnreadableError(f"its hash table begins at symbol {first} of {len(numbers)}")
    chain = _numbers_at(source, elf, "I", at + 4 * count, len(numbers) - first)
    return _HashTable(buckets, first, chain, numbers)


def _table(source: ByteSource, elf: Elf, values: dict[int, int], row: int) -> tuple[int, int]:
    """Return the offset of the symbol table, whose rows have `row` bytes, and its number of rows. Without section
    headers no field has the number; every linker puts the names directly after the table."""
    start = file_offset(elf, values[_DT_SYMTAB])
    sizes = [s.size for s in elf.sections if s.type == _SHT_DYNSYM and s.offset == start]
    size = sizes[0] if sizes else max(0, file_offset(elf, values[_DT_STRTAB]) - start)
    if size > _MAX_SYMBOLS * row:
        raise UnreadableError(f"{size // row} dynamic symbols, more than the {_MAX_SYMBOLS} that are read")
    if start + size > source.size:
        raise UnreadableError(f"cut off: the dynamic symbols need {size} bytes at {start}, the file has {source.size}")
    return start, size // row


def _numbers(source: ByteSource, elf: Elf, values: dict[int, int], count: int) -> array[int]:
    """Return the number of each symbol's version, 0 in a file without versions."""
    if _DT_VERSYM not in values:
        return array("H", bytes(2 * count))
    return _numbers_at(source, elf, "H", file_offset(elf, values[_DT_VERSYM]), count)


def _numbers_at(source: ByteSource, elf: Elf, form: str, at: int, count: int) -> array[int]:
    numbers = array(form)
    numbers.frombytes(exactly(source, at, count * numbers.itemsize, "the symbols' versions and hashes"))
    if elf.order == ">":
        numbers.byteswap()
    return numbers


def _needed(
    source: ByteSource, elf: Elf, values: dict[int, int], strings: Strings
) -> tuple[dict[int, bytes], tuple[NeededVersion, ...]]:
    """Return versions by number, and those without which the loader refuses the file (not the weak ones)."""
    names: dict[int, bytes] = {}
    found: list[NeededVersion] = []
    left = _MAX_RECORDS
    for place, (_, count, library, first, _) in _records(source, elf, values, _DT_VERNEED, _DT_VERNEEDNUM, "HHIII"):
        own = _chain(source, elf, place + first, min(count, left), "IHHII")
        left -= len(own)
        for _, (_, flags, number, name, _) in own:
            names[number & ~_HIDDEN] = text = strings.raw(name, _MAX_VERSION)
            if not flags & _VER_FLG_WEAK:
                found.append(NeededVersion(_decoded(strings.raw(library, _MAX_VERSION)), _decoded(text)))
    return names, tuple(found)


def _defined(
    source: ByteSource, elf: Elf, values: dict[int, int], strings: Strings
) -> tuple[dict[int, bytes], frozenset[str] | None]:
    """Return versions by number, and all names. The base version, which is the file's own name, belongs to no
    symbol."""
    names: dict[int, bytes] = {}
    every: set[str] = set()
    records = _records(source, elf, values, _DT_VERDEF, _DT_VERDEFNUM, "HHHHIII")
    for place, (_, flags, number, _, _, first, _) in records:
        for _, (name, _) in _chain(source, elf, place + first, 1, "II"):
            text = strings.raw(name, _MAX_VERSION)
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
    """Return records, with their places, whose last field is the distance to the next one."""
    layout = struct.Struct(elf.order + form)
    found: list[tuple[int, tuple[int, ...]]] = []
    for _ in range(min(count, _MAX_RECORDS)):
        fields = layout.unpack(exactly(source, at, layout.size, "a symbol version"))
        found.append((at, fields))
        if fields[-1] == 0:
            break
        at += fields[-1]
    return found


def _decoded(name: bytes) -> str:
    return name.decode("utf-8", "replace")
