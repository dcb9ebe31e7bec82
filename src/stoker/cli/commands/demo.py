"""`stoker demo`: a small real build that fights for memory, made on the spot and watched like any other."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from stoker.cli import arguments, early
from stoker.cli.commands.run import show_own
from stoker.cli.errors import LEFT, OWN_FAILURE, CliError
from stoker.cli.narration import say
from stoker.cli.screen import pick_screen
from stoker.config.paths import BuildPaths
from stoker.decide.memory.curves import Point
from stoker.launch.from_command import bytes_of, command_build
from stoker.launch.start import start_build
from stoker.model.events import JobFinished
from stoker.model.samples import MachineSample
from stoker.model.units import format_of
from stoker.record.builds import final_state, is_live
from stoker.record.journal_reader import read_kinds
from stoker.sense.proc.schedulers import default_ninja_width
from stoker.simulate.runner import simulate
from stoker.simulate.trace import TraceJob

ENOUGH = 2.0**50
"""Bytes of a machine on paper on which memory stops nobody."""


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
    machine, memory = _machine(), bytes_of(args.memory)
    folder = Path(tempfile.mkdtemp(prefix="stoker-demo-"))
    demo = make_demo(
        folder,
        ninja,
        seconds=args.seconds,
        available=min(machine.memory_available, 2 * memory if memory else sys.maxsize),
        fail=args.fail,
    )
    # One core alone lets one job run at once: nobody would fight.
    jobs, budget = args.jobs or (2 if machine.cpu_available < 2 else None), memory or demo.budget
    # In its own folder, so that "resume the last build of this one" never means the demo.
    request = command_build(demo.command, str(folder), "demo", jobs, budget)
    # Apart from the history, or the second demo would know beforehand what surprised the first.
    apart = replace(request, spec=request.spec._replace(apart=True))
    paths = start_build(lambda _: apart, say, early.keep)
    status: int | None = None
    try:
        status = show_own(paths, screen, lasting=False)
        if screen != "json" and not is_live(paths):
            say(fight_text(paths, machine.cpu_available))
        return status
    finally:
        if not is_live(paths) and status != LEFT:  # nor does one that resumes it
            shutil.rmtree(folder, ignore_errors=True)


def _machine() -> MachineSample:
    """Return what the demo may plan with: the tightest limits around us."""
    from stoker.sense.machine.machine import MachineReader

    return MachineReader(os.getpid(), os.getcwd()).read(0.0)


def fight_text(paths: BuildPaths, cores: float) -> str:
    """Say how the demo's jobs fought for memory, and what ninja would have made of them on so many `cores`."""
    state = final_state(paths)
    killed = sum(lost.count for lost in state.lost.values())
    text = f"{state.restraint.held} held, {state.restraint.frozen} frozen, {killed} killed"
    width = default_ninja_width(int(cores))
    wanted = _side_by_side(paths.journal, width)
    if not wanted or state.machine is None:
        return text
    return f"{text}; ninja -j{width} would have wanted {format_of(wanted, state.machine.memory_budget)}"


def _side_by_side(journal: Path, width: int) -> float:
    """Return the bytes that the demo's objects take at most if always `width` of them are made at once, in the order in
    which ninja started them; by what each was measured to hold over its life, 0 if none was measured."""
    jobs = {}
    for record in read_kinds(journal, JobFinished):
        job = record.event
        if isinstance(job, JobFinished) and job.lesson is not None and job.output.startswith("obj/"):
            points = tuple(map(Point, job.lesson.ages, map(float, job.lesson.sizes)))
            if points[-1].age > 0:
                jobs[job.jid or 0] = TraceJob(job.output, job.tool, points)
    if not jobs:
        return 0.0
    return simulate([jobs[jid] for jid in sorted(jobs)], width, ENOUGH, f"fixed:{width}").peak
