"""Recorded builds for the screens that list and compare them: read from their files, in slices of bounded time."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path

from stoker.cli.errors import CliError
from stoker.cli.recorded_build import part_of, read_build, read_traces
from stoker.config.paths import BuildPaths, builds_dir
from stoker.record.builds import BuildSummary, NoSuchBuildError, final_state, list_builds, resolve
from stoker.record.journal_error import JournalError
from stoker.report.arch_costs import arch_costs
from stoker.report.comparison import USUAL_CHANGE, Comparison, UnfitError, check_side, compare
from stoker.report.recorded import RecordedBuild
from stoker.report.summary import Brief, brief
from stoker.report.time_traces import arch_seconds
from stoker.report.trends import TrendLine, line_of, with_shares
from stoker.show.build_library import Far, HistoryList, LibraryError

SLICE = 0.3
"""Seconds of reading after which what is known is shown."""

LISTED_SECONDS = 2.0
"""For how long a list of builds is not read again: for hundreds that takes longer than to read one journal."""

READING = 0.95
"""Share of the whole for which a journal is read; the rest goes to what compilers wrote."""


class RecordedLibrary:
    """The builds of this user, and journals from anywhere."""

    def __init__(self) -> None:
        self._ended: dict[str, TrendLine] = {}
        self._live: dict[str, TrendLine] = {}
        self._builds: list[BuildSummary] = []
        self._listed = -math.inf

    def history(self, *, everywhere: bool) -> HistoryList:
        """Return the builds of the working folder, or of all; the newest are read first, and one at least."""
        here = "" if everywhere else str(Path.cwd())
        if time.monotonic() > self._listed + LISTED_SECONDS:
            self._builds = list_builds()
            self._listed = time.monotonic()
        builds = [build for build in self._builds if everywhere or build.cwd == here]
        until = time.monotonic() + SLICE
        unread = [b for b in builds if b.id not in self._ended and b.id not in self._live]
        again = [b for b in builds if b.id in self._live]
        for number, build in enumerate([*unread, *again]):
            if number and time.monotonic() > until:
                break
            self._read(build)
        lines = [self._ended.get(b.id) or self._live.get(b.id) or _at_a_glance(b) for b in builds]
        left = sum(b.id not in self._ended and b.id not in self._live for b in builds)
        # Held against a part of those before it, a build would look slower or faster than it was.
        ordered = sorted(lines, key=lambda line: line.started) if left else with_shares(lines)
        return HistoryList(tuple(ordered), here, left)

    def _read(self, build: BuildSummary) -> None:
        """Note a build's figures: for good once it has ended, or cannot be read."""
        folder = builds_dir() / build.id
        try:
            state = final_state(BuildPaths(folder))
        except (JournalError, OSError) as err:
            self._ended[build.id] = _at_a_glance(build, fault=str(err).replace(f"{folder}/", ""))
            return
        line = line_of(state)
        self._live.pop(build.id, None)
        (self._ended if state.over else self._live)[build.id] = line

    def brief(self, build: str, far: Far) -> Brief:
        """Return a build in brief. Raises LibraryError."""
        found = self._load(build, lambda share: far(READING * share))
        traces = read_traces(found, lambda share: far(READING + (1 - READING) * share))
        return brief(found, arch_costs(found, arch_seconds(traces)))

    def comparison(self, before: Sequence[str], after: Sequence[str], far: Far) -> Comparison:
        """Hold the runs of one side against those of another. Raises LibraryError."""
        count = len(before) + len(after)
        parts = [self._load(name, part_of(far, number, count)) for number, name in enumerate([*before, *after])]
        sides = parts[: len(before)], parts[len(before) :]
        try:
            for side in sides:
                check_side(side)
        except UnfitError as err:
            raise LibraryError(str(err)) from err
        return compare(*sides, USUAL_CHANGE)

    def _load(self, name: str, far: Far) -> RecordedBuild:
        """Return the build that a journal's path or an ID means."""
        try:
            if Path(name).is_file():
                return read_build(Path(name), None, far)
            paths = resolve(name)
            return read_build(paths.journal, paths, far)
        except (CliError, NoSuchBuildError, JournalError) as err:
            raise LibraryError(str(err)) from err
        except OSError as err:
            raise LibraryError(f"cannot read {name}: {err.strerror}") from err


def _at_a_glance(build: BuildSummary, fault: str = "") -> TrendLine:
    """What is known of a build before its journal has been read, or where it cannot be."""
    ended = build.ended or (time.time() if build.live else build.started)
    outcome = "unreadable" if fault else build.phase
    return TrendLine(
        build.id,
        build.name,
        build.command,
        build.started,
        outcome,
        max(0.0, ended - build.started),
        None,
        None,
        None,
        cwd=build.cwd,
        fault=fault,
    )
