"""Writes a wheel: members from the old one, from files or from memory, and a RECORD of all. Unaware of binaries."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from stoker.package.packaging_error import PackagingError
from stoker.package.staging import STAGING_SECONDS, blocks_of
from stoker.verify.binary.byte_source import Deadline, UnreadableError
from stoker.verify.wheel.wheel_file import Recorded, Wheel

Progress = Callable[[str, int, int], None]
"""Called with what is done to which member, bytes done and bytes in all."""

_BLOCK = 1 << 20
_SIGNATURES = ("/RECORD.jws", "/RECORD.p7s")
"""Signatures of the old RECORD."""

_REGULAR, _MODES = 0o100000, 0o755
"""File type and modes that pip takes from a wheel; a set-user-ID bit is none of them."""


@dataclass(frozen=True, slots=True)
class WheelParts:
    """What the new wheel is made of: the old one with its RECORD, files in place of members or beside them, and texts
    in place of members."""

    wheel: Wheel
    record: Mapping[str, Recorded]
    files: Mapping[str, Path]
    texts: Mapping[str, bytes]


def write_wheel(parts: WheelParts, path: Path, level: int, progress: Progress) -> None:
    """Write the new wheel, deflated by `level` (0: stored). Raises PackagingError and OSError.

    Its files are in the old order, the new ones before the folder of METADATA, which ends the archive (PEP 427).
    """
    rows: list[tuple[str, str, str]] = []
    total, done = _size(parts), 0
    with new_archive(path, level) as archive:
        for info, size, blocks in _members(parts):
            info.compress_type = archive.compression
            digest, written = hashlib.sha256(), 0
            with archive.open(info, "w", force_zip64=size >= zipfile.ZIP64_LIMIT) as out:
                for block in blocks:
                    digest.update(block)
                    out.write(block)
                    written += len(block)
                    progress(f"packing {info.filename}", done + written, total)
            done += written
            rows.append((info.filename, f"sha256={_encoded(digest.digest())}", str(written)))
        name = f"{parts.wheel.info_folder}/RECORD"
        record = _info(name, _old(parts.wheel, f"{parts.wheel.info_folder}/WHEEL"))
        record.compress_type = archive.compression
        archive.writestr(record, _table([*rows, (name, "", "")]))


@contextmanager
def new_archive(path: Path, level: int) -> Iterator[zipfile.ZipFile]:
    """Open a new archive, deflated by `level` (0: stored). Raises OSError."""
    kind = zipfile.ZIP_DEFLATED if level else zipfile.ZIP_STORED
    try:
        with zipfile.ZipFile(path, "w", kind, compresslevel=level or None, strict_timestamps=False) as archive:
            yield archive
    except ValueError as err:
        # Interrupted while it opens a member, an archive cannot be closed; the interrupt is the news.
        if isinstance(err.__context__, KeyboardInterrupt):
            raise err.__context__ from None
        raise


def _members(parts: WheelParts) -> Iterator[tuple[zipfile.ZipInfo, int, Iterable[bytes]]]:
    """The members in their order: header, size and bytes."""
    wheel, head = parts.wheel, f"{parts.wheel.info_folder}/"
    dated = _old(wheel, f"{head}WHEEL")
    old = [m for m in wheel.members if m.filename != f"{head}RECORD" and not m.filename.endswith(_SIGNATURES)]
    known = {m.filename for m in wheel.members}
    deadline = Deadline(STAGING_SECONDS)
    for member in (m for m in old if not m.filename.startswith(head)):
        yield _info(member.filename, member), *_content(parts, member, deadline)
    for name in sorted(parts.files.keys() - known):
        info = _info(name, dated)
        info.external_attr = (_REGULAR | _MODES) << 16
        yield info, parts.files[name].stat().st_size, _file_blocks(parts.files[name])
    for member in (m for m in old if m.filename.startswith(head)):
        yield _info(member.filename, member), *_content(parts, member, deadline)


def _content(parts: WheelParts, member: zipfile.ZipInfo, deadline: Deadline) -> tuple[int, Iterable[bytes]]:
    name = member.filename
    if name in parts.texts:
        return len(parts.texts[name]), [parts.texts[name]]
    if name in parts.files:
        return parts.files[name].stat().st_size, _file_blocks(parts.files[name])
    return member.file_size, _old_blocks(parts, member, deadline)


def _old_blocks(parts: WheelParts, member: zipfile.ZipInfo, deadline: Deadline) -> Iterator[bytes]:
    try:
        source = parts.wheel.open(member, deadline)
        yield from blocks_of(member, source, parts.record.get(member.filename), deadline)
    except UnreadableError as err:
        raise PackagingError(f"{member.filename}: {err}; build the wheel again") from err


def _file_blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            yield block


def _size(parts: WheelParts) -> int:
    kept = [m for m in parts.wheel.members if m.filename not in parts.files]
    return sum(m.file_size for m in kept) + sum(path.stat().st_size for path in parts.files.values())


def _old(wheel: Wheel, name: str) -> zipfile.ZipInfo:
    return next(m for m in wheel.members if m.filename == name)


def _info(name: str, like: zipfile.ZipInfo) -> zipfile.ZipInfo:
    """A member's header with the date and the modes of another: equal input makes an equal wheel."""
    info = zipfile.ZipInfo(name, like.date_time)
    mode = (like.external_attr >> 16) & _MODES or 0o644
    info.external_attr = (_REGULAR | mode | 0o444) << 16
    return info


def _encoded(digest: bytes) -> str:
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def _table(rows: Iterable[tuple[str, str, str]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()
