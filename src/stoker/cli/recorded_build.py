"""Reads a build, or a journal, for the commands that report on it. Shows progress if that takes a while."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from stoker.cli.errors import FAILURE, CliError
from stoker.cli.which_build import find
from stoker.config.paths import BuildPaths
from stoker.model.text import clean
from stoker.model.tool import COMPILERS
from stoker.record.builds import final_state
from stoker.record.compiler_traces import compiler_trace
from stoker.record.journal_reader import JournalReader, may_be_journal
from stoker.record.whole_file import whole_file
from stoker.report.paper import NothingRanError, PaperBuild, on_paper
from stoker.report.recorded import RecordedBuild, Recorder
from stoker.report.time_traces import TimeTrace, time_trace

PATIENCE = 2.0
"""Seconds after which a person wants to know how far it is."""

RECORDS_BETWEEN = 200
"""Records that are read between two looks at the clock: 20 ms."""


def load(wanted: str | None) -> RecordedBuild:
    """Return the build that an ID, a name or a journal's path means. Raises CliError, or JournalError."""
    path = Path(wanted) if wanted else None
    paths = None if path is not None and path.is_file() else find(wanted, or_file=True)
    journal = paths.journal if paths is not None else path
    assert journal is not None  # noqa: S101  (`find` raises where there is none)
    with progress(f"reading {journal}") as far:
        return read_build(journal, paths, far)


def read_build(journal: Path, paths: BuildPaths | None, far: Callable[[float], None]) -> RecordedBuild:
    """Return the build that a journal holds, with what the files of its folder know beside. Raises as `load` does."""
    reader = JournalReader(journal, follow_links=paths is None)
    recorder = Recorder()
    size = max(1, journal.stat().st_size)
    for count, record in enumerate(reader):
        recorder.hear(record)
        if count % RECORDS_BETWEEN == 0:
            far(reader.offset / size)
    if not recorder.state.id:
        if not may_be_journal(journal):
            raise CliError(f"{journal} is not a journal; 'stoker ls' shows the builds", FAILURE)
        raise CliError(f"{journal} holds no build yet; try again when it has begun", FAILURE)
    return recorder.value(final_state(paths) if paths is not None else None)


def time_traces(build: RecordedBuild) -> Iterator[TimeTrace]:
    """Yield what compilers have written of their own time beside what they made."""
    with progress("reading compilers' traces") as far:
        yield from read_traces(build, far)


def read_traces(build: RecordedBuild, far: Callable[[float], None]) -> Iterator[TimeTrace]:
    """Yield the same; `far` hears how far it is."""
    folders = {s.sid: s.directory for s in build.schedulers}
    jobs = [job for job in build.jobs if job.tool in COMPILERS and job.began is not None and job.sid in folders]
    for number, job in enumerate(jobs):
        data = compiler_trace(folders[job.sid], job.output, job.began or job.born)
        found = time_trace(job, data) if data is not None else None
        if found is not None:
            yield found
        far(number / len(jobs))


def paper_of(build: RecordedBuild) -> PaperBuild:
    """Return the build on paper. Raises CliError."""
    try:
        return on_paper(build)
    except NothingRanError as err:
        raise CliError(str(err), FAILURE) from err


class FarMeter:
    """Says on a terminal's stderr how far something is, once it has taken a while."""

    def __init__(self, what: str) -> None:
        self._what = clean(what)
        self._next = time.monotonic() + PATIENCE
        self._said = False

    def __call__(self, share: float) -> None:
        """It is that far, from 0 to 1."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + PATIENCE / 4
        if sys.stderr.isatty():
            print(f"\rstoker: {self._what}, {100 * share:.0f} %", end="", file=sys.stderr, flush=True)
        elif not self._said:
            print(f"stoker: {self._what} …", file=sys.stderr, flush=True)
        self._said = True

    def end(self) -> None:
        """It is done: take the line away."""
        if self._said and sys.stderr.isatty():
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


@contextmanager
def progress(what: str) -> Iterator[FarMeter]:
    """Give a meter to call with how far it is."""
    meter = FarMeter(what)
    try:
        yield meter
    finally:
        meter.end()


def part_of(far: Callable[[float], None], number: int, parts: int) -> Callable[[float], None]:
    """Return what is called with how far one of several equal parts is, and calls `far` with how far all is."""
    return lambda share: far((number + share) / parts)


def write_out(parts: Iterable[str], path: Path | None) -> None:
    """Write text to a file, which is there whole or not at all, or to stdout. Raises CliError."""
    if path is None:
        for part in parts:
            sys.stdout.write(part)
        return
    try:
        with whole_file(path) as out:
            out.writelines(parts)
    except OSError as err:
        raise CliError(f"cannot write {path}: {err.strerror}", FAILURE) from err
