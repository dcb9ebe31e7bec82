"""Wakes the loop when ninja writes into one of its logs. Unaware of what is in them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from stoker.sense.watch import watch


class LogWatch:
    """Watches folders with logs; `changed` is called in this loop when one of them has changed."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._folders: frozenset[str] = frozenset()
        self._task: asyncio.Task[None] | None = None

    def watch(self, folders: frozenset[str]) -> None:
        """Watch these folders from now on, and no others."""
        if folders == self._folders:
            return
        self._folders = folders
        if self._task is not None:
            self._task.cancel()
        self._task = asyncio.create_task(self._wake(folders))

    async def _wake(self, folders: frozenset[str]) -> None:
        async for _ in watch(folders):
            self._changed()
