"""`stoker run`: start a build under a keeper, then look at it like any other viewer."""

from __future__ import annotations

import argparse
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from stoker.act.launch import Spec
from stoker.cli import early
from stoker.cli.errors import NOT_EXECUTABLE, NOT_FOUND, OWN_FAILURE, CliError
from stoker.cli.screen import pick_screen
from stoker.cli.starting import bytes_of, examined, show_own, spec_of_command, start_build, window_of
from stoker.cli.twin import check_alone


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

    def spec(folder: str) -> Spec:
        return spec_of_command(words, folder, args.name or _default_name(words), args.jobs, memory)

    return _run(args, spec)


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
