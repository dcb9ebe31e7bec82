"""`stoker replay`: play a recorded build in the same screens."""

from __future__ import annotations

import argparse
import asyncio
import math
from pathlib import Path

from stoker.cli import arguments
from stoker.cli.errors import FAILURE, CliError
from stoker.cli.screen import pick_screen
from stoker.cli.tui_options import ScreensFailedError, TuiOptions, run_screens
from stoker.cli.watch import run_lines
from stoker.cli.which_build import find
from stoker.record.replay import ReplaySource


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `stoker replay`."""
    parser.add_argument("id", metavar="ID|FILE", help="a build's ID, or a journal")
    arguments.screen(parser)
    parser.add_argument("--speed", type=float, default=10.0, help="times real time (default: 10)")


def run(args: argparse.Namespace) -> int:
    """Play a journal in the same screens."""
    if math.isnan(args.speed) or args.speed <= 0:
        raise CliError("--speed is a number above 0")
    path = Path(args.id)
    journal = path if path.is_file() else find(args.id, or_file=True).journal
    screen = pick_screen(args)
    source = ReplaySource(journal, args.speed, hold_at_end=isinstance(screen, TuiOptions))
    if isinstance(screen, TuiOptions):
        try:
            run_screens(source, screen)
        except ScreensFailedError as err:
            raise CliError(str(err), FAILURE) from err
    else:
        asyncio.run(run_lines(source, screen))
    return 0
