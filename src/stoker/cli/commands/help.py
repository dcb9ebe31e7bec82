"""`stoker help`: the help of a command, or the manual page of all, from the one parser that there is."""

from __future__ import annotations

import argparse

from stoker.cli.errors import USAGE, CliError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `stoker help`."""
    parser.add_argument("command_name", nargs="?", metavar="COMMAND", help="a command (default: all)")
    parser.add_argument("--man", action="store_true", help="print the manual page: stoker help --man | man -l -")


def run(args: argparse.Namespace) -> int:
    """Print help."""
    from stoker.cli.main import COMMANDS, build_parser

    if args.man:
        print(_manual_page(build_parser(*COMMANDS)))
        return 0
    if args.command_name is None:
        build_parser().print_help()
        return 0
    if args.command_name not in COMMANDS:
        raise CliError(f"no command {args.command_name!r}; 'stoker help' lists them", USAGE)
    build_parser(args.command_name).parse_args([args.command_name, "--help"])
    return 0


def _manual_page(parser: argparse.ArgumentParser) -> str:
    from argparse_manpage.manpage import Manpage

    return str(Manpage(parser))
