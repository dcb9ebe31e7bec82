"""When a record of ninja's log happened, and so which job it may be of where no name says it.

Ninja's milliseconds count from a moment that it keeps to itself: jobs that a name pairs with their records show it. It
begins anew when ninja has renewed its own manifest. Before any pair is known, a record's length and the time of what it
made have to do. Pure: unaware of processes and files.
"""

from __future__ import annotations

from stoker.sense.ninja.build_files import is_manifest
from stoker.sense.ninja.build_log import CLOCK_SLACK, Entry

SAME_SECONDS = 0.5
"""Two times of one event differ by less, as the process table and a ninja that may wait for a core have them."""

LATE_SECONDS = 2.0
"""By how much later than its end a job's end may be noticed, here or by ninja, on a busy machine."""

LONGER = 0.1
"""The share of a job's length by which two measurements of it may differ on top of that."""


class RecordClock:
    """The clock of one ninja, as its records come, in their order."""

    def __init__(self, ninja_started: float, manifest: str) -> None:
        """`ninja_started` is in Unix seconds."""
        self._ninja_started = ninja_started
        self._manifest = manifest
        self._zero: float | None = None
        self._last_end = 0

    def pass_record(self, entry: Entry) -> None:
        """The next record; what is asked from now on is about it."""
        if entry.end_ms < self._last_end:
            self._zero = None
        self._last_end = entry.end_ms

    def pair(self, entry: Entry, started: float) -> None:
        """This record is surely that of a job which started at that Unix time."""
        if entry.end_ms:
            self._zero = started - entry.start_ms / 1000

    def leave_record(self, entry: Entry) -> None:
        """The record has been dealt with."""
        if is_manifest(entry.output, self._manifest):
            self._zero, self._last_end = None, 0

    def misfit(self, entry: Entry, started: float, last_seen: float, noticed: float) -> float | None:
        """How badly a job fits that began at `started` and ended between `last_seen` and `noticed` (Unix seconds).

        None: the record is not this job's. Where no engine looked for a while, the two are far apart.
        """
        shortest, longest = last_seen - started, noticed - started
        length = max(0.0, shortest - entry.seconds, entry.seconds - longest)
        if entry.end_ms and self._zero is not None:
            apart = abs(self._zero + entry.start_ms / 1000 - started)
            return apart + length if apart < SAME_SECONDS else None
        made = entry.mtime / 1e9
        is_new = made >= self._ninja_started - CLOCK_SLACK
        if is_new and not started - SAME_SECONDS < made < noticed + SAME_SECONDS:
            return None
        if not entry.end_ms:  # samurai keeps no times but that of the file
            return max(0.0, last_seen - made, made - noticed)
        most = LATE_SECONDS if is_new else SAME_SECONDS
        return length if length < most + LONGER * entry.seconds else None
