"""`stoker jobs`: how many jobs of a build may run."""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
from typing import Literal

from stoker.cli.arguments import LEVELS, level_of
from stoker.cli.asking import ask_engine, live_build
from stoker.cli.commands.status import current, distance_of
from stoker.cli.errors import CliError
from stoker.config.paths import BuildPaths
from stoker.model.state import BuildState
from stoker.model.text import clean
from stoker.show.level_text import level_text

NUMBER = re.compile(r"[+-]?\d+", re.ASCII)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `stoker jobs`."""
    parser.add_argument(
        "words",
        nargs="*",
        metavar="[ID] [N|auto]",
        help="a build, and how many jobs may run (default: print the level)",
    )
    parser.add_argument(
        "--ignore-memory",
        action="store_true",
        help="with N: start jobs regardless of memory, until the level is set again",
    )


def run(args: argparse.Namespace) -> int:
    """Set the level, or print it. Raises CliError."""
    name, level = _understood(args.words)
    if args.ignore_memory and not isinstance(level, int):
        raise CliError("--ignore-memory goes with a number, as in: stoker jobs 12 --ignore-memory")
    paths = live_build(name, unknown=args.words[-1] if len(args.words) == 1 else None)
    if level is None:
        return _print_level(paths)
    state = asyncio.run(current(paths)).state
    if _is_set(state, level, guarded=not args.ignore_memory):
        print(f"stoker: nothing changes: {level_text(state)}", file=sys.stderr)
        return 0
    arguments: dict[str, object] = {"jobs": None if level == "auto" else level}
    if args.ignore_memory:
        arguments["ignore_memory"] = True
    return ask_engine(paths, "level", arguments)


def _is_set(state: BuildState, level: int | Literal["auto"], *, guarded: bool) -> bool:
    """Whether this level is set already: to ask for it once more is no fault, so a script need not know."""
    now = state.level
    if now.guarded != guarded or now.target is None:
        return False
    if level == "auto":
        return now.mode == "auto" and not any(job.alone_by for job in state.jobs.values())
    return now.mode == "manual" and now.target == level


def _understood(words: list[str]) -> tuple[str | None, int | Literal["auto"] | None]:
    """Return the build and the level among the words: a word that looks like a level is one; of two such words the
    second. Raises CliError."""
    if len(words) > 2:
        raise CliError("jobs takes a build and a number at most, as in: stoker jobs mybuild 12")
    if not words:
        return None, None
    *first, last = words
    if first and level_of(last) is None and not NUMBER.fullmatch(last) and level_of(first[0]) is not None:
        first, last = [last], first[0]
    level = level_of(last)
    if level is None and (first or NUMBER.fullmatch(last)):
        raise CliError(f"{last!r} is not a level; write {LEVELS}; to run nothing: stoker pause")
    if level is None:
        return last, None
    return (first[0] if first else None), level


def _print_level(paths: BuildPaths) -> int:
    """Print the level on stdout, as the answer to a question."""
    update = asyncio.run(current(paths))
    print(level_text(update.state))
    if distance := distance_of(update):
        print(f"stoker: as of {clean(distance)}", file=sys.stderr)
    return 0
