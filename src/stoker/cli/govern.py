"""`jobs`, `pause`, `resume`: a person's word to a build that runs. What is so afterwards is said in one line on stderr.

Unaware of how a build is governed.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
from typing import Literal

from stoker.act.stop import NothingToStopError
from stoker.cli.errors import FAILURE, CliError
from stoker.cli.limits import LEVELS, level_of
from stoker.cli.query import current, distance_of
from stoker.cli.view import find
from stoker.config.paths import BuildPaths
from stoker.launch.live_build import NoAnswerError, ask, end_pause
from stoker.model.state import BuildState
from stoker.model.text import clean
from stoker.model.update import CommandRefused
from stoker.record.builds import AmbiguousBuildError, is_live
from stoker.show.level_text import level_text

NUMBER = re.compile(r"[+-]?\d+", re.ASCII)


def add_jobs(parser: argparse.ArgumentParser) -> None:
    """The words of `stoker jobs`."""
    parser.add_argument(
        "words",
        nargs="*",
        metavar="[ID] [N|auto]",
        help="a build, and how many jobs may run (default: print the level)",
    )
    parser.add_argument(
        "--ignore-memory",
        action="store_true",
        help="with N: start jobs whatever memory they need, until the level is set again",
    )


def add_pause(parser: argparse.ArgumentParser) -> None:
    """The words of `stoker pause`."""
    _add_id(parser)
    parser.add_argument("--now", action="store_true", help="freeze what runs, too, instead of letting it end")


def add_resume(parser: argparse.ArgumentParser) -> None:
    """The words of `stoker resume`."""
    _add_id(parser)


def _add_id(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "id", nargs="?", metavar="ID", help="a build's ID, name or the start of one (default: the live one)"
    )


def jobs(args: argparse.Namespace) -> int:
    """Set the level, or print it. Raises CliError."""
    name, level = _understood(args.words)
    if args.ignore_memory and not isinstance(level, int):
        raise CliError("--ignore-memory goes with a number, as in: stoker jobs 12 --ignore-memory")
    paths = _live(name, unknown=args.words[-1] if len(args.words) == 1 else None)
    if level is None:
        return _print_level(paths)
    arguments: dict[str, object] = {"jobs": None if level == "auto" else level}
    if args.ignore_memory:
        arguments["ignore_memory"] = True
    return _ask(paths, "level", arguments)


def pause(args: argparse.Namespace) -> int:
    """Start nothing new, or freeze everything. Raises CliError."""
    return _ask(_live(args.id), "pause", {"now": args.now})


def resume(args: argparse.Namespace) -> int:
    """Go on after a pause. Raises CliError."""
    try:
        outcome = asyncio.run(end_pause(_live(args.id)))
    except (CommandRefused, NothingToStopError) as err:
        raise CliError(str(err), FAILURE) from err
    if isinstance(outcome, BuildState):
        return _say(outcome)
    print(f"stoker: no engine answers; processes that were stopped and go on now: {outcome}", file=sys.stderr)
    return 0


def _understood(words: list[str]) -> tuple[str | None, int | Literal["auto"] | None]:
    """The build and the level among the words: a word that looks like a level is one. Raises CliError."""
    if len(words) > 2:
        raise CliError("jobs takes a build and a number at most, as in: stoker jobs mybuild 12")
    if not words:
        return None, None
    *first, last = words
    level = level_of(last)
    if level is None and (first or NUMBER.fullmatch(last)):
        raise CliError(f"{last!r} is no level; write {LEVELS}; to run nothing: stoker pause")
    if level is None:
        return last, None
    return (first[0] if first else None), level


def _live(name: str | None, unknown: str | None = None) -> BuildPaths:
    """The build meant, which must run. `unknown` is the word that could have been a level as well. Raises CliError."""
    try:
        paths = find(name)
    except CliError as err:
        if unknown is None or name is None or isinstance(err.__cause__, AmbiguousBuildError):
            raise
        raise CliError(
            f"{unknown!r} is neither a level (a number or auto) nor a build; 'stoker ls' lists builds"
        ) from err
    if not is_live(paths):
        raise CliError(f"{paths.id} has ended already; 'stoker status {paths.id}' says how", FAILURE)
    return paths


def _print_level(paths: BuildPaths) -> int:
    """The level as the answer to a question, on stdout."""
    update = asyncio.run(current(paths))
    print(level_text(update.state))
    if distance := distance_of(update):
        print(f"stoker: as of {clean(distance)}", file=sys.stderr)
    return 0


def _ask(paths: BuildPaths, verb: str, arguments: dict[str, object]) -> int:
    try:
        return _say(asyncio.run(ask(paths, verb, arguments)))
    except CommandRefused as refusal:
        raise CliError(str(refusal), FAILURE) from refusal
    except NoAnswerError as err:
        raise CliError("no engine answers; the build goes on, try again in a moment", FAILURE) from err


def _say(state: BuildState) -> int:
    print(f"stoker: {level_text(state)}", file=sys.stderr)
    return 0
