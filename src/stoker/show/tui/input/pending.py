"""Pending requests: what a person has asked for and the build does not show yet. Values; knows no keys or sockets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from stoker.model.events import Paused
from stoker.model.state import BuildState

Act = Literal["freeze", "thaw", "alone", "together", "kill"]
"""What can be done to one job. Thawing one on deck starts it. together: others may run beside it again."""

Matter = Literal["level", "pause"] | int
"""The subject of a request: the level, the pause, or a job by its number."""


@dataclass(frozen=True, slots=True)
class Pending:
    """The pending requests; `acts` are by job number."""

    level: int | Literal["auto"] | None = None
    paused: Paused | None = None
    acts: Mapping[int, Act] = field(default_factory=dict)

    def without(self, matter: Matter) -> Pending:
        """Return these without the request about `matter`."""
        if matter == "level":
            return replace(self, level=None)
        if matter == "pause":
            return replace(self, paused=None)
        return replace(self, acts={jid: act for jid, act in self.acts.items() if jid != matter})

    def fulfilled(self, matter: Matter, state: BuildState) -> bool:
        """Return whether the build shows the result of the request about `matter`."""
        if matter == "level":
            shown = "auto" if state.level.mode == "auto" else state.level.target
            return self.level in (None, shown)
        if matter == "pause":
            return self.paused in (None, state.level.paused)
        job, act = state.jobs.get(matter), self.acts.get(matter)
        if job is None or act is None:
            return True
        if act in ("alone", "together"):
            return job.alone == (act == "alone")
        return job.state == {"freeze": "frozen", "thaw": "running"}.get(act)
