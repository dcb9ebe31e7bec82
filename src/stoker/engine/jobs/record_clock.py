"""Determines when a record of ninja's log happened, and so which job it may belong to if no name says it.

Ninja's milliseconds count from a moment that it does not record; jobs matched with their records by name reveal it. The
clock restarts when ninja has regenerated its own manifest. Before any match is known, a record's length and the time of
its output must do. Pure: unaware of processes and files.
"""

from __future__ import annotations

from stoker.sense.ninja.build_files import is_manifest
from stoker.sense.ninja.build_log import CLOCK_SLACK, Entry

SAME_SECONDS = 0.5
"""Two times of one event differ by less, in the process table and in a ninja that may wait for a core."""

LATE_SECONDS = 2.0
"""How much later than its end a job's end may be noticed, here or by ninja, on a busy machine."""

STALLED_SECONDS = 5.0
"""The same differences on a machine that stalls. Only for a ninja that has recorded everything: then a job without a
record is more likely late than lost."""

LONGER = 0.1
"""The share of a job's length by which two measurements of it may differ in addition."""


class RecordClock:
    """The clock of one ninja, as its records arrive in order."""

    def __init__(self, ninja_started: float, manifest: str) -> None:
        """`ninja_started` is in Unix seconds."""
        self._ninja_started = ninja_started
        self._manifest = manifest
        self._zero: float | None = None
        self._last_end = 0

    def pass_record(self, entry: Entry) -> None:
        """Take the next record; questions from now on are about it."""
        if entry.end_ms < self._last_end:
            self._zero = None
        self._last_end = entry.end_ms

    def pair(self, entry: Entry, started: float) -> None:
        """This record certainly belongs to a job that started at that Unix time."""
        if entry.end_ms:
            self._zero = started - entry.start_ms / 1000

    def leave_record(self, entry: Entry) -> None:
        """The record has been processed."""
        if is_manifest(entry.output, self._manifest):
            self._zero, self._last_end = None, 0

    def misfit(
        self, entry: Entry, started: float, last_seen: float, noticed: float, *, stalled: bool = False
    ) -> float | None:
        """Return how badly a job fits that began at `started` and ended between `last_seen` and `noticed` (Unix
        seconds); `stalled` allows for a machine that stood still in between.

        None: the record is not this job's. If no engine ran for a while, the two are far apart.
        """
        same, late = (STALLED_SECONDS, STALLED_SECONDS) if stalled else (SAME_SECONDS, LATE_SECONDS)
        shortest, longest = last_seen - started, noticed - started
        length = max(0.0, shortest - entry.seconds, entry.seconds - longest)
        if entry.end_ms and self._zero is not None:
            apart = abs(self._zero + entry.start_ms / 1000 - started)
            return apart + length if apart < same else None
        made = entry.mtime / 1e9
        is_new = made >= self._ninja_started - CLOCK_SLACK
        if is_new and not started - same < made < noticed + same:
            return None
        if not entry.end_ms:  # samurai records no times except that of the file
            return max(0.0, last_seen - made, made - noticed)
        most = late if is_new else same
        return length if length < most + LONGER * entry.seconds else None
