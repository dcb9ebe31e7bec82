"""`stoker doctor`: can a build succeed here? Cheap to import: what does the work is imported when it runs."""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from stoker.cli.errors import FAILURE, CliError

if TYPE_CHECKING:
    from stoker.doctor.need import Need

ASKED = 200
"""The heaviest remembered jobs among which this build folder's own are looked for."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `stoker doctor`."""
    parser.add_argument("--json", action="store_true", help="JSON, for programs")


def run(args: argparse.Namespace) -> int:
    """Examine and print. 0 nothing fails, 1 something does; raises CliError (2)."""
    from stoker.cli.view import in_colour
    from stoker.doctor.check import to_json
    from stoker.doctor.examine import examine
    from stoker.doctor.recognise import recognise
    from stoker.show.doctor import render

    found = examine(with_history(recognise(_here(), os.environ)), os.environ)
    if args.json:
        print(json.dumps(to_json(found), indent=2))
    else:
        sys.stdout.write(render(found, colour=in_colour()))
    return 0 if found.ok else FAILURE


def _here() -> str:
    try:
        return os.getcwd()
    except OSError as err:
        raise CliError("the current folder is gone; change to the source tree first") from err


def with_history(need: Need) -> Need:
    """The need with the heaviest job that is remembered of this build folder, told by its outputs that are there."""
    from stoker.config.paths import UnsafeFolderError, history_path
    from stoker.doctor.need import Job
    from stoker.record.history import History

    try:
        path = history_path()
        if not path.exists():
            return need
    except (OSError, UnsafeFolderError):
        return need
    history = History(path)
    try:
        known = history.known(ASKED).heaviest
    finally:
        history.close()
    own = next((job for job in known if os.path.isfile(os.path.join(need.build, job.output))), None)
    return need if own is None else replace(need, job=Job(own.output, round(own.peak), measured=True))
