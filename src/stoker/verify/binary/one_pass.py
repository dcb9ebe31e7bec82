"""Collects what a deflated ELF file contains on the way to its section headers, which are at its end.

The headers say which of it counts. Going back would mean inflating the file again, so everything is noted first.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from stoker.verify.binary.byte_source import ByteSource, Deadline
from stoker.verify.binary.deflated_source import DeflatedSource
from stoker.verify.binary.device_code import Image
from stoker.verify.binary.elf import PT_DYNAMIC, read_header, read_segments
from stoker.verify.binary.fatbin import CONTAINER_BYTES, WRAPPER_BYTES, read_images, stray_container
from stoker.verify.binary.magic_search import MagicSearch
from stoker.verify.binary.other_code import BUNDLE, bundle_targets
from stoker.verify.binary.ptx import TEXT_BYTES, ptx_text

_SECTION_NAMES = b".shstrtab\0"
"""Part of the table of section names; lld puts that table before the debug symbols, which may have 200 MB."""
_AROUND = 1 << 12
"""Bytes before and after it that are kept: the section names of a linked file take about 400."""

_TAIL = 1 << 16
"""Bytes before the section headers that are kept: GNU ld and patchelf put there what is read later."""

_SOUGHT = (CONTAINER_BYTES, WRAPPER_BYTES, BUNDLE, _SECTION_NAMES, TEXT_BYTES)
_MAX_HELD = 100_000
"""Pieces of device code that are noted, about 200 bytes each; the largest library of torch 2.15 has 3,000."""

MAX_TEXTS = 10_000
"""Pieces of PTX text in one file that are counted."""

_WRAPPER_VERSIONS = (1, 2)


class HeldContainer(NamedTuple):
    """The place of a container, or of PTX text, and its images."""

    start: int
    end: int
    images: tuple[Image, ...]


class Passed(NamedTuple):
    """What was seen: containers in order, the versions of their wrappers, AMD's targets with their counts, and PTX
    text.

    `complete` is False if there were too many containers to note.
    """

    containers: list[HeldContainer]
    wrappers: frozenset[int]
    hip_targets: Mapping[str, int]
    complete: bool
    texts: Sequence[HeldContainer] = ()


def pass_through(source: DeflatedSource, deadline: Deadline) -> Passed:
    """Read through a file once; raises UnreadableError if it breaks off."""
    _keep_what_is_read_later(source)
    search = MagicSearch(source, _SOUGHT, deadline)
    containers: list[HeldContainer] = []
    texts: list[HeldContainer] = []
    wrappers: set[int] = set()
    targets: Counter[str] = Counter()
    held = at = 0
    while (found := search.next(at)) is not None:
        magic, at = _SOUGHT[found.which], found.offset + 1
        if magic == BUNDLE:
            targets += bundle_targets(source, found.offset)
        elif magic == _SECTION_NAMES:
            source.keep_last(max(0, found.offset - _AROUND), 2 * _AROUND)
        elif magic == TEXT_BYTES:
            texts += _text(source, found.offset) if len(texts) < MAX_TEXTS else []
        elif magic == WRAPPER_BYTES:
            wrappers |= _wrapper_version(source, found.offset)
        elif (container := stray_container(source, found.offset)) is not None:
            images = tuple(read_images(source, container, deadline))
            at, held = container.end, held + len(images)
            if held <= _MAX_HELD:
                containers.append(HeldContainer(container.start, container.end, images))
    return Passed(containers, frozenset(wrappers), targets, held <= _MAX_HELD, texts)


def _text(source: ByteSource, at: int) -> list[HeldContainer]:
    image = ptx_text(source, at)
    return [HeldContainer(at, at + image.size, (image,))] if image is not None else []


def _keep_what_is_read_later(source: DeflatedSource) -> None:
    """Keep the dynamic section, and everything from shortly before the section headers on, if that is not too much."""
    header = read_header(source)
    for segment in read_segments(source, header):
        if segment.type == PT_DYNAMIC:
            source.keep(segment.offset, segment.size)
    start = max(0, header.sections.offset - _TAIL)
    source.keep(start, source.size - start)


def _wrapper_version(source: ByteSource, at: int) -> set[int]:
    """Return the version in a wrapper, as a set; empty if this is no wrapper, because the magic is also a constant in
    code that reads it."""
    data = source.read(at + len(WRAPPER_BYTES), 4)
    version = struct.unpack("<I", data)[0] if len(data) == 4 and at % 8 == 0 else 0
    return {version} & set(_WRAPPER_VERSIONS)
