"""Reads machine code for one GPU: an ELF file of machine 190, separate or in a container. Knows nothing of host
binaries."""

from __future__ import annotations

import re
import struct
from typing import NamedTuple

from stoker.verify.archs import arch_of
from stoker.verify.binary.byte_source import ByteSource, UnreadableError
from stoker.verify.binary.device_code import Image
from stoker.verify.binary.elf import EM_CUDA, MAGIC, SHT_NOBITS, ElfHeader, read_header, read_sections

_KERNEL = b".text."
_TOOL_NOTE = b".note.nv.tkinfo\0"
_MAX_NOTE = 4096
_SM_IN_NOTE = b"-arch sm_"
_RELEASE = re.compile(rb"\brelease (\d{1,2})\.(\d{1,2}),")

_AHEAD = 2 << 20
"""For a larger cubin, this many bytes at its start are read first: the section headers are at its end, and point to
names at its start."""


class _Held(NamedTuple):
    """What a cubin contains: kernels and device functions, by its code sections, and its tool's note."""

    header: ElfHeader
    kernels: int
    note: bytes


def is_cubin(source: ByteSource) -> bool:
    """Whether the source is a separate cubin."""
    head = source.read(0, 20)
    return head[:4] == MAGIC and len(head) == 20 and struct.unpack_from("<H", head, 18)[0] == EM_CUDA


def read_cubin(source: ByteSource) -> Image:
    """Return a separate cubin as one image; raises UnreadableError.

    Its ELF flags hold the number (in bits 8 to 15 since ABI version 8, in 0 to 7 before) but not always the variant:
    that is in the note with the command line of the tool that wrote it.
    """
    header, kernels, note = _read(source)
    number = (header.flags >> 8 if header.abi_version >= 8 else header.flags) & 0xFF
    variant = "a" if header.flags & (0x8 if header.abi_version >= 8 else 0x800) else ""
    place = note.find(_SM_IN_NOTE)
    name = note[place + len(_SM_IN_NOTE) :].split(b"\0")[0].split(b" ")[0] if place >= 0 else b""
    if name[-1:] in (b"a", b"f") and name[:-1] == str(number).encode():
        variant = name[-1:].decode()
    arch = arch_of(number, variant)
    return Image("cubin", arch, (0, 0), source.size, kernels, empty=kernels == 0, toolkit=_toolkit(note))


def look_into(cubin: ByteSource) -> tuple[int | None, tuple[int, int] | None]:
    """Return the number of kernels and device functions in a container's cubin, and the CUDA version that wrote it;
    None if unknown."""
    try:
        held = _read(cubin)
    except UnreadableError:
        return None, None
    return held.kernels, _toolkit(held.note)


def _read(source: ByteSource) -> _Held:
    source = _HeadFirst(source) if source.size > _AHEAD else source
    header = read_header(source)
    sections, names = read_sections(source, header)
    kernels = sum(
        1 for name, kind, _, _, size in sections if names.startswith(_KERNEL, name) and kind != SHT_NOBITS and size
    )
    # ptxas writes it since CUDA 12.9: the tool's name, version and command line.
    note = next((s for s in sections if names.startswith(_TOOL_NOTE, s.name) and s.type != SHT_NOBITS), None)
    return _Held(header, kernels, source.read(note.offset, min(note.size, _MAX_NOTE)) if note else b"")


def _toolkit(note: bytes) -> tuple[int, int] | None:
    match = _RELEASE.search(note)
    return (int(match[1]), int(match[2])) if match else None


class _HeadFirst:
    """A source whose first bytes are read once, before any others."""

    def __init__(self, base: ByteSource) -> None:
        self.size = base.size
        self._base = base
        self._head = base.read(0, _AHEAD)

    def read(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from `offset`."""
        if offset >= 0 and offset + length <= len(self._head):
            return self._head[offset : offset + max(0, length)]
        return self._base.read(offset, length)
