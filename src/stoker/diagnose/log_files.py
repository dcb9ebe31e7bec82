"""Opens logs as they come: packed, in UTF-16, or one of a folder. Knows nothing of what they say.

Memory, and how much is read, are bounded whatever a file unpacks to.
"""

from __future__ import annotations

import bz2
import codecs
import contextlib
import gzip
import lzma
import os
import sys
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from stoker.diagnose.blocks import Readable

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MAX_LOGS = 1000
"""Logs of one folder that are looked at; a CI run with hundreds of jobs has one for each."""

MAX_DEPTH = 4
SUFFIXES = (".log", ".txt", ".out", ".err", ".output")
PACKED = (".gz", ".xz", ".zst", ".bz2")

MAX_UNPACKED = 2 << 30
"""Bytes that are read of a packed log's text: four times a verbose build of PyTorch. A few MB can unpack to a TB."""

ZIP = b"PK\x03\x04"
"""The first bytes of a .zip, which cannot be read as a stream: its list of files is at its end."""

_HEAD = 4096
_FAULTS = (OSError, EOFError, zlib.error, lzma.LZMAError, zstd.ZstdError)


class _Peeked:
    """A file of which the beginning was already read."""

    def __init__(self, head: bytes, file: Readable) -> None:
        self._head, self._file = head, file

    def read(self, size: int = -1, /) -> bytes:
        if not self._head:
            return self._file.read(size)
        part, self._head = (self._head[:size], self._head[size:]) if size >= 0 else (self._head, b"")
        return part


class _Unpacked:
    """The content of a packed file; a truncated file ends where it breaks off, a huge one at the limit."""

    def __init__(self, file: Readable, limit: int, at_limit: Callable[[], None]) -> None:
        self._file, self._limit, self._at_limit = file, limit, at_limit
        self._count = 0

    def read(self, size: int, /) -> bytes:
        if self._count >= self._limit:
            self._at_limit()
            return b""
        try:
            data = self._file.read(min(size, self._limit - self._count))
        except _FAULTS as err:
            if isinstance(err, OSError) and err.strerror is not None:
                raise
            if self._count:
                return b""
            raise OSError(None, f"it cannot be unpacked: {err}") from err
        self._count += len(data)
        return data


class _Recoded:
    """UTF-16 as UTF-8."""

    def __init__(self, file: Readable, encoding: str) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")

    def read(self, size: int, /) -> bytes:
        while data := self._file.read(size):
            if text := self._decoder.decode(data):
                return text.encode("utf-8", "replace")
        return self._decoder.decode(b"", final=True).encode("utf-8", "replace")


def limited(file: Readable, limit: int, at_limit: Callable[[], None]) -> Readable:
    """Return a file that ends after at most `limit` bytes; `at_limit` is called if it is cut there."""
    return _Unpacked(file, limit, at_limit)


def unpacked(file: Readable, at_limit: Callable[[], None] = lambda: None) -> Readable:
    """Return a file with the log's text, however it is packed. Raises OSError.

    `at_limit` is called if a packed log reaches MAX_UNPACKED, where its text is cut.
    """
    head = file.read(_HEAD)
    if head.startswith(ZIP):
        raise OSError(None, "it is a .zip; give 'stoker diagnose' its name, or unpack it")
    source: Readable = _Peeked(head, file)
    opener = next((opener for magic, opener in _OPENERS.items() if head.startswith(magic)), None)
    if opener is not None:
        packed = limited(opener(source), MAX_UNPACKED, at_limit)
        head = packed.read(_HEAD)
        source = _Peeked(head, packed)
    encoding = _utf16(head)
    return _Recoded(source, encoding) if encoding else source


_OPENERS: Mapping[bytes, Callable[[Any], Readable]] = {
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file),
    b"\xfd7zXZ\0": lzma.LZMAFile,
    b"\x28\xb5\x2f\xfd": zstd.ZstdFile,
    b"BZh": bz2.BZ2File,
}
"""By the first bytes of a packed file (RFC 1952, the xz format, RFC 8878, bzip2)."""


def _utf16(head: bytes) -> str:
    """Return the encoding by its byte order mark, or if every second byte is zero as in plain letters; "" for any
    other."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    zeros = [head[odd::2].count(0) for odd in (0, 1)]
    if len(head) < 16 or max(zeros) < 0.45 * len(head) or min(zeros) > 0.05 * len(head):
        return ""
    return "utf-16-le" if zeros[1] > zeros[0] else "utf-16-be"


def logs_in(folder: Path) -> list[Path]:
    """Return the logs of a folder and its subfolders, ordered by name. Raises OSError if the folder itself is
    unreadable."""
    found: list[Path] = []
    _collect(folder, MAX_DEPTH, found)
    return found


def _collect(folder: Path, depth: int, found: list[Path]) -> None:
    with os.scandir(folder) as entries:
        some = sorted(entries, key=lambda entry: entry.name)
    for entry in some:
        if len(found) >= MAX_LOGS:
            return
        if entry.is_dir(follow_symlinks=False) and depth:
            with contextlib.suppress(OSError):
                _collect(Path(entry.path), depth - 1, found)
        elif entry.is_file(follow_symlinks=False) and is_log(entry.name):
            found.append(Path(entry.path))


def is_log(name: str) -> bool:
    """Return whether a file is a log, by its name."""
    for suffix in PACKED:
        name = name.removesuffix(suffix)
    return name.endswith(SUFFIXES)
