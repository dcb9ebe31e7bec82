"""Reads the logs in a .zip as GitHub Actions offers it: one log per job. Knows nothing of what they say.

A job has a file at the top (`0_build.txt`), or a folder with its steps (`build/1_Set up job.txt`), or both with the
same content. Writes nothing to disk; memory, and how much is read, are bounded whatever the file contains.
"""

from __future__ import annotations

import re
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO

from stoker.diagnose.blocks import Readable
from stoker.diagnose.log_files import MAX_LOGS, MAX_UNPACKED, ZIP, is_log, limited, unpacked

_MAX_DIRECTORY = 8 << 20
"""The largest list of files, in bytes: a thousand jobs of fifty steps, with names of a hundred characters."""

_END = b"PK\x05\x06"
_END_SIZE = 22
_COMMENT = 1 << 16
_LOCATOR_64 = b"PK\x06\x07"
_LOCATOR_SIZE = 20
"""The last record of a .zip, which a comment may follow, and what precedes it in a .zip of over 4 GiB (APPNOTE)."""

_STEP = re.compile(r"(?:([^/]{1,255})/)?(\d{1,6})_([^/]{1,255})\.txt")
"""GitHub's names: of a step after its job, or of a whole job."""

_FAULTS = (zipfile.BadZipFile, RuntimeError, NotImplementedError, ValueError)
"""What `zipfile` raises for a file that is damaged, encrypted, packed in an unknown way, or inconsistent."""


@dataclass(frozen=True, slots=True)
class ZippedLog:
    """One log: `members` are its parts in their order, `limit` is how many of its bytes are read."""

    archive: Path
    name: str
    members: tuple[str, ...]
    limit: int

    def text(self, at_limit: Callable[[], None]) -> Readable:
        """Return a file with its text. Raises OSError. `at_limit` is called if the text is cut because of its size."""
        return unpacked(limited(_Parts(self), self.limit, at_limit))


class _Parts:
    """The parts of a log one after the other; a part that breaks off ends there."""

    def __init__(self, log: ZippedLog) -> None:
        self._portions = self._read(log)
        self._pending = b""

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes. Raises OSError."""
        data = self._pending or next(self._portions, b"")
        self._pending = data[size:]
        return data[:size]

    def _read(self, log: ZippedLog) -> Iterator[bytes]:
        with log.archive.open("rb") as file, _opened(file) as archive:
            for name in log.members:
                last = b"\n"
                try:
                    with archive.open(name) as member:
                        while data := member.read(1 << 16):
                            last = data[-1:]
                            yield data
                except _FAULTS as err:
                    if len(log.members) == 1 and last == b"\n":
                        raise OSError(
                            None, "it cannot be unpacked: it is damaged, or packed in an unknown way"
                        ) from err
                if last != b"\n":
                    yield b"\n"


def is_zip(path: Path) -> bool:
    """Return whether a file is a .zip with any content, by its first bytes."""
    if not path.is_file():  # a pipe can be read only once
        return False
    try:
        with path.open("rb") as file:
            return file.read(len(ZIP)) == ZIP
    except OSError:
        return False


def logs_in_zip(path: Path) -> list[ZippedLog]:
    """Return the logs in a .zip, those of jobs in their order, at most a thousand. Raises OSError."""
    with path.open("rb") as file, _opened(file) as archive:
        names = sorted(name for name in archive.namelist() if is_log(name))
    whole: dict[str, tuple[int, list[str]]] = {}
    steps: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for name in names:
        step = _STEP.fullmatch(name)
        if step is None:
            continue
        if step[1] is None:
            whole[step[3]] = int(step[2]), [name]
        else:
            steps[step[1]].append((int(step[2]), name))
    of_github = {job: parts for job, (_, parts) in sorted(whole.items(), key=lambda item: item[1][0])}
    for job, parts in steps.items():
        of_github.setdefault(job, [name for _, name in sorted(parts)])
    # Files that are not steps of a job (GitHub adds the runner's notes) count as logs only if there are no jobs.
    found = list((of_github or {name: [name] for name in names}).items())[:MAX_LOGS]
    limit = MAX_UNPACKED // max(len(found), 1)
    return [ZippedLog(path, f"{path}: {name}", tuple(parts), limit) for name, parts in found]


def _opened(file: BinaryIO) -> zipfile.ZipFile:
    """Open a .zip whose list of files is not too long. Raises OSError."""
    end = _end_record(file)
    if len(end) < _END_SIZE or int.from_bytes(end[12:16], "little") > _MAX_DIRECTORY:
        raise OSError(None, "it is damaged, or holds too many files; unpack it, and name its folder")
    try:
        return zipfile.ZipFile(file)
    except _FAULTS as err:
        raise OSError(None, "it cannot be unpacked: it is damaged, or packed in an unknown way") from err


def _end_record(file: IO[bytes]) -> bytes:
    """Return the record with the size of the list of files; empty for a .zip without one or of over 4 GiB."""
    size = file.seek(0, 2)
    file.seek(max(0, size - _END_SIZE - _COMMENT - _LOCATOR_SIZE))
    tail = file.read()
    at = tail.rfind(_END)
    return b"" if at < 0 or tail[max(0, at - _LOCATOR_SIZE) : at].startswith(_LOCATOR_64) else tail[at:]
