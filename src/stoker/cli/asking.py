"""Sends a command to a running build and prints the resulting state on stderr. Unaware of how it is governed."""

from __future__ import annotations

import asyncio
import sys

from stoker.cli.errors import FAILURE, CliError
from stoker.cli.which_build import find
from stoker.config.paths import BuildPaths
from stoker.launch.live_build import SilentEngineError, ask
from stoker.model.state import BuildState
from stoker.model.update import CommandRefused
from stoker.record.builds import AmbiguousBuildError, is_live
from stoker.show.level_text import level_text


def live_build(name: str | None, unknown: str | None = None) -> BuildPaths:
    """Find the requested build, which must be running. `unknown` is the word that might have been a level. Raises
    CliError."""
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


def ask_engine(paths: BuildPaths, verb: str, arguments: dict[str, object]) -> int:
    """Ask the engine, and print the resulting state. Raises CliError."""
    return print_level(answer_of(paths, verb, arguments))


def answer_of(paths: BuildPaths, verb: str, arguments: dict[str, object]) -> BuildState:
    """Ask the engine, and return the resulting state. Raises CliError."""
    try:
        return asyncio.run(ask(paths, verb, arguments))
    except CommandRefused as refusal:
        raise CliError(str(refusal), FAILURE) from refusal
    except SilentEngineError as err:
        raise CliError("no engine answers; the build goes on, try again in a moment", FAILURE) from err


def print_level(state: BuildState) -> int:
    """Print the level as narration."""
    print(f"stoker: {level_text(state)}", file=sys.stderr)
    return 0
