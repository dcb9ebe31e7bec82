"""The journal: append-only JSON lines, the only truth about a build. docs/journal.md describes the format.

One place to import from; unaware of who produces events and who looks at them.
"""

from stoker.record.reader import (
    FOLLOW_SECONDS,
    MAX_LINE,
    JournalError,
    JournalReader,
    follow_journal,
    load_state,
    offset_after,
    read_journal,
    read_kinds,
)
from stoker.record.writer import CHECKPOINT_BYTES, MAX_PENDING, SYNC_SECONDS, JournalBusyError, JournalWriter

__all__ = [
    "CHECKPOINT_BYTES",
    "FOLLOW_SECONDS",
    "MAX_LINE",
    "MAX_PENDING",
    "SYNC_SECONDS",
    "JournalBusyError",
    "JournalError",
    "JournalReader",
    "JournalWriter",
    "follow_journal",
    "load_state",
    "offset_after",
    "read_journal",
    "read_kinds",
]
