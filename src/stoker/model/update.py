"""What a viewer receives: the newest state and how it is connected to the build.

Unaware of sockets and files: a live engine, a finished journal and a replay all produce the same values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from stoker.model.state import BuildState

Link = Literal["live", "journal", "lost", "ended", "replay"]
"""live: an engine answers; journal: it is there but accepts no more viewers, so the build is read from its journal;
lost: none answers, and the viewer searches for one; ended: nothing will change any more; replay: a recorded journal is
being played."""


@dataclass(frozen=True, slots=True)
class Update:
    """The state as of now, and the link it came by. `note` says why it is not live."""

    state: BuildState
    link: Link
    note: str = ""


class CommandRefused(Exception):  # noqa: N818  (a refusal is an answer, not a fault)
    """A command was not carried out; the message says why in one line."""
