"""A wheel as a zip file: its name and tags, its members as byte sources, and its RECORD.

Unpacks nothing to disk. Knows nothing of ELF or CUDA.
"""

from __future__ import annotations

import base64
import binascii
import csv
import hashlib
import re
import struct
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from isal import isal_zlib

from stoker.model.report import Severity
from stoker.verify.binary.byte_source import (
    ByteSource,
    Deadline,
    FileSource,
    MemorySource,
    PartSource,
    UnreadableError,
    exactly,
)
from stoker.verify.binary.deflated_source import DeflatedSource, inflate_all
from stoker.verify.python_imports import MAX_SOURCES

MAX_MEMBERS = 100_000
MAX_DIRECTORY = 32 << 20
"""The largest central directory, in bytes, that is read: a wheel of 16,000 members has 3 MB."""
_SMALL = 1 << 18
"""The largest member, in bytes, that is inflated at once. A wheel of torch has 12,000 header files, and for a small
member the machinery for reading back and forth costs more than inflating all of it."""
_MAX_TEXT = 1 << 20
_RECORD_LINE = 4096
"""Bytes of RECORD per member, at most: a path, a digest and a size take a few hundred."""
_HASHES = ("sha256", "sha384", "sha512")
"""The digests that PEP 376 and its successors allow in a RECORD: nothing weaker than sha256."""

_ZIP_ERRORS = (
    zipfile.BadZipFile,
    struct.error,
    ValueError,
    LookupError,
    ArithmeticError,
    EOFError,
    NotImplementedError,
)
"""What `zipfile` raises for an invalid directory."""

_FILENAME = re.compile(
    r"(?P<name>[^-]+)-(?P<version>[^-]+)(?:-(?P<build>\d[^-]*))?-(?P<python>[^-]+)-(?P<abi>[^-]+)-(?P<platform>[^-]+)\.whl"
)


@dataclass(frozen=True, slots=True)
class Recorded:
    """One line of a RECORD; the digest is None for files that have none by design."""

    algorithm: str
    digest: bytes | None
    size: int | None


