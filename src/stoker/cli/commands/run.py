"""`stoker run`: start a build under a supervisor, then look at it like any other viewer."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from dataclasses import replace

from stoker.cli import arguments, early
from stoker.cli.errors import CliError
from stoker.cli.narration import say, warn
from stoker.cli.screen import Screen, pick_screen
from stoker.config.paths import BuildPaths
from stoker.launch.duplicate import beside, check_alone, live_specs
from stoker.launch.from_command import above_limit, bytes_of, check_command, command_build, default_name
from stoker.launch.notify import notify_command
from stoker.launch.request import BuildRequest
from stoker.launch.start import start_build


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `stoker run`."""
    arguments.screen(parser)
    arguments.limits(parser)
    parser.add_argument("--detach", action="store_true", help="start the build, print its ID, and return")
    parser.add_argument("--dry-run", action="store_true", help="print what would run, without running it")
    parser.add_argument("-p", "--profile", metavar="NAME", help="run the steps of a profile ('stoker profiles list')")
    arguments.settings(parser)
    parser.add_argument(
        "--no-doctor", action="store_true", help="with -p: start even if 'stoker doctor' says that it cannot succeed"
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="resume the last build of this folder, or of -p, or build ID, at the step where it stopped",
    )
    parser.add_argument("--remedy", action="store_true", help="with --resume: apply the remedy of the diagnosis first")
    parser.add_argument(
        "--again", action="store_true", help="start it even if the same command already runs in this folder"
    )
    parser.add_argument(
        "--notify",
        metavar="COMMAND",
        help="a shell command to call at the end, a failure, a kill for memory, or a wait for you ('': none)",
    )
    parser.add_argument("--name", help="name of the build (default: the folder's name)")
    parser.add_argument(
        "words",
        nargs=argparse.REMAINDER,
        metavar="COMMAND...",
        help="the command, after --; after -p: extra arguments for it",
    )


def run(args: argparse.Namespace) -> int:
    """Start the command and watch it; returns the build's own exit status, 130 when a person stopped it."""
    if args.resume and args.profile is None:
        args = _with_options_behind(args)
    words = args.words[1:] if args.words[:1] == ["--"] else args.words
    if args.remedy and (not args.resume or args.profile is not None):
        raise CliError("--remedy goes with --resume, and with a build's ID if it is not the last one of this folder")
    if args.profile is not None:
        return _start(args, lambda folder: _of_profile(args, words, folder))
    if args.set:
        raise CliError("--set goes with a profile, as in: stoker run -p pytorch --set arch=8.0")
    if args.resume:
        if args.dry_run:
            raise CliError("--dry-run does not go with --resume; 'stoker status' shows where the build stopped")
        return _resume(args, words)
    if not words:
        raise CliError("run needs a command; write it after --, as in: stoker run -- ninja -C build")
    if words[0].startswith("-"):
        raise CliError(f"run has no option {words[0]!r}; see 'stoker run --help', and put the build's command after --")
    check_command(words[0])
    memory = bytes_of(args.memory)
    return _start(
        args, lambda folder: command_build(words, folder, args.name or default_name(words), args.jobs, memory)
    )


def show_own(paths: BuildPaths, screen: Screen | None, *, lasting: bool = True) -> int:
    """Watch a build that has been started here, or print its ID where nobody wants to watch.

    What that takes is loaded while the engine starts beside it.
    """
    if screen is None:
        print(paths.id)
        return 0
    from stoker.cli.watch import show_build

    return show_build(paths, screen, owner=True, lasting=lasting)


def _of_profile(args: argparse.Namespace, extra: Sequence[str], folder: str) -> BuildRequest:
    from stoker.launch.from_profile import plan_of, profile_build

    plan = plan_of(args.profile, dict(args.set), extra, folder, resume=args.resume)
    name = args.name or default_name(plan.words)
    request = profile_build(plan, folder, name, args.jobs, bytes_of(args.memory), os.environ)
    if args.no_doctor:
        return request
    from stoker.launch.precheck import with_precheck

    return with_precheck(plan, request, say, _warner(args))


def _warner(args: argparse.Namespace) -> Callable[[str], None]:
    """Return what says the doctor's warnings: nothing where plain lines do it, as notices of the build."""
    plain = not args.detach and not args.json and pick_screen(args) == "plain"
    return (lambda _: None) if plain else warn


def _start(args: argparse.Namespace, make: Callable[[str], BuildRequest]) -> int:
    """Start the build that `make` makes of the working folder, and watch it."""
    notify = notify_command(args.notify)

    def made(folder: str) -> BuildRequest:
        request = make(folder)
        return replace(request, spec=request.spec._replace(notify=notify))

    if args.dry_run:
        from stoker.cli.dry_run import dry_run_lines

        print("\n".join(dry_run_lines(made(os.getcwd()))))
        return 0
    screen = None if args.detach else pick_screen(args)
    if args.detach:  # the build's own notice of it would be seen by nobody now
        for text in above_limit(bytes_of(args.memory)):
            warn(text)

    def checked(folder: str) -> BuildRequest:
        request = made(folder)
        words, live = request.spec.words, live_specs()
        if not args.again:
            check_alone(words, folder, ("stoker", "run", "--again", *args.given[1:]), live)
        others = beside(words, folder, live)
        for text in others if args.detach else ():
            warn(text)
        return request.noticing(*others)

    return show_own(start_build(checked, say, early.keep), screen)


def _with_options_behind(args: argparse.Namespace) -> argparse.Namespace:
    """Return the arguments with the options that stand behind the ID of the build to resume: `run --resume ID --plain`.
    Behind a command they would be its own, so nobody has read them yet."""
    build, *rest = args.words or [""]
    if build.startswith("-") or not any(word.startswith("-") for word in rest):
        return args
    from stoker.cli.main import parsed

    before = args.given[: len(args.given) - len(args.words)]
    known = parsed([*before, *rest, build])
    if known.profile is not None:
        raise CliError("--resume takes a build's ID or -p, not both")
    return known


def _resume(args: argparse.Namespace, words: Sequence[str]) -> int:
    from stoker.launch.resume import ResumeRequest, resume

    screen = None if args.detach else pick_screen(args)
    if words and words[0].startswith("-"):
        raise CliError(f"run has no option {words[0]!r}; see 'stoker run --help'")
    if len(words) > 1:
        raise CliError(f"--resume takes a build at most, and these are {len(words)}: {' '.join(words)}")
    wish = ResumeRequest(
        words[0] if words else None,
        args.remedy,
        args.jobs,
        bytes_of(args.memory),
        args.name or "",
        args.again,
        args.no_doctor,
        args.notify,
    )
    paths, decision = resume(wish, say, _warner(args))
    if screen is not None:
        say(decision.what)
    return show_own(paths, screen)
