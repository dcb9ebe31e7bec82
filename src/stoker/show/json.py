"""The build for programs: a JSON object per line, each a whole status, at most one a second and one at the end.

Unaware of how the state was obtained. Strings from the build are escaped to ASCII, so the lines harm no terminal.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from typing import TextIO

from stoker.model.status import status_of
from stoker.model.update import Update
from stoker.show.sink import Sink
from stoker.show.update_source import UpdateSource

INTERVAL = 1.0
"""Least seconds between two lines."""


async def run_json(source: UpdateSource, stdout: TextIO, *, interval: float = INTERVAL) -> None:
    """Write `{"type": "status", "link": ..., ...}` lines until the build has ended.

    The other keys are those of `stoker status --json`. A reader that goes away ends the lines, not the watching.
    """
    sink = Sink(stdout)
    newest = _Newest()
    follower = asyncio.create_task(newest.follow(source))
    try:
        while not newest.over.is_set():
            await newest.changed.wait()
            await sink.write(newest.take())
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(newest.over.wait(), interval)
        await sink.write(newest.take())
    finally:
        follower.cancel()
        await asyncio.wait([follower])
    if not follower.cancelled():
        follower.result()


class _Newest:
    """The newest update that was not written yet."""

    def __init__(self) -> None:
        self.changed = asyncio.Event()
        self.over = asyncio.Event()
        self._update: Update | None = None

    async def follow(self, source: UpdateSource) -> None:
        try:
            async for update in source.updates():
                self._update = update
                self.changed.set()
        finally:
            self.over.set()
            self.changed.set()

    def take(self) -> list[str]:
        """The line to write, if there is one."""
        update, self._update = self._update, None
        self.changed.clear()
        return [] if update is None else [status_line(update)]


def status_line(update: Update) -> str:
    """One line for a program, without its line end. A replay's times are those of its journal."""
    now = update.state.time if update.link == "replay" else time.time()
    return json.dumps({"type": "status", "link": update.link, **status_of(update.state, now)}, separators=(",", ":"))