class Wheel:
    """An open wheel. Raises UnreadableError or OSError if it is not a readable zip file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = FileSource(path)
        try:
            _check_directory(self._file)
            with zipfile.ZipFile(path) as archive:
                self.members = [m for m in archive.infolist() if not m.filename.endswith("/")]
            self._check_members()
        except _ZIP_ERRORS as err:
            self._file.close()
            raise UnreadableError(f"not a zip file that can be read ({err})") from err
        self._by_name = {m.filename: m for m in self.members}
        self.info_folder = next((n.split("/")[0] for n in self._by_name if n.endswith(".dist-info/WHEEL")), "")

    def __enter__(self) -> Wheel:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _check_members(self) -> None:
        packed = sum(m.compress_size for m in self.members)
        if packed > self._file.size:
            # Members that share their bytes make a zip bomb in which no single member looks suspicious.
            raise UnreadableError(f"its members claim {packed} packed bytes, the file has {self._file.size}")

    def open(
        self, member: zipfile.ZipInfo, deadline: Deadline, consume: Callable[[bytes], object] | None = None
    ) -> ByteSource:
        """Return a member's content; raises UnreadableError.

        A large deflated member passes each byte to `consume` once; `drain` passes on the rest, and the bytes of all
        other members.
        """
        if member.flag_bits & 0x1:
            raise UnreadableError("encrypted")
        head = exactly(self._file, member.header_offset, 30, "a member's header")
        magic, name, extra = head[:4], *struct.unpack_from("<HH", head, 26)
        if magic != b"PK\x03\x04":
            raise UnreadableError(f"no member at {member.header_offset}, where the directory says")
        body = PartSource(self._file, member.header_offset + 30 + name + extra, member.compress_size)
        if body.size < member.compress_size:
            raise UnreadableError(f"cut off: {member.compress_size} bytes are promised, {body.size} are there")
        if member.compress_type == zipfile.ZIP_STORED:
            return body
        if member.compress_type == zipfile.ZIP_DEFLATED and max(body.size, member.file_size) <= _SMALL:
            return MemorySource(inflate_all(body.read(0, body.size), member.file_size + 1))
        if member.compress_type == zipfile.ZIP_DEFLATED:
            return DeflatedSource(body, member.file_size, deadline, consume)
        raise UnreadableError(f"compressed by method {member.compress_type}; wheels use 0 and 8")

    def text(self, name: str, limit: int = _MAX_TEXT) -> str:
        """Return a file of the .dist-info folder as text, "" if there is none; raises UnreadableError."""
        member = self._by_name.get(f"{self.info_folder}/{name}")
        if member is None:
            return ""
        if member.file_size > limit:
            raise UnreadableError(f"its {name} has {member.file_size} bytes")
        return self.open(member, Deadline()).read(0, member.file_size).decode("utf-8", "replace")

    def field(self, name: str, of: str) -> list[str]:
        """Return all values of one field of METADATA or WHEEL."""
        head = self.text(of).split("\n\n")[0]
        return [value.strip() for key, _, value in (li.partition(":") for li in head.splitlines()) if key == name]

    def record(self) -> dict[str, Recorded]:
        """Return the RECORD by path; raises UnreadableError."""
        count = len(self.members)
        text = self.text("RECORD", min(MAX_DIRECTORY, _MAX_TEXT + _RECORD_LINE * count))
        # Lines beyond the members are wrong anyway; a few suffice to report that.
        lines = text.split("\n", 2 * count + 100)[: 2 * count + 100]
        try:
            return {row[0]: _recorded(row) for row in csv.reader(lines) if row}
        except csv.Error as err:
            raise UnreadableError(f"its RECORD is no table ({err})") from err


def wheel_sources(path: Path) -> dict[str, str]:
    """Return the Python sources in a wheel by member, except those that are too large or unreadable."""
    found: dict[str, str] = {}
    left = MAX_SOURCES
    deadline = Deadline()
    try:
        with Wheel(path) as wheel:
            members = (m for m in wheel.members if m.filename.endswith(".py"))
            for member in sorted(members, key=lambda m: m.filename.count("/")):
                left -= member.file_size
                if left < 0:
                    break
                data = wheel.open(member, deadline).read(0, member.file_size)
                found[member.filename] = data.decode("utf-8", "replace")
    except (UnreadableError, OSError):
        return found
    return found


def _recorded(row: list[str]) -> Recorded:
    algorithm, _, digest = (row[1] if len(row) > 1 else "").partition("=")
    size = row[2] if len(row) > 2 else ""
    return Recorded(algorithm, _decoded(digest), int(size) if size.isdecimal() and len(size) < 20 else None)


def _decoded(digest: str) -> bytes | None:
    try:
        return base64.urlsafe_b64decode(digest + "=" * (-len(digest) % 4)) if digest else None
    except (binascii.Error, ValueError):
        return b""


def _check_directory(file: FileSource) -> None:
    """Refuse a central directory that would not fit in memory, before anything reads it."""
    tail = file.read(max(0, file.size - 65557), 65557)
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) < at + 22:
        raise UnreadableError("not a zip file: it has no directory at its end")
    claims = [struct.unpack_from("<HI", tail, at + 10)]
    if at >= 20 and tail[at - 20 : at - 16] == b"PK\x06\x07":
        # zip64: the record is where its locator says, or (for readers that ignore that) right before the locator.
        (offset,) = struct.unpack_from("<Q", tail, at - 12)
        records = (file.read(place, 56) for place in (offset, file.size - len(tail) + at - 76))
        claims += [struct.unpack_from("<QQ", r, 32) for r in records if len(r) == 56 and r[:4] == b"PK\x06\x06"]
    count, size = (max(numbers) for numbers in zip(*claims, strict=True))
    if size == 0xFFFFFFFF or count == 0xFFFF:
        count, size = (max((c[i] for c in claims[1:]), default=0) for i in (0, 1))
    if count > MAX_MEMBERS or size > min(MAX_DIRECTORY, file.size):
        raise UnreadableError(f"its directory claims {count} members in {size} bytes")


def hasher(recorded: Recorded | None) -> hashlib._Hash:
    """Return the hash object for the digest in a line of RECORD."""
    return hashlib.new(recorded.algorithm if recorded and recorded.algorithm in _HASHES else "sha256")


class CheckSums:
    """Checksums of a member: the CRC of the archive, and, if `hashed`, the digest for RECORD."""

    def __init__(self, recorded: Recorded | None, *, hashed: bool) -> None:
        self.crc = 0
        self._hash = hasher(recorded) if hashed else None

    def update(self, data: bytes) -> None:
        """Add the next bytes."""
        self.crc = isal_zlib.crc32(data, self.crc)
        if self._hash is not None:
            self._hash.update(data)

    def digest(self) -> bytes | None:
        """Return the digest; None if it was not requested."""
        return None if self._hash is None else self._hash.digest()


def drain(source: ByteSource, member: zipfile.ZipInfo, consume: Callable[[bytes], object], deadline: Deadline) -> int:
    """Pass the part of a member that has not been read yet to `consume`; return its true size. Raises
    UnreadableError."""
    if isinstance(source, DeflatedSource):
        size = source.finish()
    else:
        size = 0
        while chunk := source.read(size, 1 << 20):
            deadline.check()
            consume(chunk)
            size += len(chunk)
    if size > member.file_size:
        raise UnreadableError(f"unpacks to more than the {member.file_size} bytes it claims")
    return size


def record_problem(name: str, recorded: Recorded | None, size: int, digest: bytes | None) -> str:
    """Return how a member differs from its RECORD line; "" if it does not, or needs no line. `digest` is None if it was
    not computed."""
    if recorded is None:
        signature = name.endswith(("/RECORD.jws", "/RECORD.p7s"))
        return "" if signature else "is not in RECORD: pip installs it and never removes it"
    if name.endswith("/RECORD"):
        return ""
    if recorded.size is not None and recorded.size != size:
        return f"has {size} bytes, RECORD says {recorded.size}"
    if recorded.digest is None or recorded.algorithm not in _HASHES:
        return f"has no usable hash in RECORD ({recorded.algorithm or 'none'})"
    return "" if digest in (None, recorded.digest) else f"does not have the {recorded.algorithm} that RECORD says"


def name_problems(wheel: Wheel) -> list[tuple[Severity, str]]:
    """Return how the wheel's file name, its .dist-info folder and its WHEEL file disagree, each with its severity."""
    if not wheel.info_folder:
        return [("error", "has no .dist-info folder with a WHEEL file: pip will refuse it")]
    match = _FILENAME.fullmatch(wheel.path.name)
    if match is None:
        return [("error", f"{wheel.path.name} is not NAME-VERSION-PYTHON-ABI-PLATFORM.whl: pip will refuse it")]
    found: list[tuple[Severity, str]] = []
    if _normal(wheel.info_folder) != _normal(f"{match['name']}-{match['version']}.dist-info"):
        what = f"is named {match['name']}-{match['version']} and holds {wheel.info_folder}"
        if _normal(wheel.info_folder).startswith(_normal(f"{match['name']}-")):  # pip compares only the project's name
            found.append(("warning", what))
        else:
            found.append(("error", f"{what}: pip will refuse it"))
    named = {"-".join(t) for t in product(*(match[k].split(".") for k in ("python", "abi", "platform")))}
    inside = set(wheel.field("Tag", "WHEEL"))
    if named != inside:
        # pip reads only the file name; other tools read the WHEEL file.
        found.append(("warning", f"is tagged {_list(named)} by its name and {_list(inside)} by its WHEEL file"))
    return found


def platforms(wheel: Wheel) -> list[str]:
    """Return the platform tags in the file name."""
    match = _FILENAME.fullmatch(wheel.path.name)
    return match["platform"].split(".") if match else []


def abi(wheel: Wheel) -> str:
    """Return the ABI tag in the file name: cp311, abi3, none."""
    match = _FILENAME.fullmatch(wheel.path.name)
    return match["abi"] if match else ""


def unsafe_name(name: str) -> bool:
    """Whether a member would be unpacked outside its folder."""
    return name.startswith("/") or ".." in name.split("/") or not name or "\\" in name or "\0" in name


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _list(tags: set[str]) -> str:
    return ", ".join(sorted(tags)[:4]) or "nothing"
