"""`stoker diagnose`: why did this build fail? Reads a log, stdin, or the output of a build that stoker ran."""

from __future__ import annotations

import argparse
import json
import os
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from stoker.cli.errors import USAGE, CliError
from stoker.config.paths import BuildPaths
from stoker.config.regular import open_regular
from stoker.diagnose.around import line_at
from stoker.model.diagnosis import Cause
from stoker.model.progress import progress_of
from stoker.model.state import BuildState
from stoker.model.text import clean
from stoker.record.builds import AmbiguousBuildError, NoSuchBuildError, final_state, resolve

FOUND = 0
NOTHING_KNOWN = 1

NOTHING = "nothing known in it; look for the first 'error' or 'FAILED', or build again with -j 1 and look at its end"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `stoker diagnose`."""
    parser.add_argument(
        "file",
        nargs="?",
        metavar="FILE|-|ID",
        help="a log, - for stdin, or a build's ID or name; without it what is piped in, else the newest build",
    )
    parser.add_argument("--json", action="store_true", help="JSON, for programs")


def run(args: argparse.Namespace) -> int:
    """Print the failures that are known, the first cause first.

    0 something was found, 1 nothing known was found, 2 it cannot be read; raises CliError (2).
    """
    from stoker.diagnose.match import to_json
    from stoker.diagnose.rule import shipped_rules
    from stoker.show.diagnosis_text import render

    meant = args.file if args.file is not None else _meant()
    name = clean(meant)
    try:
        build = _build(meant)
        state = BuildState() if build is None else final_state(build)
        causes = [] if build is not None and _nothing_failed(state) else _causes(meant, build, state)
    except OSError as err:
        raise CliError(f"{name}: {err.strerror}; name a log, - for stdin, or an ID of 'stoker ls'", USAGE) from err
    phase = {} if build is None else {"state": state.phase}
    if args.json:
        print(json.dumps({**to_json(causes, shipped_rules()), **phase}, indent=2))
        return FOUND if causes else NOTHING_KNOWN
    if build is not None and not state.over and causes:
        print(f"stoker: {name} still runs; what has failed so far:", file=sys.stderr, flush=True)
    nothing = NOTHING if build is None else _nothing_text(state)
    sys.stdout.write(render(causes) if causes else f"{name}: {nothing}\n")
    return FOUND if causes else NOTHING_KNOWN


def _nothing_failed(state: BuildState) -> bool:
    """Say whether there is nothing to find the cause of, whatever words the output has."""
    return state.outcome == "done" or (not state.over and not progress_of(state).failed)


def _nothing_text(state: BuildState) -> str:
    """Return what is said of a build for whose failure no cause is known, if it has failed at all."""
    if state.outcome == "done":
        return "ended well, there is nothing to diagnose"
    return NOTHING if state.over else "still runs, and nothing has failed so far"


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


def _causes(name: str, build: BuildPaths | None, state: BuildState) -> Sequence[Cause]:
    """Return what is known of stdin, of a log, or else of a build's output. Raises OSError."""
    if name == "-":
        return _scanned(sys.stdin.buffer, state)
    if state.diagnosis is not None and state.diagnosis.complete:
        return state.diagnosis.causes  # found at the build's end, with what was killed in mind
    with Path(name).open("rb") if build is None else open_regular(build.output) as file:
        return _scanned(file, state)


def _build(name: str) -> BuildPaths | None:
    """Return the build that is meant by this, None where it is a log. Raises CliError where it may be one of several.

    A folder is no log, and a build is called after its folder unless somebody named it.
    """
    if name == "-" or "/" in name or Path(name).is_file():
        return None
    try:
        return resolve(name)
    except AmbiguousBuildError as err:
        raise CliError(str(err), USAGE) from err
    except NoSuchBuildError:
        return None


def _scanned(file: BinaryIO, state: BuildState) -> list[Cause]:
    """Scan the output from where the last attempt begins: what came before was repaired, or well."""
    from stoker.diagnose.killed_lines import names_killed
    from stoker.diagnose.match import cause_of
    from stoker.diagnose.rule import shipped_rules
    from stoker.diagnose.scan import scan

    line = 1
    if state.step is not None:
        begin = line_at(file, state.step.log_start)
        file.seek(begin.offset)
        line = begin.line
    return [cause_of(match) for match in scan(file, shipped_rules(), line, no_error=names_killed(state))]
