"""The SQLite file of the history: opened by many processes at once, moved aside when it is damaged.

Handles connections, locks and the schema. Unaware of what the rows mean.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import stat
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from stoker.config.paths import private_dir

APPLICATION_ID = 0x53746F6B
"""Marks this file as ours ("Stok"; file(1) shows it)."""

FORM = 1
"""Version of the schema; a file of a later version is left alone."""

_TABLE = """
CREATE TABLE job (
  tool TEXT NOT NULL, output TEXT NOT NULL, flags TEXT NOT NULL,
  points TEXT NOT NULL, runs INTEGER NOT NULL,
  log_peak REAL NOT NULL, peak_variance REAL NOT NULL,
  log_seconds REAL NOT NULL, seconds_variance REAL NOT NULL,
  used REAL NOT NULL,
  PRIMARY KEY (tool, output, flags)
) WITHOUT ROWID
"""

WRITE_PATIENCE = 5.0
"""Seconds that a writer waits for other builds' writers; each locks the file for milliseconds."""

READ_PATIENCE = 0.02
"""The same for a reader, which the loop waits for. Readers wait only while a file is being created."""

LOCK_PATIENCE = 2.0
"""Seconds to wait for another process that creates the file or moves it aside, before continuing without the lock."""

_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


class UnusableError(Exception):
    """The file cannot be used, and should be left as it is; the message says why."""


class ForeignError(Exception):
    """The file is a database of something else."""


def is_damage(err: Exception) -> bool:
    """Say whether an error means that the file's contents cannot be trusted."""
    return isinstance(err, ForeignError) or _code(err) in _DAMAGE


def is_busy(err: Exception) -> bool:
    """Say whether an error means that others are writing, and a retry will succeed."""
    return _code(err) in _BUSY


def _code(err: Exception) -> int:
    return (getattr(err, "sqlite_errorcode", None) or 0) & 0xFF


class HistoryFile:
    """One connection to read, used where time matters, and one to write, which may be used in a thread."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._reading = threading.Lock()
        self._writing = threading.Lock()
        self._reader: sqlite3.Connection | None = None
        self._writer: sqlite3.Connection | None = None
        self._opened: tuple[int, int] | None = None

    @property
    def aside(self) -> Path:
        """Where a damaged file goes; it replaces an earlier one."""
        return self.path.with_name(f"{self.path.name}.damaged")

    @property
    def usable(self) -> bool:
        """Whether the file is open."""
        return self._writer is not None

    def open(self) -> None:
        """Open the file; create it if necessary.

        Raises UnusableError, ForeignError, UnsafeFolderError (config.paths), OSError or sqlite3.Error.
        """
        private_dir(self.path.parent)
        with self._reading, self._writing, _locked(self.path.parent):
            self._open()

    def ask(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query; none if the file is not open. Raises sqlite3.Error."""
        with self._reading:
            return [] if self._reader is None else self._reader.execute(sql, values).fetchall()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Run a transaction, alone among writers. Raises UnusableError if the file is not open, and sqlite3.Error."""
        with self._writing:
            if self._writer is None:
                raise UnusableError(f"{self.path} is not open")
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
            except BaseException:
                with suppress(sqlite3.Error):
                    self._writer.execute("ROLLBACK")
                raise
            self._writer.execute("COMMIT")

    def renew(self) -> Path | None:
        """Move a damaged file aside and open a new one; return where the old one is now, None if another process did
        it.

        Raises like `open`.
        """
        with self._reading, self._writing, _locked(self.path.parent):
            self._close()
            aside = self._set_aside()
            self._open()
        return aside

    def shrink(self) -> None:
        """Return the space of deleted rows to the disk, if nobody else uses the file now."""
        with self._writing:
            if self._writer is not None:
                with suppress(sqlite3.OperationalError):
                    self._writer.execute("VACUUM")
                    self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close the file."""
        with self._reading, self._writing:
            self._close()

    def _open(self) -> None:
        self._make()
        info = self.path.stat()
        if not stat.S_ISREG(info.st_mode):
            raise UnusableError(f"{self.path} is not a regular file")
        self._opened = info.st_dev, info.st_ino
        writer = _connect(self.path, WRITE_PATIENCE)
        try:
            _prepare(writer, self.path)
            self._reader = _connect(self.path, READ_PATIENCE)
        except BaseException:
            writer.close()
            raise
        self._writer = writer

    def _make(self) -> None:
        """Create an empty file that nobody else can read: SQLite gives its side files the same mode."""
        with suppress(FileExistsError):
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))

    def _close(self) -> None:
        for connection in (self._reader, self._writer):
            if connection is not None:
                with suppress(sqlite3.Error):
                    connection.close()
        self._reader = self._writer = None

    def _set_aside(self) -> Path | None:
        """Move it together with its write-ahead log, which would be taken for the new file's."""
        info = self.path.stat()
        if (info.st_dev, info.st_ino) != self._opened:
            return None
        self.path.rename(self.aside)
        for suffix in ("-wal", "-shm", "-journal"):
            self.path.with_name(f"{self.path.name}{suffix}").unlink(missing_ok=True)
        return self.aside


def _connect(path: Path, patience: float) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=patience, isolation_level=None, check_same_thread=False
    )
    connection.text_factory = _text
    connection.execute("PRAGMA trusted_schema = OFF")  # A schema is content too, and may be malicious.
    connection.execute("PRAGMA cache_size = -512")  # KiB; lookups are spread all over the file.
    return connection


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Initialise an empty file; refuse one that is not ours."""
    form, owner, parts = (
        connection.execute(question).fetchone()[0]
        for question in ("PRAGMA user_version", "PRAGMA application_id", "SELECT count(*) FROM sqlite_schema")
    )
    if owner == APPLICATION_ID and form > FORM:
        raise UnusableError(f"{path} was written by a later stoker")
    if parts and (owner, form) != (APPLICATION_ID, FORM):
        raise ForeignError(f"{path} is a database of something else")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")  # A power failure may lose the last runs, but never the file.
    connection.execute("PRAGMA journal_size_limit = 4194304")
    connection.execute("BEGIN IMMEDIATE")  # Fails now, not at the first write, if writing is forbidden.
    if not parts:
        connection.execute(_TABLE)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {FORM}")
    connection.execute("COMMIT")


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One process at a time creates the file or moves it aside. If locks do not work, or one hangs, all continue."""
    fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
    try:
        deadline = time.monotonic() + LOCK_PATIENCE
        while not _lock(fd) and time.monotonic() < deadline:
            time.sleep(0.01)
        yield
    finally:
        os.close(fd)


def _lock(fd: int) -> bool:
    """Say whether there is nothing to wait for: the lock is ours, or this file system has none."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True
