"""`stoker diagnose`: why did this build fail? Reads a log, stdin, or the output of a build that stoker ran."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from stoker.cli.errors import USAGE, CliError
from stoker.config.paths import BuildPaths
from stoker.diagnose.around import line_at
from stoker.model.state import BuildState
from stoker.model.text import clean
from stoker.record.builds import NoSuchBuildError, final_state, resolve

FOUND = 0
NOTHING_KNOWN = 1

NOTHING = "nothing known in it; look for the first 'error' or 'FAILED', or build again with -j 1 and look at its end"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `stoker diagnose`."""
    parser.add_argument("file", metavar="FILE|-|ID", help="a log, - for stdin, or a build's ID or name")
    parser.add_argument("--json", action="store_true", help="JSON, for programs")


def run(args: argparse.Namespace) -> int:
    """Print the failures that are known, the first cause first.

    0 something was found, 1 nothing known was found, 2 it cannot be read; raises CliError (2).
    """
    from stoker.diagnose.match import to_json
    from stoker.diagnose.rule import shipped_rules
    from stoker.diagnose.scan import scan
    from stoker.show.diagnosis import render

    name = clean(args.file)
    try:
        with _open(args.file) as (file, line):
            matches = scan(file, shipped_rules(), line)
    except OSError as err:
        raise CliError(f"{name}: {err.strerror}; name a log, - for stdin, or an ID of 'stoker ls'", USAGE) from err
    if args.json:
        print(json.dumps(to_json(matches), indent=2))
    else:
        sys.stdout.write(render(matches) if matches else f"{name}: {NOTHING}\n")
    return FOUND if matches else NOTHING_KNOWN


@contextlib.contextmanager
def _open(name: str) -> Iterator[tuple[BinaryIO, int]]:
    """What a name on the command line means, and the line to begin with: stdin, a file, or else a build.

    Raises OSError.
    """
    if name == "-":
        yield sys.stdin.buffer, 1
        return
    path = Path(name)
    build = None if path.exists() else _build(name)
    with (path if build is None else build.output).open("rb") as file:
        yield file, 1 if build is None else _skip_forgiven(file, final_state(build))


def _build(name: str) -> BuildPaths | None:
    """The build that has this ID or name."""
    try:
        return resolve(name)
    except NoSuchBuildError:
        return None


def _skip_forgiven(file: BinaryIO, state: BuildState) -> int:
    """Go to where the last attempt begins, and tell its line: what came before was mended, or well."""
    begin = line_at(file, state.step.log_start if state.step is not None else 0)
    file.seek(begin.offset)
    return begin.line
