"""Writes the build's status for programs: one JSON object per line, at most one a second, and one at the end.

Does not know how the state was obtained. Strings are escaped to ASCII, so the lines are safe on a terminal.
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
"""Minimum seconds between two lines."""


async def run_json(source: UpdateSource, stdout: TextIO, *, interval: float = INTERVAL) -> None:
    """Write `{"type": "status", "link": ..., ...}` lines until the build has ended.

    The other keys are those of `stoker status --json`. If the reader goes away, the lines end, but not the watching.
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
    """The newest update that has not been written yet."""

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
        """Return the line to write, if there is one."""
        update, self._update = self._update, None
        self.changed.clear()
        return [] if update is None else [status_line(update)]


def status_line(update: Update) -> str:
    """Return one line for a program, without its newline. A replay's times are those of its journal."""
    now = update.state.time if update.link == "replay" else time.time()
    return json.dumps({"type": "status", "link": update.link, **status_of(update.state, now)}, separators=(",", ":"))
