"""Recognises data in common formats by its first bytes, and so data in a format that is not known."""

from __future__ import annotations

from stoker.verify.binary.byte_source import ByteSource

_HEAD = 4096
_KNOWN = (
    b"PK\x03\x04", b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf",  # archives
    b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF", b"OggS", b"II*\0", b"MM\0*", b"%PDF", b"\0\0\1\0",  # media
    b"\0\1\0\0", b"OTTO", b"wOFF", b"wOF2", b"ttcf",  # fonts
    b"\x93NUMPY", b"\x89HDF", b"SQLite format 3", b"PAR1", b"ARROW1", b"GGUF", b"CDF", b"MATLAB", b"TZif",  # data
    b"\x80\2", b"\x80\3", b"\x80\4", b"\x80\5",  # pickles
    b"\x7fELF", b"MZ", b"\0asm", b"\xca\xfe\xba\xbe", b"BC\xc0\xde",  # code
)  # fmt: skip
_LATER = ((257, b"ustar"), (4, b"ftyp"), (4, b"TFL3"), (8, b"{"))
"""What other formats begin with further back: tar, MP4, TFLite, safetensors."""


def unknown_format(source: ByteSource) -> bool:
    """Whether a file is neither text nor in a common format."""
    head = source.read(0, _HEAD)
    known = head.startswith(_KNOWN) or any(head.startswith(magic, at) for at, magic in _LATER)
    return b"\0" in head and not known
