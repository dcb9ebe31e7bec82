"""The registry of builds: which exist, which of them are running, and how each ended.

Unaware of engines' sockets and of screens. A build is a folder below `config.paths.builds_dir()`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from stoker.config.paths import BuildPaths, builds_dir
from stoker.config.regular import open_regular
from stoker.contract.spec_file import BuildSpec
from stoker.contract.strict_json import load_or_none
from stoker.contract.supervisor_files import ExitRecord, SupervisorRecord
from stoker.model.codec import CodecError, decode_record
from stoker.model.events import BuildEnded, BuildStarted, Outcome, Record, StepStarted, StopRequested
from stoker.model.progress import frozen_by_person, progress_of, stalled_by
from stoker.model.reduce import reduce
from stoker.model.state import BuildState, Phase
from stoker.model.status import time_left
from stoker.record.folders import MAX_BUILDS, build_folders, is_own_folder, runs
from stoker.record.in_words import in_words
from stoker.record.journal_error import JournalError
from stoker.record.journal_reader import load_state
from stoker.record.jsonlines import BadLineError, parse_line

LOST_REASON = "the machine or the supervisor went down; the exit status is lost"

_MAX_FIRST_LINE = 16 * 2**20
"""A command may have megabytes (see journal_reader.MAX_LINE)."""

_HEAD_BYTES = 1 << 13
_TAIL_BYTES = 1 << 16
_MAX_CANDIDATES = 5
_CANDIDATE = 60
"""Candidates named in an error, and characters of each one's command and folder: it must stay one line."""


class NoSuchBuildError(Exception):
    """No build, or no single one, matches; the message is one line with the remedy."""


class AmbiguousBuildError(NoSuchBuildError):
    """Several builds match; the message names some."""


@dataclass(frozen=True, slots=True)
class BuildSummary:
    """One line of `stoker ls`. Times are Unix seconds; `ended` and `exit_code` are None if unknown."""

    id: str
    name: str
    command: tuple[str, ...]
    cwd: str
    phase: Phase
    started: float
    ended: float | None
    exit_code: int | None
    live: bool
    left: float | None = None
    """Seconds, if `builds_with_estimates` knows them."""
    share: float | None = None
    """The share of its jobs that are done (0..1), if `builds_with_estimates` knows it."""
    elsewhere: str = ""
    """The machine's name in the PID namespace that it runs in, if that is not ours: usually a container's ID."""
    stalled: bool = False
    """Whether nothing runs because of jobs that a person froze, if `builds_with_estimates` knows it."""

    @property
    def short_id(self) -> str:
        """The end of its ID, which identifies it on the command line too."""
        return self.id.rpartition("-")[2]


@dataclass(frozen=True, slots=True)
class _Glance:
    """What the first and the last lines of a journal show."""

    begun: Record | None = None
    stepping: bool = False
    stopping: bool = False
    last_time: float | None = None
    end: Record | None = None


def list_builds() -> list[BuildSummary]:
    """Return all builds, newest first. Reads only the beginning and the end of each journal."""
    return _newest_first(map(_summary, build_folders()))


def live_builds() -> list[BuildSummary]:
    """Return those that are running, newest first. Of the others it reads only the supervisor's file."""
    return _newest_first(build for build in map(_summary, filter(runs, build_folders())) if build.live)


def _newest_first(summaries: Iterable[BuildSummary]) -> list[BuildSummary]:
    return sorted(summaries, key=lambda s: (s.started, s.id), reverse=True)


def builds_with_estimates() -> list[BuildSummary]:
    """Return all builds, running ones first, with what may be anywhere in their journals: whether they are paused, and
    the time left."""
    builds = [_by_journal(build) if build.live else build for build in list_builds()]
    return sorted(builds, key=lambda build: not build.live)


def _by_journal(build: BuildSummary) -> BuildSummary:
    try:
        state = final_state(BuildPaths(builds_dir() / build.id))
    except JournalError:
        return build
    stalled = bool(stalled_by(state))
    left = None if frozen_by_person(state) else time_left(state, time.time())
    if state.over:
        return replace(build, phase=state.phase, left=None)
    share = progress_of(state).share
    return replace(build, phase=state.phase, left=left and left[0], share=share, stalled=stalled)


def what_and_where(build: BuildSummary, width: int) -> str:
    """Return its command and folder in at most `width` characters."""
    return in_words(build.command, build.cwd, width)


