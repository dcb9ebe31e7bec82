"""Recognises PTX as text by its version and target: as a file, or among a library's data. Knows nothing of
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
"""Marks PTX among a library's data."""
_MAX_TEXT = 1 << 14
"""Bytes of a text that are searched for its first kernel."""


def is_ptx(source: ByteSource) -> bool:
    """Whether the source is a PTX file: text that begins with the version of the language and the target."""
    return _ptx_start(source) is not None


def read_ptx(source: ByteSource) -> Image:
    """Return a PTX file as one image; raises UnreadableError."""
    match = _ptx_start(source)
    if match is None:
        raise UnreadableError("not PTX: it does not begin with .version and .target")
    arch = arch_of(int(match[3]), match[4].decode())
    return Image("ptx", arch, (int(match[1]), int(match[2])), source.size, None, empty=False)


def ptx_text(source: ByteSource, at: int) -> Image | None:
    """Return the PTX text whose `.version` is at `at`; None if it has no kernel: a compiler contains such words too,
    and functions to link with."""
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
