"""`stoker demo`: a small real build that fights for memory, made on the spot and watched like any other."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

from stoker.cli import arguments, early
from stoker.cli.commands.run import show_own
from stoker.cli.errors import LEFT, OWN_FAILURE, CliError
from stoker.cli.narration import say
from stoker.cli.screen import pick_screen
from stoker.launch.from_command import bytes_of, command_build
from stoker.launch.start import start_build
from stoker.record.builds import is_live


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `stoker demo`."""
    arguments.screen(parser)
    arguments.limits(parser)
    parser.add_argument("--seconds", type=float, default=40.0, help="about how long it shall take (default: 40)")
    parser.add_argument("--fail", action="store_true", help="with one real compile error in it")


def run(args: argparse.Namespace) -> int:
    """Write a small real build into a temporary folder and watch it."""
    from stoker.demo import find_ninja, make_demo

    if not 1.0 <= args.seconds <= 3600.0:
        raise CliError("--seconds is a number from 1 to 3600")
    ninja = find_ninja()
    if not ninja:
        raise CliError("the demo needs ninja: 'pip install ninja', or your system's package ninja-build", OWN_FAILURE)
    screen = pick_screen(args)
    memory = bytes_of(args.memory)
    budget = min(_available_memory(), memory or sys.maxsize)
    folder = Path(tempfile.mkdtemp(prefix="stoker-demo-"))
    command = make_demo(
        folder, ninja, seconds=args.seconds, cores=os.cpu_count() or 1, memory_budget=budget, fail=args.fail
    )
    # In its own folder, so that "resume the last build of this one" never means the demo.
    paths = start_build(lambda _: command_build(command, str(folder), "demo", args.jobs, memory), say, early.keep)
    status: int | None = None
    try:
        status = show_own(paths, screen, lasting=False)
        return status
    finally:
        if not is_live(paths) and status != LEFT:  # nor does one that resumes it
            shutil.rmtree(folder, ignore_errors=True)


def _available_memory() -> int:
    """Return the bytes that the demo may plan with: the tightest limit around us."""
    from stoker.sense.machine.machine import MachineReader

    return MachineReader(os.getpid(), os.getcwd()).read(0.0).memory_available
