"""The logs in a .zip, as GitHub Actions offers them: one of each job. Unaware of what they say.

A job has a file at the top (`0_build.txt`), or a folder of its steps (`build/1_Set up job.txt`), or both, which say the
same. Nothing is written to a disk; memory and what is read of it are bounded whatever the file holds.
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
"""Bytes of its list of files: a thousand jobs of fifty steps, with names of a hundred characters."""

_END = b"PK\x05\x06"
_END_SIZE = 22
_COMMENT = 1 << 16
_LOCATOR_64 = b"PK\x06\x07"
_LOCATOR_SIZE = 20
"""The last record of a .zip, which a comment may follow, and what stands before it in one of over 4 GiB (APPNOTE)."""

_STEP = re.compile(r"(?:([^/]{1,255})/)?(\d{1,6})_([^/]{1,255})\.txt")
"""GitHub's names: of a step with its job before it, of a whole job without one."""

_FAULTS = (zipfile.BadZipFile, RuntimeError, NotImplementedError, ValueError)
"""What `zipfile` raises of a file that is damaged, encrypted, packed in a way that it does not know, or a lie."""


@dataclass(frozen=True, slots=True)
class ZippedLog:
    """One log: `members` are its parts in their order, `limit` is how many bytes of it are read."""

    archive: Path
    name: str
    members: tuple[str, ...]
    limit: int

    def text(self, at_limit: Callable[[], None]) -> Readable:
        """Return a file that gives its text. Raises OSError. `at_limit` is called where its text ends for its size."""
        return unpacked(limited(_Parts(self), self.limit, at_limit))


class _Parts:
    """The parts of a log one after the other; one that breaks off ends there."""

    def __init__(self, log: ZippedLog) -> None:
        self._portions = self._read(log)
        self._pending = b""

    def read(self, size: int, /) -> bytes:
        """Return so many bytes or fewer. Raises OSError."""
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
    """Return whether a file is a .zip with something in it, by its first bytes."""
    if not path.is_file():  # a pipe gives its bytes once
        return False
    try:
        with path.open("rb") as file:
            return file.read(len(ZIP)) == ZIP
    except OSError:
        return False


def logs_in_zip(path: Path) -> list[ZippedLog]:
    """Return the logs of a .zip, those of jobs in their order, a thousand at most. Raises OSError."""
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
    # what is no step of a job, of a .zip of GitHub's its own notes on the runner, is a log where there are no jobs
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
    """Return the record that names the size of the list of files, nothing of a .zip without one or of over 4 GiB."""
    size = file.seek(0, 2)
    file.seek(max(0, size - _END_SIZE - _COMMENT - _LOCATOR_SIZE))
    tail = file.read()
    at = tail.rfind(_END)
    return b"" if at < 0 or tail[max(0, at - _LOCATOR_SIZE) : at].startswith(_LOCATOR_64) else tail[at:]
