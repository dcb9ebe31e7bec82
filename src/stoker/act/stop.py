"""Ends a build from outside its keeper, or sets it going. Unaware of who asked and why."""

from __future__ import annotations

import json
import signal

from stoker.act.minder import read_gate
from stoker.act.standby import living_keepers
from stoker.act.tree import Processes, descendants, signal_tree, start_ticks, stat_fields
from stoker.config.paths import BuildPaths
from stoker.config.regular import open_regular


class NothingToStopError(Exception):
    """Neither the keeper nor the build's own process lives."""


def stop_build(paths: BuildPaths, force: bool) -> None:
    """Ask the keeper to end the build: SIGTERM to all, SIGKILL later, or at once with `force`.

    Without a keeper the build's own tree is ended directly. Raises NothingToStopError.
    """
    keepers, build = running(paths)
    if keepers:
        signal_tree(keepers[:1], signal.SIGINT if force else signal.SIGTERM)
        signal_tree(keepers, signal.SIGCONT)
    else:
        tree = [*build, *(pid for root in build for pid in descendants(root))]
        signal_tree(tree, signal.SIGKILL if force else signal.SIGTERM)


def set_going(paths: BuildPaths) -> int:
    """Set going whatever of a build is stopped, its engine included; how many processes that were.

    Raises NothingToStopError.
    """
    keepers, build = running(paths)
    roots = [*keepers, *build]
    processes, gate = Processes(), read_gate(str(paths.root))
    held = {pid for key in gate.stopped for pid in gate.pids(processes, key)} if gate is not None else set[int]()
    found = held.union(roots, *(processes.below(root) for root in roots))
    stopped = sum(stat_fields(pid)[:1] == [b"T"] for pid in found)
    # To all: a shell that has vforked does not show its stop while it waits for its child, and would stop after it.
    signal_tree(found, signal.SIGCONT)
    return stopped


def running(paths: BuildPaths) -> tuple[list[int], list[int]]:
    """The keepers that live, the acting one first, and the build's command, by what the keeper wrote.

    Raises NothingToStopError if nothing of it runs.

    A pid counts only with its birth: one below 1 would stand for all processes there are (kill(2)).
    """
    try:
        with open_regular(paths.keeper) as file:
            known = json.loads(file.read())
    except (OSError, ValueError):
        raise NothingToStopError(f"{paths.id} has no keeper") from None
    told = known if isinstance(known, dict) else {}
    keepers = [pid for pid, _ in living_keepers(told)]
    pid, start = told.get("build_pid"), told.get("build_start")
    build = [pid] if type(pid) is int and pid > 0 and start is not None and start_ticks(pid) == start else []
    if not keepers and not build:
        raise NothingToStopError(f"{paths.id} does not run any more")
    return keepers, build
