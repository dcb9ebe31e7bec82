"""`stoker diagnose`: why did this build fail? Reads logs, stdin, or the output of a build that stoker ran."""

from __future__ import annotations

import argparse
import functools
import json
import math
import os
import stat
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Self

from stoker.cli.commands.rules import add_rules, rules_or_fail
from stoker.cli.errors import USAGE, CliError
from stoker.config.paths import BuildPaths
from stoker.config.regular import open_regular
from stoker.diagnose.around import line_at
from stoker.diagnose.blocks import PORTION, Readable
from stoker.diagnose.governed import governed
from stoker.diagnose.killed_causes import failures_first, placed
from stoker.diagnose.killed_lines import names_killed
from stoker.diagnose.log_files import MAX_UNPACKED, logs_in, unpacked
from stoker.diagnose.log_reading import LogReading, read_log
from stoker.diagnose.match import to_json
from stoker.diagnose.rule import Rule
from stoker.diagnose.zipped_logs import ZippedLog, is_zip, logs_in_zip
from stoker.model.progress import progress_of
from stoker.model.state import BuildState
from stoker.model.text import clean
from stoker.model.units import format_bytes
from stoker.record.builds import AmbiguousBuildError, NoSuchBuildError, final_state, resolve
from stoker.show.closing_text import sent_a_signal
from stoker.show.diagnosis_text import render

FOUND = 0
NOTHING_KNOWN = 1
ENDED_WELL = 3

EMPTY = "there is nothing in it; was the log written to another file? (2>&1)"
NO_TEXT = "it is not text; name the log of a build"
NOTHING = "nothing known in it; look for the first 'error' or 'FAILED', or build again with -j 1 and look at its end"
WELL = "ends like a successful build"

PROGRESS_AFTER = 2.0
PROGRESS_EVERY = 0.2
"""Seconds from which on, and how often, a terminal shows the progress of reading a large log."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """The diagnosis of one log, or of one build with its state."""

    name: str
    reading: LogReading
    state: BuildState | None = None

    @property
    def status(self) -> int:
        if self.reading.ended_well:
            return ENDED_WELL
        return FOUND if self.reading.verdict in ("known", "general") else NOTHING_KNOWN


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `stoker diagnose`."""
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE|FOLDER|-|ID",
        help="logs (also .gz .xz .zst), folders and .zip files of logs, - for stdin, or a build's ID or name; without "
        "it what is piped in, else the newest build",
    )
    parser.add_argument("--json", action="store_true", help="JSON, for programs")
    add_rules(parser)


def run(args: argparse.Namespace) -> int:
    """Print the failures that are known, the first cause first, or the likely place of an unknown one.

    0 something was found, 1 nothing known was found, 3 it ends like a successful build, 2 it cannot be read;
    raises CliError (2).
    """
    logs = [log for word in args.files for log in _expanded(word)] if args.files else [_meant()]
    rules = rules_or_fail(args.rules)
    answers, unreadable = [], 0
    for log in logs:
        try:
            answers.append(_answer(log, rules))
        except OSError as err:
            reason = err.strerror or "it cannot be read"
            said = f"{clean(_name(log))}: {reason}; name a log, - for stdin, or an ID of 'stoker ls'"
            if len(logs) == 1:
                raise CliError(said, USAGE) from err
            print(f"stoker: {said}", file=sys.stderr)
            unreadable = USAGE
    if args.json:
        each = [_as_json(answer, rules) for answer in answers]
        several = [{"file": clean(a.name), **one} for a, one in zip(answers, each, strict=True)]
        print(json.dumps({"logs": several} if len(logs) > 1 else each[0], indent=2))
    else:
        heads = [f"== {clean(answer.name)}\n" if len(logs) > 1 else "" for answer in answers]
        sys.stdout.write("\n".join(head + _as_text(answer) for head, answer in zip(heads, answers, strict=True)))
    statuses = {answer.status for answer in answers}
    return unreadable or next((status for status in (FOUND, NOTHING_KNOWN) if status in statuses), ENDED_WELL)


def _name(log: str | ZippedLog) -> str:
    return log if isinstance(log, str) else log.name


def _expanded(word: str) -> list[str] | list[ZippedLog]:
    """Return the logs of a folder or a .zip; any other word as it is. A folder's name may mean the build called so."""
    path = Path(word)
    is_packed = is_zip(path)
    if word == "-" or not (is_packed or path.is_dir()) or ("/" not in word and _build(word) is not None):
        return [word]
    try:
        logs = logs_in_zip(path) if is_packed else [str(log) for log in logs_in(path)]
    except OSError as err:
        raise CliError(f"{clean(word)}: {err.strerror}", USAGE) from err
    if not logs:
        raise CliError(f"{clean(word)}: holds no logs (*.log, *.txt, *.out); name a file", USAGE)
    return logs


