"""A saved state next to the journal, so that loading a long one does not start at its beginning.

Only a shortcut: it may be missing, stale or damaged; the journal remains the source of truth. Unaware of events.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

from stoker import __version__
from stoker.config.paths import private_opener
from stoker.config.regular import open_regular
from stoker.model.codec import CodecError, decode, encode, whole
from stoker.model.state import STATE_VERSION, BuildState
from stoker.record.jsonlines import BadLineError, dump_line, parse_line


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The state after all records before byte `offset` of the journal."""

    offset: int
    state: BuildState


def checkpoint_path(journal: Path) -> Path:
    """journal.checkpoint beside journal.jsonl."""
    return journal.with_suffix(".checkpoint")


def save_checkpoint(journal: Path, state: BuildState, offset: int) -> None:
    """Replace the checkpoint; if the disk is full, the old one stays."""
    path = checkpoint_path(journal)
    new = path.with_suffix(".checkpoint.new")
    data = dump_line({"stoker": __version__, "version": STATE_VERSION, "offset": offset, "state": encode(state)})
    with contextlib.suppress(OSError):
        with open(new, "wb", opener=private_opener) as file:
            file.write(data)
        new.replace(path)


def load_checkpoint(journal: Path) -> Checkpoint | None:
    """Return what was saved, unless another version of stoker did it, whose states may mean something else."""
    try:
        with open_regular(checkpoint_path(journal)) as file:
            data = parse_line(file.read())
        offset = whole(data.get("offset"))
        if (data.get("stoker"), data.get("version")) != (__version__, STATE_VERSION) or offset is None:
            return None
        return Checkpoint(offset, decode(BuildState, data.get("state"), "state"))
    except (OSError, BadLineError, CodecError):
        return None
