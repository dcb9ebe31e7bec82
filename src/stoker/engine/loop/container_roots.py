"""Finds the first process of the container that a step's docker has started, since it is not below the build.

Podman's containers are below the build, through their monitor. Unaware of what is done with such a process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from stoker.contract.container_words import ContainerCommand, container_command
from stoker.engine.steps import Roots
from stoker.sense.proc.printed import printed

POLL_SECONDS, SLOW_POLL_SECONDS = 0.5, 3.0
"""Seconds between two queries: docker starts a container in about a second, unless it has to pull the image first."""

QUICK_POLLS = 60

ANSWER_SECONDS = 10.0
"""How long docker may take to answer; it takes some 30 ms."""


class ContainerRoots:
    """The container of the current command. `found` is called with the pid of its first process."""

    def __init__(self, found: Callable[[int], None]) -> None:
        self._found = found
        self._build = 0
        self._task: asyncio.Task[None] | None = None

    def follow(self, roots: Roots) -> None:
        """Look for the container of this command from now on."""
        if roots.build == self._build:
            return
        self._build = roots.build
        self.close()
        container = container_command(roots.command)
        if container is not None and container.engine.rpartition("/")[2] == "docker":
            self._task = asyncio.get_running_loop().create_task(self._look_for(container))

    async def _look_for(self, container: ContainerCommand) -> None:
        polls = 0
        while not (pid := await _first_process(container)):
            polls += 1
            await asyncio.sleep(POLL_SECONDS if polls < QUICK_POLLS else SLOW_POLL_SECONDS)
        self._found(pid)

    def close(self) -> None:
        """Stop looking."""
        if self._task is not None:
            self._task.cancel()
            self._task = None


async def _first_process(container: ContainerCommand) -> int:
    """Return the pid of a container's first process, as seen from outside; 0 while there is none."""
    ids = await _ask(container.engine, "ps", "-q", "--no-trunc", "--filter", f"label={container.label}")
    pid = await _ask(container.engine, "inspect", "-f", "{{.State.Pid}}", *ids[:1]) if ids else []
    return int(pid[0]) if pid and pid[0].isdigit() else 0


async def _ask(*words: str) -> list[str]:
    """Return the words that a command prints; none if it fails or does not answer."""
    return (await printed(words, ANSWER_SECONDS) or "").split()
