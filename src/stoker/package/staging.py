"""Checks an untrusted wheel, and copies its shared libraries to files that may be rewritten.

Copies only libraries, under numbers: no name in the archive ever becomes a path. Unaware of what they need.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import stat
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from stoker.model.units import format_bytes
from stoker.package.packaging_error import PackagingError
from stoker.verify.binary.byte_source import ByteSource, Deadline, FileSource, UnreadableError
from stoker.verify.binary.elf import ET_REL, MAGIC, read_dynamic, read_elf
from stoker.verify.linking.libraries import SharedLibrary
from stoker.verify.wheel.wheel_file import Recorded, Wheel, hasher, record_problem, unsafe_name

MAX_UNPACKED = 16 << 30
"""Bytes of all members; the largest wheel seen (paddlepaddle-gpu) has 2.8 GiB."""

STAGING_SECONDS = 600.0
"""CPU time to read a wheel once; 1 GiB takes about five."""

_BLOCK = 1 << 20
_DATA = re.compile(r"[^/]+\.data/(?P<scheme>\w+)/(?P<rest>.+)")
_PACKAGES = ("platlib", "purelib")


@dataclass(frozen=True, slots=True)
class StagedLibrary:
    """A shared library of the wheel: its member, where pip puts it below the folder for packages (None: elsewhere),
    and its copy on disk."""

    member: str
    place: PurePosixPath | None
    file: Path
    library: SharedLibrary

    @property
    def name(self) -> str:
        """The file's name."""
        return PurePosixPath(self.member).name


def check_members(wheel: Wheel, folder: Path) -> dict[str, Recorded]:
    """Refuse what no wheel holds, before a byte is unpacked, and return RECORD. Raises PackagingError."""
    seen: set[str] = set()
    for member in wheel.members:
        name = member.filename
        if unsafe_name(name):
            raise PackagingError(f"{name!r} would be unpacked outside the folder meant for it; build the wheel again")
        if name in seen:
            raise PackagingError(f"{name!r} is in the wheel twice; build it again")
        if stat.S_ISLNK(member.external_attr >> 16):
            raise PackagingError(f"{name!r} is a symbolic link, which wheels cannot hold; pack the file itself")
        seen.add(name)
    if not wheel.info_folder:
        raise PackagingError("it has no .dist-info folder with a WHEEL file; build it again")
    size = sum(m.file_size for m in wheel.members)
    if size > MAX_UNPACKED:
        raise PackagingError(f"it unpacks to {format_bytes(size)}; at most {format_bytes(MAX_UNPACKED)} are packaged")
    free = shutil.disk_usage(folder).free
    if size > free:
        what = f"it unpacks to {format_bytes(size)}, and {folder} has {format_bytes(free)} free"
        raise PackagingError(f"{what}; free some, or name another folder with -o")
    record = wheel.record()
    if name := next((n for n in record if unsafe_name(n)), ""):
        raise PackagingError(f"its RECORD names {name!r}, outside the folder meant for it; build the wheel again")
    return record


def stage(wheel: Wheel, record: Mapping[str, Recorded], folder: Path, site: Path) -> list[StagedLibrary]:
    """Copy the shared libraries of a wheel into `folder`, as if they were in `site`. Raises PackagingError."""
    deadline = Deadline(STAGING_SECONDS)
    found: list[StagedLibrary] = []
    for member in wheel.members:
        try:
            source = wheel.open(member, deadline)
            if source.read(0, len(MAGIC)) != MAGIC:
                continue
            path = folder / f"{len(found)}"
            with path.open("xb") as copy:
                for block in blocks_of(member, source, record.get(member.filename), deadline):
                    copy.write(block)
            staged = _staged(member.filename, path, site)
        except UnreadableError as err:
            raise PackagingError(f"{member.filename}: {err}; build the wheel again") from err
        if staged is not None:
            found.append(staged)
        else:
            path.unlink()
    return found


def blocks_of(
    member: zipfile.ZipInfo, source: ByteSource, line: Recorded | None, deadline: Deadline
) -> Iterator[bytes]:
    """A member's bytes, held against its checksum and its line of RECORD. Raises UnreadableError."""
    digest, checksum, size = hasher(line), 0, 0
    while block := source.read(size, _BLOCK):
        deadline.check()
        digest.update(block)
        checksum = zlib.crc32(block, checksum)
        size += len(block)
        yield block
    if size != member.file_size or checksum != member.CRC:
        raise UnreadableError("it is damaged: its checksum is another")
    if line is not None and (problem := record_problem(member.filename, line, size, digest.digest())):
        raise UnreadableError(problem)


def digest_of(path: Path) -> hashlib._Hash:
    """The sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256")


def library_at(path: Path, place: Path) -> SharedLibrary | None:
    """The linked file at `path`, thought to be at `place`; None for objects and static programs.

    Raises UnreadableError and OSError.
    """
    with FileSource(path) as source:
        elf = read_elf(source)
        dynamic = read_dynamic(source, elf)
    return None if dynamic is None or elf.type == ET_REL else SharedLibrary(place, elf, dynamic)


def _staged(member: str, path: Path, site: Path) -> StagedLibrary | None:
    place = _place(member)
    library = library_at(path, site / (place or member))
    return StagedLibrary(member, place, path, library) if library is not None else None


def _place(member: str) -> PurePosixPath | None:
    match = _DATA.fullmatch(member)
    if match is None:
        return PurePosixPath(member)
    return PurePosixPath(match["rest"]) if match["scheme"] in _PACKAGES else None
