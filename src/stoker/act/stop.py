"""Ends a build from outside its keeper. Unaware of who asked and why."""

from __future__ import annotations

import json
import os
import signal

from stoker.act.tree import descendants, signal_tree, start_ticks
from stoker.config.paths import BuildPaths


class NothingToStopError(Exception):
    """Neither the keeper nor the build's own process lives."""


def stop_build(paths: BuildPaths, force: bool) -> None:
    """Ask the keeper to end the build: SIGTERM to all, SIGKILL later, or at once with `force`.

    Without a keeper the build's own tree is ended directly. Raises NothingToStopError.
    """
    try:
        known = json.loads(paths.keeper.read_bytes())
    except (OSError, ValueError):
        raise NothingToStopError(f"{paths.id} has no keeper") from None
    keeper, build = known["keeper_pid"], known["build_pid"]
    if start_ticks(keeper) == known["keeper_start"]:
        os.kill(keeper, signal.SIGINT if force else signal.SIGTERM)
    elif start_ticks(build) == known["build_start"]:
        tree = [build, *descendants(build)]
        signal_tree(tree, signal.SIGKILL if force else signal.SIGTERM)
    else:
        raise NothingToStopError(f"{paths.id} does not run any more")
