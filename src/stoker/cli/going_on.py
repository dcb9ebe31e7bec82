"""Goes on with a failed build for a screen: by the very command that a person could type, in a process of its own.

So nothing of the screen's terminal and signals reaches the build. Unaware of what that command does.
"""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE

from stoker.config.paths import BuildPaths, build_paths
from stoker.model.text import clean
from stoker.model.update import CommandRefused

PATIENCE_SECONDS = 90.0
"""A start takes a second, git's answer on submodules up to a minute on a slow file server."""

MAX_ANSWER = 1 << 16


class GoingOn:
    """Asks for it; `next` is the build that goes on, once there is one."""

    def __init__(self, paths: BuildPaths) -> None:
        self._paths = paths
        self.next: BuildPaths | None = None

    async def __call__(self, *, remedy: bool) -> None:
        """Start it, with the diagnosis's remedy if wanted. Raises CommandRefused."""
        words = ["run", "--detach", "--resume", *(["--remedy"] if remedy else []), self._paths.id]
        try:
            # -P: as for the engine itself, the working folder must not shadow our modules.
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "stoker", *words),
                stdin=DEVNULL,
                stdout=PIPE,
                stderr=PIPE,
                start_new_session=True,
                cwd="/",  # ours may be gone; the build has its own
                limit=MAX_ANSWER,
            )
            async with asyncio.timeout(PATIENCE_SECONDS):
                out, complaint = await process.communicate()
        except TimeoutError as err:
            raise CommandRefused("no answer so far; 'stoker ls' shows whether it goes on") from err
        except OSError as err:
            raise CommandRefused(f"cannot start it: {err.strerror}") from err
        if process.returncode != 0:
            told = complaint.decode("utf-8", "replace").strip().rpartition("\n")[2].removeprefix("stoker: ")
            raise CommandRefused(clean(told) or f"exit status {process.returncode}")
        self.next = build_paths(out.decode("ascii", "replace").strip())
