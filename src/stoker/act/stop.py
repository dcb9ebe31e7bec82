"""Ends or continues a build from outside its supervisor. Does not know who asked and why."""

from __future__ import annotations

import signal

from stoker.act.held import held_pids
from stoker.act.tree import Processes, descendants, signal_tree
from stoker.config.paths import BuildPaths
from stoker.contract.gate_file import read_gate
from stoker.contract.process import stat_fields
from stoker.contract.strict_json import load_or_none
from stoker.contract.supervisor_files import SupervisorRecord


class NothingToStopError(Exception):
    """Neither the supervisor nor the build's own process is alive."""


def stop_build(paths: BuildPaths, force: bool) -> None:
    """Ask the supervisor to end the build: SIGTERM to all, SIGKILL later, or at once with `force`.

    Without a supervisor the build's own tree is ended directly. Raises NothingToStopError.
    """
    supervisors, build = running(paths)
    if supervisors:
        signal_tree(supervisors[:1], signal.SIGINT if force else signal.SIGTERM)
        signal_tree(supervisors, signal.SIGCONT)
    else:
        tree = [*build, *(pid for root in build for pid in descendants(root))]
        signal_tree(tree, signal.SIGKILL if force else signal.SIGTERM)


def at_its_place(record: SupervisorRecord) -> str:
    """Return how to get at a build that runs in a container, or outside of ours, as a request."""
    return f"use stoker where it runs: podman exec -it {record.host} stoker attach (or docker exec)"


def continue_build(paths: BuildPaths) -> int:
    """Continue whatever of a build is stopped, including its engine; return how many processes that were.

    Raises NothingToStopError.
    """
    supervisors, build = running(paths)
    roots = [*supervisors, *build]
    processes = Processes()
    pids = held_pids(read_gate(paths.root), processes).union(roots, *(processes.below(root) for root in roots))
    stopped = sum(stat_fields(pid)[:1] == [b"T"] for pid in pids)
    # To all: a shell that has vforked shows no stop while it waits for its child, and would stop after it.
    signal_tree(pids, signal.SIGCONT)
    return stopped


def running(paths: BuildPaths) -> tuple[list[int], list[int]]:
    """Return the live supervisors, the acting one first, and the build's command, from supervisor.json.

    Raises NothingToStopError if none of it runs.
    """
    record = load_or_none(SupervisorRecord, paths.supervisor)
    if record is None:
        raise NothingToStopError(f"{paths.id} has no supervisor")
    supervisors = [pid for pid, _ in record.living_supervisors()]
    build = [key[0] for key in (record.living_build(),) if key is not None]
    if not supervisors and not build and record.may_live_unseen():
        raise NothingToStopError(f"{paths.id} runs in another PID namespace, out of reach; {at_its_place(record)}")
    if not supervisors and not build:
        raise NothingToStopError(f"{paths.id} does not run any more")
    return supervisors, build
