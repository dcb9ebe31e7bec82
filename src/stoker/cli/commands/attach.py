"""`stoker attach`: watch a build that runs or has ended."""

from __future__ import annotations

import argparse

from stoker.cli import arguments
from stoker.cli.screen import pick_screen
from stoker.cli.watch import show_build
from stoker.cli.which_build import find


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `stoker attach`."""
    arguments.build_id(parser)
    arguments.screen(parser)
    parser.add_argument("--read-only", action="store_true", help="only look: no key can touch the build")


def run(args: argparse.Namespace) -> int:
    """Watch a build that runs or has ended."""
    return show_build(find(args.id), pick_screen(args), read_only=args.read_only)
