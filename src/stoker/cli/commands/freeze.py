"""`stoker freeze`: freeze one job until it is thawed."""

from __future__ import annotations

import argparse

from stoker.cli.one_job import act_on_job, add_job


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `stoker freeze`."""
    add_job(parser)


def run(args: argparse.Namespace) -> int:
    """Freeze one job until it is thawed. Raises CliError."""
    return act_on_job(args.words, "freeze")
