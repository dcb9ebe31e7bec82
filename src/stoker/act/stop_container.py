"""Ends containers that a build has started, through their engine. Stdlib only: the supervisor uses it.

Unaware of builds. A podman container is below the build's own processes and needs no such help: only its monitor must
live until it has cleaned up. A docker container is below docker's daemon, and continues when its client is killed.
"""

import contextlib
import os
import signal

from stoker.act.tree import Processes, command_name
from stoker.contract.container_words import ContainerCommand

MONITOR = b"conmon"
"""Podman's process above a container: it notices the end, and calls podman to remove a container with `--rm`."""

HELPERS = frozenset((MONITOR, b"podman", b"runc", b"crun"))

TIDY_SECONDS = 15.0
"""How long, in addition to the grace period, monitors and engines may take to remove a container: podman needs a
second, and more on a busy disk."""

_STOP = """
ids=$("$1" ps -aq --no-trunc --filter "label=$2") && [ -n "$ids" ] || exit
"$1" stop -t "$3" $ids || "$1" kill $ids
if [ "$4" = rm ]; then "$1" rm -f $ids; fi
"""
"""`stop` sends SIGTERM and, after so many seconds, SIGKILL; a container with `--rm` may be gone before `rm`."""


def start_stopping(container: ContainerCommand, seconds: int) -> int:
    """Make the engine stop a container, kill it after `seconds`, and remove it; return the pid of the process that does
    so.

    0 if no process could be started.
    """
    words = [*container[:2], str(seconds), "rm" if container.remove else "keep"]
    nowhere = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)]
    with contextlib.suppress(OSError):
        return os.posix_spawn(
            "/bin/sh",
            ["sh", "-c", _STOP, "sh", *words],
            os.environ,
            file_actions=nowhere,
            setsigmask=[],
            setsigdef=[signal.SIGTERM, signal.SIGHUP],
        )
    return 0


def monitors(processes: Processes, root: int) -> list[int]:
    """Return the pids of podman's monitors, which `root` inherits as orphans, and of their cleanup commands."""
    found = [pid for pid in processes.children(root) if command_name(pid) == MONITOR]
    return [*found, *(pid for top in found for pid in processes.children(top) if command_name(pid) in HELPERS)]
