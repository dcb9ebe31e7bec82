"""Follows a .ninja_log: what has been built, how long it took, and which of it belongs to the current run.

Reads versions 5, 6 and 7 (ninja 1.5 to 1.13 and later: they differ in hash and in the mtime column). Unaware of
processes and of the graph.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NamedTuple

from stoker.sense.ninja.build_files import is_manifest
from stoker.sense.proc.procfs import Notes

CHUNK = 1024 * 1024
"""Bytes read at a time, so that a log of any size costs little memory."""

MAX_HISTORY = 50_000
"""Outputs whose earlier durations are kept; at about 200 bytes each this bounds memory to 10 MiB."""

MAX_LINE = 256 * 1024
"""Longest plausible line: ninja itself gives up on a line of 256 KiB (build_log.cc)."""

CLOCK_SLACK = 0.05
"""Seconds by which a file system's clock and a process's start may differ: both tick in hundredths, so that entries
seem to begin up to 10 ms before their ninja. A run that small builds repeat may follow the one before within 0.2 s. If
a file server's clock is further off, only what ninja finished before it was found is not counted."""

VERSIONS = (5, 6, 7)

EdgeKey = tuple[int, int, str, int]


class Entry(NamedTuple):
    """One edge that ninja finished, by its first output. `mtime` is in nanoseconds, or 0 if ninja kept none.

    `start_ms` and `end_ms` count from the start of the ninja that wrote it. `offset_after` is the position in the file
    after this record, for `NinjaLog.resume`.
    """

    start_ms: int
    end_ms: int
    mtime: int
    output: str
    hash: str
    offset_after: int

    @property
    def seconds(self) -> float:
        """How long the edge ran."""
        return max(0, self.end_ms - self.start_ms) / 1000

    @property
    def edge(self) -> EdgeKey:
        """The same for the several outputs of one edge, which share command, start, end and time.

        Two edges may share the first three. Samurai keeps no start and end, and a time for each output.
        """
        return (self.start_ms, self.end_ms, self.hash, self.mtime if self.end_ms else 0)


@dataclass(frozen=True, slots=True)
class FirstRead:
    """The contents of a log when it was found: seconds of each output in earlier runs, and this run's entries."""

    history: Mapping[str, float] = field(default_factory=dict)
    this_run: tuple[Entry, ...] = ()


class NinjaLog:
    """A log that grows while it is read; every edge is returned once."""

    def __init__(self, path: Path, *, hold: bool = False) -> None:
        """`hold` its folder, until it is closed: a container takes its files with it, and ninja writes at its end."""
        self.name = path
        self._folder: int | None = None
        if hold:
            with contextlib.suppress(OSError):
                self._folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self.path = path if self._folder is None else Path(f"/proc/self/fd/{self._folder}", path.name)
        self.notes = Notes()
        self.offset = 0
        self._identity: tuple[int, int] | None = None
        self._last_edge: EdgeKey | None = None
        self._run_start: float | None = None
        self._manifest = "build.ninja"
        self._kept: int | None = None

    @property
    def lost(self) -> bool:
        """True if the log went with its folder before it was ever open: then it says nothing about any job."""
        return self._kept is None and not os.path.isdir(self.path.parent)

    def close(self) -> None:
        """Close the file; the next read opens it again, unless its folder was held, which is closed too."""
        self._close_file()
        if self._folder is not None:
            os.close(self._folder)
            self._folder, self.path = None, self.name

    def _close_file(self) -> None:
        if self._kept is not None:
            os.close(self._kept)
            self._kept = None

    def first_read(self, ninja_start: float, now: float, manifest: str = "build.ninja") -> FirstRead:
        """Read everything, and separate this run's entries from those of earlier runs.

        `ninja_start` and `now` are Unix seconds. This run's entries are at the end of the file; going backwards they
        end at an entry that is too old, or where the milliseconds jump although the manifest was not just regenerated.
        """
        self._run_start, self._manifest = ninja_start, manifest
        self.offset, self._identity, self._last_edge = 0, None, None
        size, written = self._last_write()
        run = _LastRun(ninja_start, manifest)
        for entry in self._read():
            run.add(entry, min(now, written) if entry.offset_after <= size else now)
        return FirstRead(run.history, tuple(run.entries))

    def _last_write(self) -> tuple[int, float]:
        """Return how many bytes were written when: none of these entries ended later. A rule that makes no file, like
        `clean`, has no time of its own to be known by."""
        try:
            info = self.path.stat()
        except OSError:
            return 0, 0.0
        return info.st_size, info.st_mtime

    def holds(self, output: str, now: float) -> bool:
        """Say whether ninja has recorded this in its run, whatever was returned before: reads all of it again."""
        with contextlib.closing(NinjaLog(self.path)) as log:
            run = log.first_read(self._run_start or 0.0, now, self._manifest).this_run
        return any(entry.output == output for entry in run)

    def begin_run(self, ninja_start: float, manifest: str = "build.ninja") -> None:
        """Another ninja writes this log from now on: what has been read stays read, even if it rewrites the file."""
        self._run_start, self._manifest = ninja_start, manifest

    def resume(self, offset: int) -> None:
        """Continue after byte `offset`, where an earlier engine stopped. A shorter file is read from the start."""
        size = self._stat_size()
        self.offset = offset if 0 <= offset <= size else 0
        self._last_edge = self._edge_before(self.offset)

    def read_new(self) -> list[Entry]:
        """Return the edges recorded since the last call; empty if there is no news, or no file."""
        try:
            info = self.path.stat()
        except FileNotFoundError:
            return list(self._read())
        except OSError:
            return []
        identity = (info.st_dev, info.st_ino)
        replaced = self._identity is not None and (identity != self._identity or info.st_size < self.offset)
        if replaced:
            return self._read_replaced(info.st_mtime)
        if info.st_size == self.offset:
            self._identity = identity
            return []
        return list(self._read())

    def _read_replaced(self, mtime: float) -> list[Entry]:
        """Ninja rewrote its log (it does so when it opens one with many stale lines): only this run's part is new."""
        last = self._last_edge
        if self._run_start is None:
            self.offset = 0
            return list(self._read())
        entries = list(self.first_read(self._run_start, mtime, self._manifest).this_run)
        known = next((i for i, e in enumerate(entries) if e.edge == last), -1)
        return entries[known + 1 :]

    def _edge_before(self, offset: int) -> EdgeKey | None:
        """Return the edge just before `offset`: its other outputs may follow, and they are not new."""
        start = max(0, offset - MAX_LINE)
        try:
            with self.path.open("rb") as file:
                file.seek(start)
                lines = file.read(offset - start).split(b"\n")
        except OSError:
            return None
        entry = parse_entry(lines[-2], offset) if len(lines) > 1 else None
        return entry.edge if entry else None

    def _stat_size(self) -> int:
        try:
            info = self.path.stat()
        except OSError:
            return 0
        self._identity = (info.st_dev, info.st_ino)
        return info.st_size

    def _read(self) -> Iterator[Entry]:
        """Yield whole lines from the offset on; a last line without its newline waits for the rest."""
        file = self._open()
        if file is None:
            return
        with file:
            info = os.fstat(file.fileno())
            self._identity = (info.st_dev, info.st_ino)
            file.seek(self.offset)
            rest = b""
            while chunk := file.read(CHUNK):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    self.offset += len(line) + 1
                    entry = self._entry(line)
                    if entry is not None:
                        yield entry
                if len(rest) > MAX_LINE:
                    self.offset += len(rest)
                    rest = b""

    def _open(self) -> BinaryIO | None:
        """Return the log; once it is deleted, its old file: pip deletes its build folder as soon as ninja has ended."""
        try:
            file = self.path.open("rb")
        except FileNotFoundError:
            return os.fdopen(os.dup(self._kept), "rb") if self._kept is not None else None
        except OSError:
            return None
        self._close_file()
        self._kept = os.dup(file.fileno())
        return file

    def _entry(self, line: bytes) -> Entry | None:
        if line.startswith(b"#"):
            self._check_version(line)
            return None
        entry = parse_entry(line, self.offset)
        if entry is None:
            if line.strip():
                self.notes.say(f"{self.name} holds lines that are not from a ninja log; they are skipped")
            return None
        if entry.edge == self._last_edge:
            return None
        self._last_edge = entry.edge
        return entry

    def _check_version(self, line: bytes) -> None:
        digits = line.rpartition(b"v")[2].strip()
        if digits.isdigit() and int(digits) not in VERSIONS:
            self.notes.say(f"{self.name} has version {digits.decode()}; stoker knows 5 to 7 and reads on regardless")


