"""PTX as text that says its language's version and its target: by itself, or among a library's data. Unaware of
containers."""

from __future__ import annotations

import re

from stoker.verify.archs import arch_of
from stoker.verify.binary.byte_source import ByteSource, UnreadableError
from stoker.verify.binary.device_code import Image

_PTX_HEAD = 1 << 12
_COMMENT = re.compile(rb"//[^\n]*|/\*.*?\*/", re.DOTALL)
_PTX_START = re.compile(rb"\s*\.version\s+(\d{1,2})\.(\d)\s+\.target\s+sm_(\d{2,3})([af]?)\b")


TEXT_BYTES = b".version "
"""How PTX among a library's data is found."""
_MAX_TEXT = 1 << 14
"""Bytes in which a text names its first kernel."""


def is_ptx(source: ByteSource) -> bool:
    """True for PTX by itself: text that begins with the version of its language and its target."""
    return _ptx_start(source) is not None


def read_ptx(source: ByteSource) -> Image:
    """A file of PTX as one image; raises UnreadableError."""
    match = _ptx_start(source)
    if match is None:
        raise UnreadableError("not PTX: it does not begin with .version and .target")
    arch = arch_of(int(match[3]), match[4].decode())
    return Image("ptx", arch, (int(match[1]), int(match[2])), source.size, None, empty=False)


def ptx_text(source: ByteSource, at: int) -> Image | None:
    """The text that a program hands to the driver, whose `.version` is at `at`; None where there is no kernel in it: a
    compiler has such words too, and functions to link with."""
    match = _PTX_START.match(source.read(at, 128))
    if match is None:
        return None
    text = source.read(at, _MAX_TEXT).partition(b"\0")[0]
    if b".entry" not in text:
        return None
    arch = arch_of(int(match[3]), match[4].decode())
    return Image("ptx", arch, (int(match[1]), int(match[2])), len(text), None, empty=False)


def _ptx_start(source: ByteSource) -> re.Match[bytes] | None:
    head = source.read(0, _PTX_HEAD)
    return None if b"\0" in head[:64] else _PTX_START.match(_COMMENT.sub(b" ", head))
