"""Wake up when a .ninja_log changes.

Unaware of what is in it. Watches folders, not their trees: a build folder has tens of thousands of files.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterable

from watchfiles import Change, awatch

LOG_NAME = ".ninja_log"

STEP_MS = 250
"""Changes within this time become one wake-up; ninja writes a line per job."""


async def watch(directories: Iterable[str], stop: asyncio.Event | None = None) -> AsyncIterator[set[str]]:
    """The folders whose log changed, again and again until `stop` is set. Folders that do not exist are left out."""
    folders = _existing(directories)
    if not folders:
        return
    changes = awatch(
        *folders, watch_filter=_is_log, stop_event=stop, step=STEP_MS, debounce=4 * STEP_MS, recursive=False
    )
    async for batch in changes:
        yield {os.path.dirname(path) for _, path in batch}


def _existing(directories: Iterable[str]) -> list[str]:
    return [d for d in directories if os.path.isdir(d)]


def _is_log(_change: Change, path: str) -> bool:
    return os.path.basename(path) == LOG_NAME
