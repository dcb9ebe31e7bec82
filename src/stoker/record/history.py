"""What jobs took in earlier builds: one SQLite file that all builds of a user share.

No problem with the file can harm a build: a damaged one is moved aside, an unusable one is ignored, and one message
says so. Unaware of what is predicted from it.
"""

from __future__ import annotations

import hashlib
import json
import math
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from stoker.config.paths import UnsafeFolderError
from stoker.model.lessons import Remembered
from stoker.record.history_file import ForeignError, HistoryFile, UnusableError, is_busy, is_damage

MAX_ROWS = 50_000
"""Jobs remembered; those that were not seen for longest are deleted. PyTorch has 8,000, a row takes about 400 bytes."""

PRUNED_ROWS = 47_500
"""Jobs left after a cleanup, so that not every flush has to search for the oldest."""

MAX_VARIANTS = 8
"""Sets of flags remembered per output: a flag that changes with each build must not fill the file."""

MAX_POINTS = 16
"""Points of a curve that are kept."""

MAX_ALIKE = 64
"""Jobs with the same flags that are asked for."""

SEEN_POINTS = 4
"""A course of fewer points rests on one look at the job, or on none."""

MAX_PENDING = 10_000
"""Runs that wait while the file cannot be written; beyond that the oldest are dropped."""

MAX_NAME = 512
"""Characters kept of an output's name; in a longer one a digest replaces the rest."""

RECENT = 0.3
"""Weight of the latest run in the means, after the first few: half of the result comes from the last two runs."""

SIZES, SECONDS = (1.0, 2.0**60), (0.001, 1e9)
"""Plausible peaks in bytes and lives in CPU seconds."""

Course = Sequence[tuple[float, float, str]]
"""(CPU seconds, bytes, compiler pass), in the order of time."""

_Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class KnownJob:
    """One remembered job: its mean peak in bytes, its mean life in CPU seconds, when it last ran (Unix seconds).

    `runs` counts those that were measured; with none, the peak is what it can have held at most."""

    output: str
    tool: str
    peak: float
    seconds: float
    runs: int
    used: float


@dataclass(frozen=True, slots=True)
class Known:
    """The contents of a history: how many jobs and runs, the jobs by tool, and the heaviest by peak."""

    jobs: int = 0
    runs: int = 0
    tools: tuple[tuple[str, int], ...] = ()
    heaviest: tuple[KnownJob, ...] = ()


@dataclass(frozen=True, slots=True)
class _Run:
    """One run, ready to be written."""

    tool: str
    output: str
    flags: str
    points: str
    log_peak: float
    log_seconds: float
    bound: bool = False


