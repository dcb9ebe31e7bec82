"""`stoker completion`: completions for shells, made from the parser."""

from __future__ import annotations

import argparse

SHELLS = ("bash", "zsh", "fish")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `stoker completion`."""
    parser.add_argument("shell", choices=SHELLS, help="for bash: stoker completion bash >~/.bash_completion.d/stoker")


def run(args: argparse.Namespace) -> int:
    """Print a script for a shell to read."""
    import shtab

    from stoker.cli.main import COMMANDS, build_parser

    print(shtab.complete(build_parser(*COMMANDS), args.shell))
    return 0
