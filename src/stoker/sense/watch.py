"""Wake up when a .ninja_log changes.

Unaware of what is in it. Watches folders, not their trees: a build folder has tens of thousands of files.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterable

from watchfiles import Change, awatch

from stoker.sense.file_watch import can_be_watched

LOG_NAME = ".ninja_log"

AGAIN_SECONDS = 1.0
"""Until folders are watched anew that could not be."""

STEP_MS = 250
"""Changes within this time become one wake-up; ninja writes a line per job."""


async def watch(directories: Iterable[str], stop: asyncio.Event | None = None) -> AsyncIterator[set[str]]:
    """The folders whose log changed, again and again until `stop` is set. Folders that do not exist, or whose
    names are not UTF-8, are left out."""
    directories = tuple(directories)
    while (folders := _existing(directories)) and not (stop is not None and stop.is_set()):
        changes = awatch(
            *folders, watch_filter=_is_log, stop_event=stop, step=STEP_MS, debounce=4 * STEP_MS, recursive=False
        )
        try:
            async for batch in changes:
                yield {os.path.dirname(path) for _, path in batch}
        except (OSError, RuntimeError, ExceptionGroup):  # no inotify watch is left; or a new file's name is not UTF-8
            await asyncio.sleep(AGAIN_SECONDS)
            yield set(folders)


def _existing(directories: Iterable[str]) -> list[str]:
    return [d for d in directories if os.path.isdir(d) and can_be_watched(d)]


def _is_log(_change: Change, path: str) -> bool:
    return os.path.basename(path) == LOG_NAME