def resolve(wanted: str | None, live_only: bool = False) -> BuildPaths:
    """Find a build by its ID, the end of its ID, its name, or a prefix of these; raises NoSuchBuildError.

    If several match, the running one counts. If none is running: without a word, or by its exact name, the newest.
    Without a word a build of the working folder takes precedence.
    """
    builds = list_builds()
    found, exact = _matches(builds, wanted)
    if not found:
        if builds_dir().exists() and not is_own_folder(builds_dir()):
            raise NoSuchBuildError(
                f"the builds in {builds_dir()} belong to another user; run as that user, or set HOME"
            )
        if wanted is not None:
            raise NoSuchBuildError(no_build(wanted))
        raise NoSuchBuildError("there is no build yet; start one with: stoker run -- COMMAND")
    live = [b for b in found if b.live]
    if live_only and not live:
        raise NoSuchBuildError("no build is running" if wanted is None else f"build {found[0].id} is over")
    meant = live or found
    if wanted is None:
        meant = [b for b in meant if b.cwd == _working_folder()] or meant
    if len(meant) > 1 and (live or not exact):
        raise _ambiguous(wanted, meant)
    return BuildPaths(builds_dir() / meant[0].id)


def _working_folder() -> str:
    """Return the working folder; empty if that is gone."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def no_build(wanted: str) -> str:
    """Say that a word means no build."""
    return f"no build {wanted!r}; 'stoker ls' shows them"


def matching(builds: Sequence[BuildSummary], wanted: str) -> list[BuildSummary]:
    """Return the builds that a word may mean, by their ID, the end of it, their name, or a prefix of these."""
    return list(_matches(builds, wanted)[0])


def _matches(builds: Sequence[BuildSummary], wanted: str | None) -> tuple[Sequence[BuildSummary], bool]:
    """Return the matching builds, newest first, and whether more than a prefix matched."""
    if wanted is None:
        return builds, True
    by_id = [b for b in builds if b.id == wanted]
    by_name = [b for b in builds if b.name == wanted]
    if by_id or by_name or not wanted:
        return by_id or by_name, True
    if by_end := [b for b in builds if b.short_id == wanted]:
        return by_end, False
    return [b for b in builds if b.id.startswith(wanted) or b.name.startswith(wanted)], False


def _ambiguous(wanted: str | None, candidates: Sequence[BuildSummary]) -> AmbiguousBuildError:
    names = ", ".join(f"{b.id} ({what_and_where(b, _CANDIDATE)})" for b in candidates[:_MAX_CANDIDATES])
    more = len(candidates) - _MAX_CANDIDATES
    if more > 0:
        names += f" and {more} more"
    what = "several builds live" if wanted is None else f"{wanted!r} may mean several builds"
    return AmbiguousBuildError(f"{what}; name one of {names}")


def is_live(paths: BuildPaths) -> bool:
    """Say whether the supervisor or the build still runs, and the journal does not yet have the build's end."""
    return _glance(paths.journal).end is None and runs(paths)


def known_state(paths: BuildPaths) -> BuildState:
    """Return the state from the journal, or what the launcher knew before there was one. Raises JournalError."""
    state = load_state(paths.journal)
    return state if state.id else _state_without_journal(paths)


def final_state(paths: BuildPaths) -> BuildState:
    """Return the state of a build from its files. If nothing runs it any more, it gets its end, known or lost.

    Raises JournalError for a journal of another version.
    """
    # The order matters: what was running when we looked may have recorded its end before we read.
    running = runs(paths)
    state = known_state(paths)
    if state.over:
        return state
    if running:
        # The supervisor waits for the engine's last events: the last jobs to end may not be in the journal yet.
        return state
    event, at = _end(load_or_none(ExitRecord, paths.exit), state.time)
    return reduce(state, Record(state.seq + 1, at, event))


def prune_builds(max_builds: int = MAX_BUILDS) -> list[str]:
    """Delete the oldest builds beyond `max_builds`, never a running one; return the IDs of the deleted ones."""
    if len(build_folders()) <= max_builds:  # as before most builds, which need not wait until each has been read
        return []
    builds = list_builds()
    deleted: list[str] = []
    for build in reversed(builds):
        if len(builds) - len(deleted) <= max_builds:
            break
        paths = BuildPaths(builds_dir() / build.id)
        if build.live or is_live(paths):
            continue
        shutil.rmtree(paths.root, ignore_errors=True)
        with contextlib.suppress(OSError):
            paths.socket.unlink()
        deleted.append(build.id)
    return deleted


