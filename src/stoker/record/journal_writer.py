"""Appends to a journal, whatever the disk does. Unaware of who produces events and who looks at them."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from stoker.model.codec import encode_record
from stoker.model.events import BuildEnded, BuildStarted, Estimated, Event, FailureFound, Record, Sampled, StopRequested
from stoker.model.state import BuildState
from stoker.record.checkpoint import save_checkpoint
from stoker.record.journal_error import JournalError
from stoker.record.journal_reader import last_seq
from stoker.record.jsonlines import dump_line

MAX_PENDING = 8 * 2**20
"""Bytes that wait in memory while the disk is full: about an hour of a build with 30 running jobs."""

SYNC_SECONDS = 5.0
"""Minimum time between two fdatasync calls; a build slows disks down enough by itself."""

CHECKPOINT_BYTES = 2**20
"""Journal between two checkpoints: reading this much takes about 0.15 s, writing one 5 ms."""

_BLOCK = 1 << 16
_WORTH_A_SYNC = (BuildStarted, FailureFound, StopRequested, BuildEnded)
_DISK_IS_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO)


class JournalBusyError(JournalError):
    """Another engine is writing this journal."""


class _Pending(NamedTuple):
    line: bytes
    rank: int


def _rank(event: Event) -> int:
    """Return the priority of a record when neither disk nor memory has space: 0 is dropped first, 2 never."""
    if isinstance(event, Sampled | Estimated):
        return 0
    return 2 if isinstance(event, BuildStarted | BuildEnded) else 1


class JournalWriter:
    """Appends records to one journal. Once open, nothing about the disk ever raises: see `problem`.

    Raises JournalBusyError while another writer lives, and OSError if the file cannot be opened at all.
    """

    problem: str | None
    """One line for the user while records cannot be written; None when all is well."""

    dropped: int
    """Records lost because the disk was full for too long. Their numbers are missing from the journal."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.problem = None
        self.dropped = 0
        self._path = path
        self._clock = clock
        self._fd: int | None = None
        self._size = 0
        self._checkpoint_size = 0
        self._torn = False
        self._seq = 0
        self._pending: deque[_Pending] = deque()
        self._pending_bytes = 0
        self._sync_due = False
        self._last_sync = clock() - SYNC_SECONDS
        self._syncing: threading.Thread | None = None
        try:
            self._open()
        except OSError as err:
            if err.errno not in _DISK_IS_FULL:
                raise
            self._fail(err)

    @property
    def seq(self) -> int:
        """The number of the last record, written or pending."""
        return self._seq

    def append(self, event: Event, at: float) -> tuple[Record, bytes]:
        """Number `event` and hold it for the next flush; return the record, and its line to send on. `at`: Unix
        seconds."""
        self._seq += 1
        # Rounded as in the file, so that a live state and a loaded one are equal.
        record = Record(self._seq, round(at, 3), event)
        line = dump_line(encode_record(record))
        self._pending.append(_Pending(line, _rank(event)))
        self._pending_bytes += len(line)
        self._sync_due |= isinstance(event, _WORTH_A_SYNC)
        if self._pending_bytes > MAX_PENDING:
            self._drop(MAX_PENDING * 3 // 4)
        return record, line

    def flush(self) -> None:
        """Write what is pending, in one write if the disk accepts it; once per tick."""
        if self._pending:
            self._write_pending()
        if self._sync_due and self.problem is None and self._clock() - self._last_sync >= SYNC_SECONDS:
            self._sync()

    def checkpoint(self, state: BuildState) -> None:
        """Save `state`, which includes every record so far, so that loading starts from there. Cheap to call often."""
        if self._pending or state.seq != self._seq or self._size - self._checkpoint_size < CHECKPOINT_BYTES:
            return
        self._checkpoint_size = self._size
        save_checkpoint(self._path, state, self._size)

    def squeeze(self, room: int) -> None:
        """Write what is pending when this many bytes are left on a full disk; drops what counts least."""
        self._drop(room)
        self.flush()

    def close(self) -> None:
        """Flush, sync to the disk, and release the lock."""
        self.flush()
        if self._syncing is not None:
            self._syncing.join()
        if self._fd is None:
            return
        if self._sync_due:
            _sync_and_close(os.dup(self._fd))
        os.close(self._fd)
        self._fd = None

    def _open(self) -> int:
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            _lock(fd)
            self._size = _complete_size(fd)
            os.ftruncate(fd, self._size)
            self._seq = max(self._seq, last_seq(fd, self._size))
        except BlockingIOError:
            os.close(fd)
            raise JournalBusyError(f"another engine writes {self._path}") from None
        except OSError:
            os.close(fd)
            raise
        self._fd = fd
        return fd

    def _write_pending(self) -> None:
        data = memoryview(b"".join(p.line for p in self._pending))
        written = 0
        try:
            fd = self._open() if self._fd is None else self._fd
            if self._torn:
                os.ftruncate(fd, self._size)
                self._torn = False
            while written < len(data):
                written += os.write(fd, data[written:])
        except OSError as err:
            self._fail(err)
        else:
            self.problem = None
        self._forget(written)

    def _forget(self, written: int) -> None:
        """Remove the lines that are in the file. A partial line is cut off again, so that the file ends with a complete
        one."""
        while self._pending and len(self._pending[0].line) <= written:
            length = len(self._pending.popleft().line)
            written -= length
            self._size += length
            self._pending_bytes -= length
        if written and self._fd is not None:
            self._torn = True
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, self._size)
                self._torn = False

    def _fail(self, err: OSError) -> None:
        self.problem = (
            f"the journal cannot be written ({err.strerror}): {self._path}; the build goes on and its records wait "
            "in memory; free some space"
        )

    def _drop(self, limit: int) -> None:
        """Reduce to `limit` bytes: drop the oldest samples first, then other events, never the build's start and
        end."""
        for rank in (0, 1):
            kept: deque[_Pending] = deque()
            for pending in self._pending:
                if pending.rank <= rank and self._pending_bytes > limit:
                    self._pending_bytes -= len(pending.line)
                    self.dropped += 1
                else:
                    kept.append(pending)
            self._pending = kept

    def _sync(self) -> None:
        """Sync in a separate thread: on a busy disk it takes seconds, and the engine must continue."""
        if self._fd is None or (self._syncing is not None and self._syncing.is_alive()):
            return
        self._last_sync = self._clock()
        with contextlib.suppress(OSError):  # no descriptor left: it stays due
            fd = os.dup(self._fd)
            thread = threading.Thread(target=_sync_and_close, args=(fd,), daemon=True)
            try:
                thread.start()
            except RuntimeError:  # no thread could be started: a limit of processes counts them too
                os.close(fd)
            else:
                self._syncing, self._sync_due = thread, False


def _lock(fd: int) -> None:
    """Raises BlockingIOError while another writer lives. If the disk cannot lock (Lustre without -o flock, NFS without
    its lock service) a journal is written anyway: a supervisor has one engine at a time."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        return


def _sync_and_close(fd: int) -> None:
    # A disk that fails here fails the next write too, and that is reported.
    with contextlib.suppress(OSError):
        os.fdatasync(fd)
    os.close(fd)


def _complete_size(fd: int) -> int:
    """Return the bytes up to and including the last newline: a crash left a partial line after it."""
    end = os.fstat(fd).st_size
    while end > 0:
        start = max(0, end - _BLOCK)
        found = os.pread(fd, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0