def parse_entry(line: bytes, offset_after: int) -> Entry | None:
    """Parse one line of a log; None if it is not of the form start, end, mtime, output, hash."""
    try:
        start, end, mtime, output, command_hash = line.rstrip(b"\r").split(b"\t")
        return Entry(int(start), int(end), int(mtime), os.fsdecode(output), command_hash.decode(), offset_after)
    except ValueError:  # UnicodeDecodeError is one
        return None


class _LastRun:
    """Sorts entries, as they come, into this run's and those before."""

    def __init__(self, ninja_start: float, manifest: str) -> None:
        self.history: dict[str, float] = {}
        self.entries: list[Entry] = []
        self._ninja_start = ninja_start
        self._latest_end = 0.0
        self._manifest = manifest
        self._sure = False

    def add(self, entry: Entry, written: float) -> None:
        """The next entry of the file, which was there at Unix time `written`."""
        self._latest_end = (written - self._ninja_start + CLOCK_SLACK) * 1000
        if not (self._may_be_this_run(entry) or self._follows(entry)):
            self._all_were_before()
            self._remember(entry)
            return
        if self.entries and entry.end_ms < self.entries[-1].end_ms and not self._restarted():
            self._all_were_before()
        self.entries.append(entry)
        self._sure = self._sure or entry.mtime > 0

    def _follows(self, entry: Entry) -> bool:
        """Say whether it may follow entries that certainly belong to this run, although its output is older.

        Ninja before 1.12 keeps the time of the output, which a `restat` rule or a copy may leave in the past.
        """
        in_order = self._sure and (entry.end_ms >= self.entries[-1].end_ms or self._restarted())
        return in_order and entry.end_ms <= self._latest_end

    def _may_be_this_run(self, entry: Entry) -> bool:
        """Ninja 1.12 and later record when the command started, which reveals when that ninja did; 1.10 records 0.

        1.11 records when the output was written: the last job of a run that ended a moment ago then seems to belong to
        the next one, unless it took longer than that has run. The caller's time may be too early for that comparison,
        if the engine was stopped for a while, but no entry that has been read ended after now.
        """
        if entry.mtime > 0:
            so_far = (time.time() + CLOCK_SLACK - self._ninja_start) * 1000
            began = entry.mtime / 1e9 - entry.start_ms / 1000
            return began >= self._ninja_start - CLOCK_SLACK and entry.end_ms <= so_far
        return entry.end_ms <= self._latest_end

    def _restarted(self) -> bool:
        return is_manifest(self.entries[-1].output, self._manifest)

    def _all_were_before(self) -> None:
        for entry in self.entries:
            self._remember(entry)
        self.entries.clear()
        self._sure = False

    def _remember(self, entry: Entry) -> None:
        if len(self.history) < MAX_HISTORY or entry.output in self.history:
            self.history[entry.output] = entry.seconds
