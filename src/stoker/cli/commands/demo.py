"""`stoker demo`: generates a small real build whose jobs compete for memory, and watches it like any other."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path

from stoker.cli import arguments, early
from stoker.cli.commands.run import show_own
from stoker.cli.errors import LEFT, OWN_FAILURE, CliError
from stoker.cli.narration import say
from stoker.cli.screen import pick_screen
from stoker.cli.tui_options import TuiOptions
from stoker.launch.from_command import bytes_of, command_build
from stoker.launch.start import start_build
from stoker.model.samples import MachineSample
from stoker.record.builds import is_live
from stoker.sense.proc.schedulers import default_ninja_width

AGAIN = "stoker demo starts another"
"""Said where another build's end names the command that resumes it: the demo's folder goes when its end is left."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `stoker demo`."""
    arguments.screen(parser)
    arguments.limits(parser)
    parser.add_argument("--seconds", type=float, default=40.0, help="approximate duration (default: 40)")
    parser.add_argument("--fail", action="store_true", help="include one real compile error")


def run(args: argparse.Namespace) -> int:
    """Write a small real build into a temporary folder and watch it."""
    from stoker.demo import find_ninja, make_demo
    from stoker.demo.fight import fight_text

    if not 1.0 <= args.seconds <= 3600.0:
        raise CliError("--seconds is a number from 1 to 3600")
    ninja = find_ninja()
    if not ninja:
        raise CliError("the demo needs ninja: 'pip install ninja', or your system's package ninja-build", OWN_FAILURE)
    screen = pick_screen(args)
    machine, memory = _machine(), bytes_of(args.memory)
    folder = Path(tempfile.mkdtemp(prefix="stoker-demo-"))
    demo = make_demo(
        folder,
        ninja,
        seconds=args.seconds,
        available=min(machine.memory_available, 2 * memory if memory else sys.maxsize),
        fail=args.fail,
    )
    # One core lets only one job run at once: nothing would compete.
    jobs, budget = args.jobs or (2 if machine.cpu_available < 2 else None), memory or demo.budget
    # In its own folder, so that "resume the last build of this one" never means the demo.
    request = command_build(demo.command, str(folder), "demo", jobs, budget)
    # Apart from the history; otherwise the second demo would know in advance what surprised the first.
    apart = replace(request, spec=request.spec._replace(apart=True))
    paths = start_build(lambda _: apart, say, early.keep)
    status: int | None = None
    try:
        width = default_ninja_width(int(machine.cpu_available))
        closing = partial(fight_text, paths, width)
        own = replace(screen, closing=closing, unresumable=AGAIN) if isinstance(screen, TuiOptions) else screen
        status = show_own(paths, own, lasting=False)
        if screen != "json" and not is_live(paths):
            say(closing())
        return status
    finally:
        if not is_live(paths) and status != LEFT:  # nor does one that resumes it
            shutil.rmtree(folder, ignore_errors=True)


def _machine() -> MachineSample:
    """Return what the demo may plan with: the tightest limits around us."""
    from stoker.sense.machine.machine import MachineReader

    return MachineReader(os.getpid(), os.getcwd()).read(0.0)