def _summary(paths: BuildPaths) -> BuildSummary:
    glance = _glance(paths.journal)
    begun = glance.begun.event if glance.begun is not None else None
    bare = _state_without_journal(paths)
    live = glance.end is None and runs(paths)
    end = glance.end
    if end is None and not live:
        event, at = _end(load_or_none(ExitRecord, paths.exit), glance.last_time or bare.started)
        end = Record(0, at, event)
    ended = end.event if end is not None else None
    return BuildSummary(
        id=paths.id,
        name=begun.name if isinstance(begun, BuildStarted) else bare.name,
        command=begun.command if isinstance(begun, BuildStarted) else bare.command,
        cwd=begun.cwd if isinstance(begun, BuildStarted) else bare.cwd,
        phase=ended.outcome if isinstance(ended, BuildEnded) else _live_phase(glance),
        started=glance.begun.time if glance.begun is not None else bare.started,
        ended=end.time if end is not None else None,
        exit_code=ended.exit_code if isinstance(ended, BuildEnded) else None,
        live=live,
        elsewhere=place_of(paths) if live else "",
    )


def place_of(paths: BuildPaths) -> str:
    """Return the name of the machine whose processes a build's pids are; empty if they are ours."""
    record = load_or_none(SupervisorRecord, paths.supervisor)
    return record.host or "another PID namespace" if record is not None and record.is_elsewhere else ""


def _live_phase(glance: _Glance) -> Phase:
    if glance.stopping:
        return "stopping"
    return "running" if glance.stepping else "starting"


def _end(ending: ExitRecord | None, last_time: float) -> tuple[BuildEnded, float]:
    """Return the end that the engine did not live to record, and its Unix time."""
    if ending is None:
        return BuildEnded("failed", None, LOST_REASON), last_time
    outcome: Outcome = "done" if ending.exit_code == 0 else "failed"
    reason = "" if outcome == "done" else f"exit status {ending.exit_code}"
    if ending.signal is not None:
        reason = f"killed by {_signal_name(ending.signal)}"
    if ending.stopped:
        outcome, reason = "stopped", "stopped by a person"
    return BuildEnded(outcome, ending.exit_code, reason), ending.ended


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _glance(journal: Path) -> _Glance:
    try:
        with open_regular(journal) as file:
            first = file.readline(_MAX_FIRST_LINE)
            stepping = _type_of(StepStarted) in file.read(_HEAD_BYTES)
            size = file.seek(0, 2)
            start = max(0, size - _TAIL_BYTES)
            file.seek(start)
            lines = file.read(_TAIL_BYTES).split(b"\n")
    except OSError:
        return _Glance()
    lines = lines[1:-1] if start else lines[:-1]
    begun = _record(first)
    ends = [line for line in lines if _type_of(BuildEnded) in line]
    last = next((r for r in map(_record, reversed(lines)) if r is not None), None)
    return _Glance(
        begun=begun if begun is not None and isinstance(begun.event, BuildStarted) else None,
        stepping=stepping or start > 0,
        stopping=any(_type_of(StopRequested) in line for line in lines),
        last_time=last.time if last is not None else None,
        end=_record(ends[-1]) if ends else None,
    )


def _type_of(event: type[StepStarted | BuildEnded | StopRequested]) -> bytes:
    """As it is in a record's line; text inside a record cannot contain it, since quotes are escaped there."""
    return b'"type":"%s"' % event.kind.encode()


def _record(line: bytes) -> Record | None:
    try:
        return decode_record(parse_line(line))
    except (BadLineError, CodecError):
        return None


def _state_without_journal(paths: BuildPaths) -> BuildState:
    """As much as the launcher and the supervisor knew before there was an engine."""
    spec = load_or_none(BuildSpec, paths.spec)
    started = spec.created if spec is not None else 0.0
    if not started:
        with contextlib.suppress(OSError):
            started = paths.root.stat().st_mtime
    return BuildState(
        id=paths.id,
        name=spec.name if spec is not None else paths.id,
        command=spec.command if spec is not None else (),
        cwd=spec.cwd if spec is not None else "",
        log_path=str(paths.output),
        started=started,
        time=started,
    )
