"""What lies in a deflated ELF file, found on the way to its section headers, which are at its end.

They say what of it counts. To go back for that is to inflate once more, so all of it is noted first.
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
"""Is in the table of section names; lld puts that before the symbols for debuggers, which may have 200 MB."""
_AROUND = 1 << 12
"""Bytes before and behind it that are kept: the section names of a linked file have some 400."""

_TAIL = 1 << 16
"""Bytes before the section headers that are kept: what GNU ld and patchelf put there."""

_SOUGHT = (CONTAINER_BYTES, WRAPPER_BYTES, BUNDLE, _SECTION_NAMES, TEXT_BYTES)
_MAX_HELD = 100_000
"""Pieces of device code that are noted, some 200 bytes each; the largest library of torch 2.15 has 3,000."""

MAX_TEXTS = 10_000
"""Pieces of PTX as text in one file that are counted."""

_WRAPPER_VERSIONS = (1, 2)


class HeldContainer(NamedTuple):
    """The place of a container, or of PTX as text, and what is in it."""

    start: int
    end: int
    images: tuple[Image, ...]


class Passed(NamedTuple):
    """What was seen: containers in order, the versions of their wrappers, AMD's targets with their counts, and PTX as
    text.

    `complete` is false where there were too many containers to be noted.
    """

    containers: list[HeldContainer]
    wrappers: frozenset[int]
    hip_targets: Mapping[str, int]
    complete: bool
    texts: Sequence[HeldContainer] = ()


def pass_through(source: DeflatedSource, deadline: Deadline) -> Passed:
    """Go through a file once; raises UnreadableError where it breaks off."""
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
    """The dynamic section, and everything from shortly before the section headers on, where that is not too much."""
    header = read_header(source)
    for segment in read_segments(source, header):
        if segment.type == PT_DYNAMIC:
            source.keep(segment.offset, segment.size)
    start = max(0, header.sections.offset - _TAIL)
    source.keep(start, source.size - start)


def _wrapper_version(source: ByteSource, at: int) -> set[int]:
    """The version in a wrapper; the magic is also a constant in the code that reads it."""
    data = source.read(at + len(WRAPPER_BYTES), 4)
    version = struct.unpack("<I", data)[0] if len(data) == 4 and at % 8 == 0 else 0
    return {version} & set(_WRAPPER_VERSIONS)
