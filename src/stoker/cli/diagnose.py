"""`stoker diagnose`: why did this build fail? Reads a log, stdin, or the output of a build that stoker ran."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import BinaryIO

from stoker.cli.errors import USAGE, CliError
from stoker.model.text import clean

FOUND = 0
NOTHING_KNOWN = 1

NOTHING = (
    "nothing known in it; look for the first 'error' or 'FAILED', or build again with -j 1 -k 1 and look at the end"
)


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
        with _open(args.file) as file:
            matches = scan(file, shipped_rules())
    except OSError as err:
        raise CliError(f"{name}: {err.strerror}; name a log, - for stdin, or an ID of 'stoker ls'", USAGE) from err
    if args.json:
        print(json.dumps(to_json(matches), indent=2))
    else:
        sys.stdout.write(render(matches) if matches else f"{name}: {NOTHING}\n")
    return FOUND if matches else NOTHING_KNOWN


def _open(name: str) -> BinaryIO:
    """What a name on the command line means: stdin, a file, or else a build. Raises OSError."""
    if name == "-":
        return sys.stdin.buffer
    path = Path(name)
    if not path.exists():
        path = _output_of(name) or path
    return path.open("rb")


def _output_of(name: str) -> Path | None:
    """The output of a build that has this ID or name."""
    from stoker.record.builds import NoSuchBuildError, resolve

    try:
        return resolve(name).output
    except NoSuchBuildError:
        return None
