"""Reads a journal as it grows. Unaware of who writes it.

Apart from the reader, which most commands load: they can do without asyncio, which takes longer to load than that.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from stoker.model.events import BuildEnded, Record
from stoker.record.journal_reader import JournalReader, offset_after

FOLLOW_SECONDS = 0.3
"""How often to check a growing journal: to a person, less than half a second is "at once"."""


async def follow_journal(
    path: Path,
    after_seq: int = 0,
    over: Callable[[], bool] = lambda: False,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> AsyncIterator[Record]:
    """Yield records after `after_seq` as they are written, to the build's end, or until `over()` says that none will
    come."""
    reader = JournalReader(path, offset_after(path, after_seq))
    while True:
        # Asked before reading: what was written before the end is still read.
        last_look = over()
        for record in reader:
            if record.seq > after_seq:
                after_seq = record.seq
                yield record
            if isinstance(record.event, BuildEnded):
                return
        if last_look:
            return
        await sleep(FOLLOW_SECONDS)
