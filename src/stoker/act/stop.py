"""Ends a build from outside its keeper, or sets it going. Unaware of who asked and why."""

from __future__ import annotations

import json
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
    running = _running(paths)
    if "keeper" in running:
        signal_tree([running["keeper"]], signal.SIGINT if force else signal.SIGTERM)
    else:
        tree = [running["build"], *descendants(running["build"])]
        signal_tree(tree, signal.SIGKILL if force else signal.SIGTERM)


def set_going(paths: BuildPaths) -> int:
    """Set going whatever of a build is stopped, its engine included; how many processes that were.

    Raises NothingToStopError.
    """
    roots = list(_running(paths).values())
    processes, gate = Processes(), read_gate(str(paths.root))
    held = {pid for key in gate.stopped for pid in gate.pids(processes, key)} if gate is not None else set[int]()
    found = held.union(roots, *(processes.below(root) for root in roots))
    stopped = sum(stat_fields(pid)[:1] == [b"T"] for pid in found)
    # To all: a shell that has vforked does not show its stop while it waits for its child, and would stop after it.
    signal_tree(found, signal.SIGCONT)
    return stopped


def _running(paths: BuildPaths) -> dict[str, int]:
    """Who of `keeper` and `build` runs, by what the keeper wrote; raises NothingToStopError if neither does.

    A pid counts only with its birth: one below 1 would stand for all processes there are (kill(2)).
    """
    try:
        with open_regular(paths.keeper) as file:
            known = json.loads(file.read())
    except (OSError, ValueError):
        raise NothingToStopError(f"{paths.id} has no keeper") from None
    told = known if isinstance(known, dict) else {}
    pids = {who: (told.get(f"{who}_pid"), told.get(f"{who}_start")) for who in ("keeper", "build")}
    running = {who: pid for who, (pid, start) in pids.items() if type(pid) is int and pid > 0 and _is(pid, start)}
    if not running:
        raise NothingToStopError(f"{paths.id} does not run any more")
    return running


def _is(pid: int, start: object) -> bool:
    return start is not None and start_ticks(pid) == start
