"""`stoker thaw`: thaw one frozen job, or start one from the deck."""

from __future__ import annotations

import argparse

from stoker.cli.one_job import act_on_job, add_job


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `stoker thaw`."""
    add_job(parser)


def run(args: argparse.Namespace) -> int:
    """Thaw one frozen job, or start one from the deck. Raises CliError."""
    return act_on_job(args.words, "thaw")