def _answer(log: str | ZippedLog, rules: Sequence[Rule]) -> _Answer:
    """Read what is meant by this name. Raises OSError, and CliError where it may be one of several builds."""
    if isinstance(log, ZippedLog):
        return _Answer(log.name, _of_text(log.name, log.text, log.limit, rules))
    build = _build(log)
    if build is None:
        with _file(log) as file:
            return _Answer(log, _of_text(log, functools.partial(unpacked, file), MAX_UNPACKED, rules))
    state = final_state(build)
    if not state.over and progress_of(state).failed:
        print(f"stoker: {clean(log)} still runs; what has failed so far:", file=sys.stderr, flush=True)
    return _Answer(log, _of_build(build, state, rules), state)


def _of_text(
    name: str, text_of: Callable[[Callable[[], None]], Readable], limit: int, rules: Sequence[Rule]
) -> LogReading:
    """Return what a log says; `text_of` takes what to call at its limit in bytes. Raises OSError."""
    cut: list[bool] = []
    with _Progress(clean(name)) as progress:
        text = text_of(lambda: cut.append(True))
        reading = read_log(text, rules, enough=progress.step, is_whole=lambda: not cut)
    if cut:
        said = f"{clean(name)}: unpacks to more than {format_bytes(limit)}; the rest was not read"
        print(f"stoker: {said}", file=sys.stderr)
    return reading


def _file(name: str) -> BinaryIO:
    return sys.stdin.buffer if name == "-" else Path(name).open("rb")


def _of_build(build: BuildPaths, state: BuildState, rules: Sequence[Rule]) -> LogReading:
    """Return what is known of a build's output. Raises OSError."""
    if state.outcome == "done" or (not state.over and not progress_of(state).failed):
        return LogReading()  # whatever words the output has
    if state.diagnosis is not None and state.diagnosis.complete:
        return LogReading(state.diagnosis.causes)  # found at the build's end, with what was killed in mind
    with open_regular(build.output) as file:
        # What came before the last attempt was repaired, or well.
        begin = line_at(file, state.step.log_start if state.step is not None else 0)
        file.seek(begin.offset)
        with _Progress(clean(build.output.name)) as progress:
            no_error = names_killed(state)
            reading = read_log(file, rules, begin.line, progress.step, no_error, has_failed=True)
        causes = [placed(file, begin, cause, state.failures) for cause in reading.causes]
        return replace(reading, causes=tuple(governed(failures_first(file, causes, state, rules), rules)))


class _Progress:
    """Shows on a terminal how much of a large log was read; wiped at the end."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._next = time.monotonic() + PROGRESS_AFTER if sys.stderr.isatty() else math.inf
        self._portions = 0
        self._shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            os.write(2, b"\r\x1b[K")  # past the sanitiser of sys.stderr

    def step(self) -> bool:
        """Count a portion. Never enough."""
        self._portions += 1
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + PROGRESS_EVERY
            self._shown = True
            os.write(2, f"\r\x1b[Kstoker: {self._name}: {format_bytes(self._portions * PORTION)} read".encode())
        return False


def _as_json(answer: _Answer, rules: Sequence[Rule]) -> dict[str, Any]:
    causes = answer.reading.causes
    guesses = to_json((cause for cause in causes if cause.is_guess), rules)
    return {
        "matches": to_json((cause for cause in causes if not cause.is_guess), rules),
        "verdict": answer.reading.verdict,
        "likely": guesses[0] if guesses else None,
        **({} if answer.state is None else {"state": answer.state.phase}),
    }


def _as_text(answer: _Answer) -> str:
    name, causes = clean(answer.name), answer.reading.causes
    if answer.reading.ended_well:
        seen = ", ".join(f"{clean(cause.heading)} (line {cause.line})" for cause in causes)
        return f"{name}: {WELL}{f'; on its way it met: {seen}' if seen else ''}\n"
    return render(causes) if causes else f"{name}: {_nothing_text(answer)}\n"


def _nothing_text(answer: _Answer) -> str:
    """Return the message if no cause is known; for a build, whether it has failed at all."""
    state = answer.state
    if not answer.reading.is_text:
        return NO_TEXT
    if state is None:
        return EMPTY if answer.reading.complete else NOTHING
    if state.over and state.outcome != "done":
        return sent_a_signal(state) or NOTHING
    if state.outcome == "done":
        return "succeeded; there is nothing to diagnose"
    return "still runs, and nothing has failed so far"


def _meant() -> str:
    """Return what is meant where nothing is named: a log that comes in, else the build that other commands mean too."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (AttributeError, OSError, ValueError):
        mode = 0
    if stat.S_ISFIFO(mode) or stat.S_ISREG(mode):
        print("stoker: the log that comes in by stdin:", file=sys.stderr, flush=True)  # an ssh without -t sends none
        return "-"
    try:
        name = resolve(None).id
    except NoSuchBuildError as err:
        raise CliError(str(err), USAGE) from err
    print(f"stoker: {clean(name)}:", file=sys.stderr)
    return name


def _build(name: str) -> BuildPaths | None:
    """Return the build that is meant, None where it is a log. Raises CliError where it may be one of several."""
    if name == "-" or "/" in name or Path(name).is_file():
        return None
    try:
        return resolve(name)
    except AmbiguousBuildError as err:
        raise CliError(str(err), USAGE) from err
    except NoSuchBuildError:
        return None
