"""Reads journals: completely, or onwards from a record. Unaware of who writes them and who looks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from stoker.config.regular import open_regular
from stoker.model.codec import CodecError, UnknownKindError, decode_record, whole
from stoker.model.events import Event, Record
from stoker.model.reduce import reduce_all
from stoker.model.state import BuildState
from stoker.record.checkpoint import load_checkpoint
from stoker.record.journal_error import JournalError
from stoker.record.jsonlines import BadLineError, parse_line

MAX_LINE = 16 * 2**20
"""Longest line in bytes that is read. Linux allows a command of up to 6 MiB (execve(2)), and escaping may double it."""

_BLOCK = 1 << 16


class JournalReader:
    """Iterates over the records of a journal, in constant memory; iterating again continues where it ended.

    Skips and counts a line that is not a record, and an event of a newer stoker; leaves a last line without a newline
    for later. A missing file is an empty one. Raises JournalError at the end of a file that had lines but none of a
    journal of this version, and OSError for anything but a regular file, or for a link unless `follow_links`.
    """

    skipped: int
    """Lines that were not records of this version."""

    offset: int
    """The byte after the last line that was read."""

    def __init__(self, path: Path, offset: int = 0, *, follow_links: bool = False) -> None:
        self.path = path
        self.offset = offset
        self.skipped = 0
        self._follow_links = follow_links
        self._recognised = offset > 0
        self._fault: Exception | None = None

    def __iter__(self) -> Iterator[Record]:
        try:
            file = open_regular(self.path, follow_links=self._follow_links)
        except FileNotFoundError:
            return
        with file:
            file.seek(self.offset)
            for line in self._lines(file):
                record = self._record(line)
                if record is not None:
                    yield record
        if self._fault is not None and not self._recognised:
            raise JournalError(f"{self.path} is not a readable journal: {self._fault}")

    def _lines(self, file: IO[bytes]) -> Iterator[bytes]:
        """Yield whole lines; one that is too long comes as only a newline. Moves `offset` before each."""
        while line := file.readline(MAX_LINE):
            length = len(line)
            while line and not line.endswith(b"\n") and length >= MAX_LINE:
                line = file.readline(MAX_LINE)
                length += len(line)
            if not line.endswith(b"\n"):
                return
            self.offset += length
            yield line if length <= MAX_LINE else b"\n"

    def _record(self, line: bytes) -> Record | None:
        try:
            record = decode_record(parse_line(line))
        except UnknownKindError:
            self._recognised = True
        except (BadLineError, CodecError) as err:
            self._fault = err
        else:
            self._recognised = True
            return record
        self.skipped += 1
        return None


def read_journal(path: Path) -> JournalReader:
    """Return the records of a journal, in order."""
    return JournalReader(path)


def may_be_journal(path: Path) -> bool:
    """Say whether a file is empty or starts like a journal, whether its first line is complete or not."""
    try:
        with path.open("rb") as file:
            return file.read(1) in (b"", b"{")
    except OSError:
        return False


def read_kinds(path: Path, *kinds: type[Event]) -> Iterator[Record]:
    """Yield the records of these kinds, in order. Most lines are samples: others are skipped without decoding."""
    marks = tuple(b'"type":"%b"' % kind.kind.encode() for kind in kinds)
    try:
        file = open_regular(path)
    except FileNotFoundError:
        return
    with file:
        while line := file.readline(MAX_LINE):
            if any(mark in line for mark in marks):
                try:
                    record = decode_record(parse_line(line))
                except (BadLineError, CodecError):
                    continue
                if isinstance(record.event, kinds):
                    yield record


def load_state(path: Path) -> BuildState:
    """Return the state that a journal adds up to, from its last checkpoint on; raises JournalError."""
    checkpoint = load_checkpoint(path)
    if checkpoint is None or checkpoint.state.seq != _seq_before(path, checkpoint.offset):
        return reduce_all(read_journal(path))
    return reduce_all(JournalReader(path, checkpoint.offset), checkpoint.state)


def _seq_before(path: Path, offset: int) -> int | None:
    """Return the number of the record that ends at `offset`; None if none does."""
    try:
        with open_regular(path) as file:
            ends_there = offset > 0 and os.pread(file.fileno(), 1, offset - 1) == b"\n"
            return last_seq(file.fileno(), offset) if ends_there else None
    except OSError:
        return None


def last_seq(fd: int, size: int) -> int:
    """Return the number of the last readable record before `size`; 0 if there is none."""
    window = _BLOCK
    while True:
        start = max(0, size - window)
        lines = os.pread(fd, size - start, start).split(b"\n")
        for line in reversed(lines[1:] if start else lines):
            seq = _seq_of(line)
            if seq is not None:
                return seq
        if start == 0:
            return 0
        window *= 4


def _seq_of(line: bytes) -> int | None:
    try:
        seq = parse_line(line).get("seq")
    except BadLineError:
        return None
    return whole(seq)


def offset_after(path: Path, seq: int) -> int:
    """Return where to start reading for records after `seq`, within 64 KiB, by bisection: numbers only increase."""
    try:
        file = open_regular(path)
    except FileNotFoundError:
        return 0
    with file:
        low, high = 0, os.fstat(file.fileno()).st_size
        while high - low > _BLOCK:
            middle = (low + high) // 2
            start, found = _first_seq_from(file, middle, high)
            if found is None or found > seq:
                high = middle
            else:
                low = start
        return low


def _first_seq_from(file: IO[bytes], offset: int, end: int) -> tuple[int, int | None]:
    """Return the first record that starts after `offset` and before `end`: its position and number."""
    file.seek(offset)
    offset += len(file.readline(MAX_LINE))
    while offset < end and (line := file.readline(MAX_LINE)):
        seq = _seq_of(line)
        if seq is not None:
            return offset, seq
        offset += len(line)
    return offset, None
