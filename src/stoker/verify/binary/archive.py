"""Reads the members of a static library (`ar`), also of a thin one. Knows nothing of what the members contain.

Format: System V / GNU variant of ar(5), plus BSD's `#1/` long names.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from stoker.verify.binary.byte_source import ByteSource, UnreadableError, exactly

MAGIC = b"!<arch>\n"
THIN_MAGIC = b"!<thin>\n"

_HEADER = 60
_MAX_MEMBERS = 100_000
_MAX_NAMES = 64 << 20
_INDEXES = (b"/", b"/SYM64/", b"__.SYMDEF", b"__.SYMDEF SORTED")


class ArchiveMember(NamedTuple):
    """One member; offset and size in bytes. A thin archive's member is a file beside it and has no offset."""

    name: str
    offset: int | None
    size: int


def is_archive(source: ByteSource) -> bool:
    """Whether the first eight bytes are those of an archive."""
    return source.read(0, 8) in (MAGIC, THIN_MAGIC)


def read_members(source: ByteSource) -> Iterator[ArchiveMember]:
    """Yield the members in order, without the index; raises UnreadableError if the archive breaks off."""
    magic = exactly(source, 0, 8, "the archive's magic")
    if magic not in (MAGIC, THIN_MAGIC):
        raise UnreadableError("not a static library")
    thin = magic == THIN_MAGIC
    names, at = b"", 8
    for _ in range(_MAX_MEMBERS):
        if at >= source.size:
            return
        header = exactly(source, at, _HEADER, "a member's header")
        if header[58:60] != b"`\n":
            raise UnreadableError(f"no member header at {at}")
        raw, size = header[:16].rstrip(b" "), _number(header[48:58], at)
        start = at + _HEADER
        stored = not thin or raw == b"//" or raw in _INDEXES
        if stored and start + size > source.size:
            raise UnreadableError(f"cut off: the member at {at} claims {size} bytes, the file ends at {source.size}")
        if raw == b"//":
            names = exactly(source, start, min(size, _MAX_NAMES), "the long names")
        elif raw not in _INDEXES:
            yield _member(source, raw, names, start, size, stored)
        at = start + (size + size % 2 if stored else 0)
    raise UnreadableError(f"more than {_MAX_MEMBERS} members")


def _member(source: ByteSource, raw: bytes, names: bytes, start: int, size: int, stored: bool) -> ArchiveMember:
    if raw.startswith(b"#1/"):
        length = min(_number(raw[3:], start), size, 4096)
        name = exactly(source, start, length, "a member's name").rstrip(b"\0")
        return ArchiveMember(name.decode("utf-8", "replace"), start + length, size - length)
    if raw.startswith(b"/") and raw[1:].isdigit():
        index = int(raw[1:])
        end = names.find(b"\n", index)
        name = names[index : end if end >= 0 else len(names)][:4096]
    else:
        name = raw
    return ArchiveMember(name.removesuffix(b"/").decode("utf-8", "replace"), start if stored else None, size)


def _number(field: bytes, at: int) -> int:
    text = field.strip(b" ")
    if not text.isdigit():
        raise UnreadableError(f"a size that is no number near {at}")
    return int(text)
