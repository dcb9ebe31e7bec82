"""Ends a build from outside its keeper, or sets it going. Unaware of who asked and why."""

from __future__ import annotations

import json
import os
import signal

from stoker.act.minder import read_gate
from stoker.act.tree import Processes, descendants, signal_tree, start_ticks, stat_fields
from stoker.config.paths import BuildPaths
from stoker.config.regular import open_regular


class NothingToStopError(Exception):
    """Neither the keeper nor the build's own process lives."""


def stop_build(paths: BuildPaths, force: bool) -> None:
    """Ask the keeper to end the build: SIGTERM to all, SIGKILL later, or at once with `force`.

    Without a keeper the build's own tree is ended directly. Raises NothingToStopError.
    """
    known = _known(paths)
    keeper, build = known["keeper_pid"], known["build_pid"]
    if start_ticks(keeper) == known["keeper_start"]:
        os.kill(keeper, signal.SIGINT if force else signal.SIGTERM)
    elif start_ticks(build) == known["build_start"]:
        tree = [build, *descendants(build)]
        signal_tree(tree, signal.SIGKILL if force else signal.SIGTERM)
    else:
        raise NothingToStopError(f"{paths.id} does not run any more")


def set_going(paths: BuildPaths) -> int:
    """Set going whatever of a build is stopped, its engine included; how many processes that were.

    Raises NothingToStopError.
    """
    known = _known(paths)
    roots = [
        known[f"{who}_pid"] for who in ("keeper", "build") if start_ticks(known[f"{who}_pid"]) == known[f"{who}_start"]
    ]
    if not roots:
        raise NothingToStopError(f"{paths.id} does not run any more")
    processes, gate = Processes(), read_gate(str(paths.root))
    held = {pid for key in gate.stopped for pid in gate.pids(processes, key)} if gate is not None else set[int]()
    found = held.union(roots, *(processes.below(root) for root in roots))
    stopped = sum(stat_fields(pid)[:1] == [b"T"] for pid in found)
    # To all: a shell that has vforked does not show its stop while it waits for its child, and would stop after it.
    signal_tree(found, signal.SIGCONT)
    return stopped


def _known(paths: BuildPaths) -> dict[str, int]:
    """Who keeps the build, as the keeper wrote it."""
    try:
        with open_regular(paths.keeper) as file:
            known: dict[str, int] = json.loads(file.read())
    except (OSError, ValueError):
        raise NothingToStopError(f"{paths.id} has no keeper") from None
    return known