class History:
    """Runs by tool, output and flags. `find` answers at once; `add` waits for `flush`, which may run in a thread.

    Opens the file, and creates it if necessary. Any number of processes may use one file at a time. No method raises
    for a problem with the file: `take_notes` reports it.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self._file = HistoryFile(path)
        self._clock = clock
        self._pending: deque[_Run] = deque(maxlen=MAX_PENDING)
        self._flushing = threading.Lock()
        self._damaged = False
        self._rows: int | None = None
        self._notes: deque[str] = deque()
        self._said: set[str] = set()
        self._begin(self._file.open)
        if self._damaged:
            self._renew()

    @property
    def path(self) -> Path:
        """Where the file is, or would be."""
        return self._file.path

    @property
    def pending(self) -> int:
        """Runs that were added and are not written yet."""
        return len(self._pending)

    def take_notes(self) -> list[str]:
        """Messages for the user since the last call, each only once."""
        return [self._notes.popleft() for _ in range(len(self._notes))]

    def find(self, tool: str, output: str, flags: str) -> Remembered | None:
        """Return what is known about a job: with these flags, otherwise with those that it last had. None if nothing
        is."""
        rows = self._ask(
            "SELECT points, runs, log_peak, peak_variance, log_seconds, seconds_variance, flags = ? FROM job"
            " WHERE tool = ? AND output = ? ORDER BY flags = ? DESC, used DESC LIMIT 1",
            (flags, tool, _name(output), flags),
        )
        return _remembered(rows[0]) if rows else None

    def add(self, tool: str, output: str, flags: str, points: Course, *, bound: bool = False) -> None:
        """A job succeeded and took this; it is written at the next `flush`. `bound`: it took no more than this, which
        counts only if it is less than what is known, or nothing is.

        Raises ValueError for no points, for more than MAX_POINTS, and for times out of order. Ignores a run with
        implausible figures.
        """
        if not 0 < len(points) <= MAX_POINTS or any(b[0] < a[0] for a, b in pairwise(points)):
            raise ValueError(f"a course has 1 to {MAX_POINTS} points in the order of time")
        peak, seconds = max(p[1] for p in points), points[-1][0]
        if SIZES[0] <= peak <= SIZES[1] and SECONDS[0] <= seconds <= SECONDS[1]:
            course = [[round(age, 3), round(size), phase] for age, size, phase in points]
            text = json.dumps(course, separators=(",", ":"))
            self._pending.append(_Run(tool, _name(output), flags, text, math.log(peak), math.log(seconds), bound))

    def measured(self, tool: str, flags: str) -> list[Course]:
        """Return the courses of some jobs with these flags that were seen more than once each."""
        rows = self._ask(
            "SELECT points, runs, log_peak, peak_variance, log_seconds, seconds_variance, 1 FROM job"
            " WHERE tool = ? AND flags = ? AND runs > 0 LIMIT ?",
            (tool, flags, MAX_ALIKE),
        )
        return [job.points for job in map(_remembered, rows) if job is not None and len(job.points) >= SEEN_POINTS]

    def flush(self) -> None:
        """Write what was added, in one transaction. What cannot be written now waits for the next time."""
        with self._flushing:
            if self._damaged:
                self._renew()
            runs = [self._pending.popleft() for _ in range(len(self._pending))]
            if not runs or not self._file.usable:
                return
            try:
                self._write(runs)
            except (sqlite3.Error, UnusableError) as err:
                self._pending.extendleft(reversed(runs))
                self._fault(err)

    def known(self, heaviest: int = 20) -> Known:
        """Return a summary for the user."""
        totals = self._ask("SELECT count(*), coalesce(sum(runs), 0) FROM job")
        if not totals:
            return Known()
        tools = self._ask("SELECT tool, count(*) FROM job GROUP BY tool ORDER BY 2 DESC, 1")
        rows = self._ask(
            "SELECT output, tool, log_peak, log_seconds, runs, used FROM job ORDER BY log_peak DESC LIMIT ?",
            (heaviest,),
        )
        jobs = tuple(job for job in map(_known_job, rows) if job is not None)
        return Known(totals[0][0], totals[0][1], tuple((tool, count) for tool, count in tools), jobs)

    def forget(self) -> int:
        """Empty the file, and delete damaged ones; return how many jobs it held. Running builds start again from
        zero."""
        self._pending.clear()
        try:
            with self._file.transaction() as connection:
                count = connection.execute("DELETE FROM job").rowcount
        except (sqlite3.Error, UnusableError) as err:
            self._fault(err)
            return 0
        self._rows = None
        self._file.shrink()
        self._file.aside.unlink(missing_ok=True)
        return count

    def close(self) -> None:
        """Write what waits, and close the file."""
        self.flush()
        self._file.close()

    # -- writing -----------------------------------------------------------------------------------------------

    def _write(self, runs: Sequence[_Run]) -> None:
        now = self._clock()
        with self._file.transaction() as connection:
            new = sum(_merge(connection, run, now) for run in runs)
            if self._rows is None or self._rows + new > MAX_ROWS:
                self._rows = _prune(connection)
            else:
                self._rows += new

    # -- what can be wrong with the file -----------------------------------------------------------------------

    def _ask(self, question: str, values: Sequence[Any] = ()) -> list[_Row]:
        try:
            return self._file.ask(question, values)
        except sqlite3.Error as err:
            self._fault(err)
            return []

    def _begin(self, opening: Callable[[], object]) -> None:
        try:
            opening()
        except (sqlite3.Error, ForeignError) as err:
            self._fault(err)
        except (UnusableError, UnsafeFolderError, OSError) as err:
            self._say(f"the history of jobs is not used: {err}")

    def _renew(self) -> None:
        """Move the damaged file aside and start a new one."""
        self._damaged, self._rows = False, None

        def start_over() -> None:
            aside = self._file.renew()
            if aside is not None:
                self._say(f"the history of jobs was damaged and starts over; the old file is {aside}")

        self._begin(start_over)

    def _fault(self, err: Exception) -> None:
        """Leave damage to the next flush, which may take longer, and locks of others to the next try."""
        if is_damage(err):
            self._damaged = True
        elif not is_busy(err):
            self._say(f"the history of jobs cannot be saved: {err} ({self._file.path})")

    def _say(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self._notes.append(text)


def _merge(connection: sqlite3.Connection, run: _Run, now: float) -> bool:
    """Move the means towards a run; return whether the job was new."""
    key = (run.tool, run.output, run.flags)
    row = connection.execute(
        "SELECT runs, log_peak, peak_variance, log_seconds, seconds_variance FROM job"
        " WHERE tool = ? AND output = ? AND flags = ?",
        key,
    ).fetchone()
    if row and run.bound and run.log_peak >= row[1]:
        connection.execute("UPDATE job SET used = ? WHERE tool = ? AND output = ? AND flags = ?", (now, *key))
        return False
    measured = row[0] if row else 0
    runs = measured + 1 if measured or not run.bound else 0
    # A measurement, or a lower bound, replaces a bound.
    peak = _drawn(row[1], row[2], run.log_peak, runs) if measured else (run.log_peak, 0.0)
    seconds = _drawn(row[3], row[4], run.log_seconds, runs) if measured else (run.log_seconds, 0.0)
    connection.execute(
        "INSERT OR REPLACE INTO job VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*key, run.points, runs, *peak, *seconds, now),
    )
    if row is None:
        connection.execute(
            "DELETE FROM job WHERE tool = ?1 AND output = ?2 AND flags IN (SELECT flags FROM job"
            " WHERE tool = ?1 AND output = ?2 ORDER BY flags = ?3 DESC, used DESC LIMIT -1 OFFSET ?4)",
            (*key, MAX_VARIANTS),
        )
    return row is None


def _drawn(mean: float, variance: float, value: float, runs: int) -> tuple[float, float]:
    """Return mean and variance with one more value: at first all have the same weight, later the latest has RECENT."""
    weight = max(1 / runs, RECENT)
    step = value - mean
    return mean + weight * step, (1 - weight) * (variance + weight * step * step)


def _prune(connection: sqlite3.Connection) -> int:
    """If there are too many jobs, delete those that were not seen for longest; return how many are left."""
    count = int(connection.execute("SELECT count(*) FROM job").fetchone()[0])
    if count <= MAX_ROWS:
        return count
    connection.execute(
        "DELETE FROM job WHERE (tool, output, flags) IN (SELECT tool, output, flags FROM job ORDER BY used LIMIT ?)",
        (count - PRUNED_ROWS,),
    )
    return PRUNED_ROWS


def _name(output: str) -> str:
    """Return the output as it is stored: text that SQLite accepts, of bounded length."""
    name = output.encode("utf-8", "backslashreplace").decode()
    if len(name) <= MAX_NAME:
        return name
    digest = hashlib.blake2b(name.encode(), digest_size=16).hexdigest()
    return f"{name[: MAX_NAME - len(digest) - 1]} {digest}"


def _remembered(row: _Row) -> Remembered | None:
    """Return the contents of a row; None if it is not what was written."""
    text, runs, log_peak, peak_variance, log_seconds, seconds_variance, same = row
    try:
        points = tuple((float(age), float(size), str(phase)) for age, size, phase in json.loads(text))
        figures = (float(log_peak), float(peak_variance), float(log_seconds), float(seconds_variance))
        known = Remembered(points, int(runs), *figures, bool(same))
    except (TypeError, ValueError, RecursionError):
        return None
    return known if _plausible(known) else None


def _known_job(row: _Row) -> KnownJob | None:
    output, tool, log_peak, log_seconds, runs, used = row
    try:
        return KnownJob(str(output), str(tool), math.exp(log_peak), math.exp(log_seconds), int(runs), float(used))
    except (TypeError, ValueError, OverflowError):
        return None


def _plausible(known: Remembered) -> bool:
    points = known.points
    if not 0 < len(points) <= MAX_POINTS or any(b[0] < a[0] for a, b in pairwise(points)):
        return False
    return (
        points[0][0] >= 0
        and SECONDS[0] <= points[-1][0] <= SECONDS[1]
        and min(p[1] for p in points) >= 0
        and SIZES[0] <= max(p[1] for p in points) <= SIZES[1]
        and all(math.isfinite(value) for point in points for value in point[:2])
        and math.log(SIZES[0]) <= known.log_peak <= math.log(SIZES[1])
        and math.log(SECONDS[0]) <= known.log_seconds <= math.log(SECONDS[1])
        and 0 <= known.peak_variance < math.inf
        and 0 <= known.seconds_variance < math.inf
        and known.runs >= 0
    )
