"""`stoker run` and `stoker demo`: start a build under a keeper, then look at it like any other viewer."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from stoker.act.launch import LaunchError, Spec, launch
from stoker.cli import early
from stoker.cli.errors import LEFT, NOT_EXECUTABLE, NOT_FOUND, OWN_FAILURE, CliError
from stoker.cli.screen import Screen, pick_screen
from stoker.cli.twin import check_alone
from stoker.cli.window import prepared, window_for
from stoker.config.paths import BuildPaths, UnsafeFolderError
from stoker.model.text import clean
from stoker.record.builds import is_live, prune_builds

if TYPE_CHECKING:
    from stoker.cli.steps import Plan


def run(args: argparse.Namespace) -> int:
    """Start the command and watch it; returns the build's own exit status, 130 when a person stopped it."""
    words = args.words[1:] if args.words[:1] == ["--"] else args.words
    if args.remedy and (not args.resume or args.profile is not None):
        raise CliError("--remedy goes with --resume, and with a build's ID if it is not the last one of this folder")
    if args.profile is not None:
        return _run_profile(args, words)
    if args.set:
        raise CliError("--set goes with a profile, as in: stoker run -p pytorch --set arch=8.0")
    if args.resume:
        from stoker.cli.go_on import go_on

        return go_on(args)
    if not words:
        raise CliError("run needs a command; write it after --, as in: stoker run -- ninja -C build")
    if words[0].startswith("-"):
        raise CliError(f"run has no option {words[0]!r}; see 'stoker run --help', and put the build's command after --")
    _check_command(words[0])
    memory = bytes_of(args.memory)
    return _run(args, lambda folder: _spec(words, folder, args.name or _default_name(words), args.jobs, memory))


def _run_profile(args: argparse.Namespace, extra: Sequence[str]) -> int:
    """Run the steps of a profile in this folder."""
    from stoker.cli.steps import plan_of, spec_of

    def spec(folder: str) -> Spec:
        plan = plan_of(args, extra, folder)
        memory, name = bytes_of(args.memory), args.name or _default_name(plan.words)
        window = window_of(folder, args.jobs, memory or plan.profile.memory)
        base = Spec(plan.words, folder, name, jobs=args.jobs, memory=memory, window=window)
        made = spec_of(plan, base, os.environ)
        if args.no_doctor:
            return made
        return replace(made, notices=(*made.notices, *examined(plan, made, folder, args)))

    return _run(args, spec)


def examined(plan: Plan, made: Spec, folder: str, args: argparse.Namespace) -> tuple[str, ...]:
    """What the doctor warns of, told where no plain lines will tell it. Raises CliError where something fails."""
    from stoker.cli.precheck import precheck

    def say(line: str) -> None:
        print(f"stoker: {clean(line)}", file=sys.stderr, flush=True)

    temporary = {"TMPDIR": made.ramdisk.parent} if made.ramdisk is not None else {}
    base = os.environ if made.environ is None else made.environ
    environment = {**base, **made.environment, **temporary}
    warnings = precheck(plan, [step.name for step in made.steps[made.first - 1 :]], folder, environment, say)
    if args.detach or args.json or pick_screen(args) != "plain":
        for warning in warnings:
            say(f"warning: {warning}")
    return tuple(f"doctor: {warning}" for warning in warnings)


def _run(args: argparse.Namespace, spec: Callable[[str], Spec]) -> int:
    """Start the build that `spec` makes of the working folder, and watch it."""
    screen = None if args.detach else pick_screen(args)

    def checked(folder: str) -> Spec:
        made = spec(folder)
        if not args.again:
            check_alone(made.words, folder, OWN_FAILURE)
        return made

    paths = start_build(checked, early.keep)
    if screen is None:
        print(paths.id)
        return 0
    return show_own(paths, screen)


