"""`stoker attach`: watch a build that runs or has ended."""

from __future__ import annotations

import argparse

from stoker.cli import arguments
from stoker.cli.attach_inside import attach_inside, is_inside
from stoker.cli.screen import pick_screen
from stoker.cli.watch import show_build
from stoker.cli.which_build import find


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `stoker attach`."""
    arguments.build_id(parser)
    arguments.screen(parser)
    parser.add_argument("--read-only", action="store_true", help="only watch: no key can affect the build")


def run(args: argparse.Namespace) -> int:
    """Watch a build that runs or has ended, here or in a container."""
    if is_inside(args.id):
        named = {"--plain": args.plain, "--json": args.json, "--read-only": args.read_only}
        theme = ["--theme", args.theme] if args.theme else []
        return attach_inside(args.id, [*theme, *(option for option, given in named.items() if given)])
    return show_build(find(args.id), pick_screen(args), read_only=args.read_only)
