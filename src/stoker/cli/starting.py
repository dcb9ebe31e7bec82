"""Starts a build that was made up elsewhere, and shows it: what `run`, `run --resume` and `demo` have in common."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from stoker.act.launch import LaunchError, Spec, launch
from stoker.cli.errors import OWN_FAILURE, CliError
from stoker.cli.mend import mend_all
from stoker.cli.screen import Screen, pick_screen
from stoker.cli.window import prepared, window_for
from stoker.config.paths import BuildPaths, UnsafeFolderError
from stoker.model.text import clean
from stoker.record.builds import prune_builds

if TYPE_CHECKING:
    from stoker.cli.steps import Plan


def spec_of_command(
    words: Sequence[str],
    cwd: str,
    name: str,
    jobs: int | None,
    memory: int | None,
    environ: Mapping[str, str] | None = None,
) -> Spec:
    """The build of one command, with a window for its schedulers. `environ` is its environment if it is not ours."""
    window = window_of(cwd, jobs, memory)
    run = prepared(words, window, jobs, os.environ if environ is None else environ)
    return Spec(
        run.words, cwd, name, tuple(words), run.environment, jobs, memory, window, note=run.note, environ=environ
    )


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


def start_build(spec: Callable[[str], Spec], ready: Callable[[], None] = lambda: None) -> BuildPaths:
    """Start the build that `spec` makes of the working folder. `ready` is called when all is ready for its start."""
    from stoker.cli.ramdisk import sweep

    try:
        cwd = os.getcwd()
        with contextlib.suppress(OSError):  # tidying up must not keep a build from starting
            mend_all()
            prune_builds()
            sweep(os.environ)
        made = spec(cwd)
        ready()
        return launch(made)
    except FileNotFoundError as err:
        raise CliError("the working folder is gone; cd to one that exists", OWN_FAILURE) from err
    except (LaunchError, UnsafeFolderError) as err:
        raise CliError(str(err), OWN_FAILURE) from err


def show_own(paths: BuildPaths, screen: Screen, *, lasting: bool = True) -> int:
    """Watch a build that has been started here. What that takes is loaded while the engine starts beside it."""
    from stoker.cli.view import show_build

    return show_build(paths, screen, owner=True, lasting=lasting)


def window_of(cwd: str, jobs: int | None, memory: int | None) -> int:
    """How wide schedulers are made on this machine."""
    from stoker.sense.machine.machine import MachineReader

    machine = MachineReader(os.getpid(), cwd)
    return window_for(int(machine.cores), min(machine.memory(0).limit, memory or sys.maxsize), jobs)


def bytes_of(memory: int | float | None) -> int | None:
    """What `--memory` allows in bytes; a share is one of the tightest limit around us."""
    if not isinstance(memory, float):
        return memory
    from stoker.sense.machine.machine import MachineReader

    return int(memory * MachineReader(os.getpid(), "/").memory(0).limit)
