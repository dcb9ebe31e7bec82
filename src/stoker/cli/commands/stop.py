"""`stoker stop`: end a build and everything it started."""

from __future__ import annotations

import argparse
import asyncio
import sys

from stoker.act.stop import NothingToStopError
from stoker.cli import arguments
from stoker.cli.errors import FAILURE, CliError
from stoker.cli.which_build import find
from stoker.launch.live_build import ask_to_stop, await_end
from stoker.record.builds import is_live


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `stoker stop`."""
    arguments.build_id(parser, running=True)
    parser.add_argument("--force", action="store_true", help="send SIGKILL at once, instead of SIGTERM first")


def run(args: argparse.Namespace) -> int:
    """End a build and wait until nothing of it is left."""
    paths = find(args.id)
    if not is_live(paths):
        raise CliError(f"{paths.id} has ended already; 'stoker status {paths.id}' says how", FAILURE)
    print(f"stoker: {'killing' if args.force else 'stopping'} {paths.id}", file=sys.stderr)
    try:
        asyncio.run(ask_to_stop(paths, force=args.force))
    except NothingToStopError as err:
        raise CliError(str(err), FAILURE) from err
    if not await_end(paths):
        cure = "something of it waits for a disk or a device; look at its processes" if args.force else ""
        raise CliError(f"{paths.id} still runs; {cure or f'try: stoker stop --force {paths.id}'}", FAILURE)
    return 0