def demo(args: argparse.Namespace) -> int:
    """Write a small real build into a temporary folder and watch it."""
    from stoker.demo import make_demo

    if not 1.0 <= args.seconds <= 3600.0:
        raise CliError("--seconds is a number from 1 to 3600")
    screen = pick_screen(args)
    memory = bytes_of(args.memory)
    budget = min(_available_memory(), memory or sys.maxsize)
    folder = Path(tempfile.mkdtemp(prefix="stoker-demo-"))
    command = make_demo(folder, seconds=args.seconds, cores=os.cpu_count() or 1, memory_budget=budget, fail=args.fail)
    # In its own folder, so that "go on with the last build of this one" never means the demo.
    paths = start_build(lambda _: _spec(command, str(folder), "demo", args.jobs, memory), early.keep)
    status: int | None = None
    try:
        status = show_own(paths, screen, lasting=False)
        return status
    finally:
        if not is_live(paths) and status != LEFT:  # nor does one that goes on with it
            shutil.rmtree(folder, ignore_errors=True)


def show_own(paths: BuildPaths, screen: Screen, *, lasting: bool = True) -> int:
    """Watch a build that has been started here. What that takes is loaded while the engine starts beside it."""
    from stoker.cli.view import show_build

    return show_build(paths, screen, owner=True, lasting=lasting)


def start_build(spec: Callable[[str], Spec], ready: Callable[[], None] = lambda: None) -> BuildPaths:
    """Start the build that `spec` makes of the working folder. `ready` is called when all is ready for its start."""
    from stoker.cli.ramdisk import sweep

    try:
        cwd = os.getcwd()
        with contextlib.suppress(OSError):  # tidying up must not keep a build from starting
            prune_builds()
            sweep(os.environ)
        made = spec(cwd)
        ready()
        return launch(made)
    except FileNotFoundError as err:
        raise CliError("the working folder is gone; cd to one that exists", OWN_FAILURE) from err
    except (LaunchError, UnsafeFolderError) as err:
        raise CliError(str(err), OWN_FAILURE) from err


def _spec(words: Sequence[str], cwd: str, name: str, jobs: int | None, memory: int | None) -> Spec:
    """The build with a window for its schedulers."""
    window = window_of(cwd, jobs, memory)
    run = prepared(words, window, jobs, os.environ)
    return Spec(run.words, cwd, name, tuple(words), run.environment, jobs, memory, window, run.note)


def window_of(cwd: str, jobs: int | None, memory: int | None) -> int:
    """How wide schedulers are made on this machine."""
    from stoker.sense.machine import MachineReader

    machine = MachineReader(os.getpid(), cwd)
    return window_for(int(machine.cores), min(machine.memory(0).limit, memory or sys.maxsize), jobs)


def _check_command(command: str) -> None:
    """Say that a command cannot be run before there is a build, with the status a shell would give."""
    if shutil.which(command) is not None:
        return
    if "/" in command and Path(command).exists():
        remedy = "is a folder" if Path(command).is_dir() else "is not executable; chmod +x it, or name its interpreter"
        raise CliError(f"{command} {remedy}", NOT_EXECUTABLE)
    where = "no such file" if "/" in command else "not found on PATH"
    raise CliError(f"{command}: {where}; check the spelling, or install it", NOT_FOUND)


def _default_name(words: Sequence[str]) -> str:
    """The folder that is built, as people would call it: the project around `-C build`, else the working folder."""
    folder = Path.cwd()
    if "-C" in words[:-1]:
        folder = Path(folder, words[words.index("-C") + 1]).resolve()
    if folder.name.lower() in ("build", "out", "_build", "builddir", "release", "debug") and folder.parent.name:
        folder = folder.parent
    return folder.name or Path(words[0]).name


def bytes_of(memory: int | float | None) -> int | None:
    """What `--memory` allows in bytes; a share is one of the tightest limit around us."""
    if not isinstance(memory, float):
        return memory
    from stoker.sense.machine import MachineReader

    return int(memory * MachineReader(os.getpid(), "/").memory(0).limit)


def _available_memory() -> int:
    """Bytes that the demo may plan with: the tightest limit around us."""
    from stoker.sense.machine import MachineReader

    return MachineReader(os.getpid(), os.getcwd()).read(0.0).memory_available
