"""`stoker unpause`: end a pause."""

from __future__ import annotations

import argparse
import asyncio
import sys

from stoker.act.stop import NothingToStopError
from stoker.cli import arguments
from stoker.cli.asking import live_build, print_level
from stoker.cli.errors import FAILURE, CliError
from stoker.launch.live_build import end_pause
from stoker.model.state import BuildState
from stoker.model.update import CommandRefused


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `stoker unpause`."""
    arguments.build_id(parser, running=True)


def run(args: argparse.Namespace) -> int:
    """End a pause. Raises CliError."""
    try:
        outcome = asyncio.run(end_pause(live_build(args.id)))
    except (CommandRefused, NothingToStopError) as err:
        raise CliError(str(err), FAILURE) from err
    if isinstance(outcome, BuildState):
        return print_level(outcome)
    print(f"stoker: no engine answers; stopped processes that continue now: {outcome}", file=sys.stderr)
    return 0
