"""Finds relocatable PTX that the driver links at run time, beside the result of a device link.

With `-rdc=true` nvcc keeps the code of each source in `__nv_relfatbin`. A device link puts machine code into
`.nv_fatbin` and registers that with a wrapper of version 2; wrappers of version 1 register the pieces that it linked.
On a GPU that the linked machine code is not for, the driver compiles and links the pieces' PTX. A piece without PTX for
that GPU then fails alone (seen on an H100 and an H200, driver 580: error 500, "named symbol not found").

Knows nothing of how device code is judged.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from stoker.verify.binary.byte_source import ByteSource, Deadline, PartSource
from stoker.verify.binary.device_code import Image
from stoker.verify.binary.elf import PT_LOAD, Elf, ElfSection
from stoker.verify.binary.fatbin import WRAPPER_BYTES, find_containers, read_images

LINKED, RELOCATABLE, WRAPPERS = ".nv_fatbin", "__nv_relfatbin", ".nvFatBinSegment"
"""Sections with device code. The second holds code that needs a device link (`-rdc=true`); the third points to
either."""

LINKED_WRAPPER = 2
"""The version of a wrapper that registers the result of a device link; others have 1."""

_NAMES = "__nv_module_id"
_RUNTIME = b"_cuda_device_runtime_cu_"
"""Part of the name of libcudadevrt's piece, which nvcc links into everything; no program calls its kernels itself."""

_WRAPPER = struct.Struct("<4sIQQ")
_MAX_WRAPPERS = 100_000
_MAX_NAMES = 1 << 24


class Relinked(NamedTuple):
    """Where in the file the container with the result of the device link begins, and the PTX of each piece."""

    start: int
    pieces: Sequence[Sequence[Image]]


def wrappers(source: ByteSource, elf: Elf) -> list[tuple[int, int]]:
    """Return version and address of each wrapper, in the file's order; the address is 0 where only a relocation has
    it."""
    found: list[tuple[int, int]] = []
    for section in elf.named(WRAPPERS):
        data = source.read(section.offset, min(section.size, _MAX_WRAPPERS * _WRAPPER.size))
        whole = len(data) - len(data) % _WRAPPER.size
        found += [(v, at) for magic, v, at, _ in _WRAPPER.iter_unpack(data[:whole]) if magic == WRAPPER_BYTES]
    return found


def read_relinked(source: ByteSource, elf: Elf, deadline: Deadline) -> Relinked | None:
    """Return what one device link left for the driver; None if there is no PTX, or not just one such link. Raises
    UnreadableError."""
    linked, pieces = elf.named(LINKED), elf.named(RELOCATABLE)
    if len(linked) != 1 or len(pieces) != 1:
        return None
    results = [address for version, address in wrappers(source, elf) if version == LINKED_WRAPPER]
    if len(results) != 1:
        return None
    images = _pieces(source, pieces[0], deadline)
    names = _names(source, elf)
    if len(names) == len(images):
        images = [held for name, held in zip(names, images, strict=True) if _RUNTIME not in name]
    start = _offset(elf, results[0]) or _only_container(source, linked[0], deadline)
    return Relinked(start, images) if start is not None and any(images) else None


def _pieces(source: ByteSource, section: ElfSection, deadline: Deadline) -> list[list[Image]]:
    part = PartSource(source, section.offset, section.size)
    return [
        [image for image in read_images(part, container, deadline) if image.kind == "ptx" and not image.empty]
        for container in find_containers(part, deadline)
    ]


def _names(source: ByteSource, elf: Elf) -> list[bytes]:
    """Return the names of the pieces, in the order of their containers; those with "def " are the device link's own."""
    texts = (source.read(s.offset, min(s.size, _MAX_NAMES)) for s in elf.named(_NAMES))
    return [name for text in texts for name in text.split(b"\0") if name and not name.startswith(b"def ")]


def _offset(elf: Elf, address: int) -> int | None:
    """Return where in the file the byte of this address is."""
    for segment in elf.segments:
        if segment.type == PT_LOAD and segment.address <= address < segment.address + segment.size and address:
            return address - segment.address + segment.offset
    return None


def _only_container(source: ByteSource, section: ElfSection, deadline: Deadline) -> int | None:
    """Return where the section's container begins, if it has only one."""
    found = list(find_containers(PartSource(source, section.offset, section.size), deadline))
    return section.offset + found[0].start if len(found) == 1 else None
