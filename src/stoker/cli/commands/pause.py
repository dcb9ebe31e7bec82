"""`stoker pause`: start nothing new, or freeze everything."""

from __future__ import annotations

import argparse

from stoker.cli import arguments
from stoker.cli.asking import ask_engine, live_build


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `stoker pause`."""
    arguments.build_id(parser, running=True)
    parser.add_argument("--now", action="store_true", help="also freeze running jobs, instead of letting them finish")


def run(args: argparse.Namespace) -> int:
    """Start nothing new, or freeze everything. Raises CliError."""
    return ask_engine(live_build(args.id), "pause", {"now": args.now})
